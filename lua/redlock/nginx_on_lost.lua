--- on_lost inside nginx for a lock that outlives its request, if the request made the function.
---
--- The variables of a killed coroutine stay on its stack, and nginx gives the coroutine to another
--- request. A function that refers to them would read variables of that request. So after the end
--- of its request a copy of the function is called. The copy has the values that these variables had
--- at the acquire, and shares all other variables with the function.

local core = require "redlock.core"
local ffi = require "ffi"

local native = core.nginx
local replace_on_lost, lasts = native.replace_on_lost, native.lasts
local getupvalue, setupvalue, upvaluejoin = debug.getupvalue, debug.setupvalue, debug.upvaluejoin
local upvalueid, getinfo, getmetatable = debug.upvalueid, debug.getinfo, debug.getmetatable
local dump, loadstring, setfenv, getfenv = string.dump, loadstring, setfenv, getfenv
local pcall, type = pcall, type

local nginx_on_lost = {}

-- ------------------------------------------------------------- variables of running functions
-- LuaJIT does not report which variable is still on a stack. Samples whose variables are known show
-- in which byte of a variable LuaJIT stores that.

local LAST = 15 -- last byte of a variable that is examined

local function byte_of(fn, index, offset)
  return ffi.cast("const uint8_t *", upvalueid(fn, index))[offset]
end

local function samples(check)
  local constant, list, changed = "constant", {}, 1
  local function one() return constant, list end
  local function other()
    changed = changed + 1
    return changed, one
  end
  check(one, other, 0)
  return one, other
end

local function find_offset()
  local possible = {}
  local function check(one, other, expected)
    for offset = 0, LAST do
      for index = 1, 2 do
        if byte_of(one, index, offset) ~= expected or byte_of(other, index, offset) ~= expected then
          possible[offset] = false
        end
      end
    end
  end
  local one, other = samples(check)
  check(one, other, 1)
  local found
  for offset = 0, LAST do
    if possible[offset] == nil then
      if found then return nil end
      found = offset
    end
  end
  return found
end

local known, offset = pcall(find_offset)
if not known then offset = nil end

local function is_on_a_stack(fn, index)
  return offset ~= nil and byte_of(fn, index, offset) == 0
end

local function is_of_lua(value)
  return type(value) == "function" and getinfo(value, "S").what ~= "C"
end

-- --------------------------------------------------------------------------------------- the copy

local function refers_to_stack(fn)
  local index = 1
  while getupvalue(fn, index) do
    if is_on_a_stack(fn, index) then return true end
    index = index + 1
  end
  return false
end

-- Copies a function. `made` maps functions to copies, for functions that refer to each other.
local function copy(fn, made)
  if made[fn] then return made[fn] end
  local twin = loadstring(dump(fn))
  made[fn] = twin
  setfenv(twin, getfenv(fn))
  local index, name, value = 1, getupvalue(fn, 1)
  while name do
    if not is_on_a_stack(fn, index) then
      upvaluejoin(twin, index, fn, index)
    elseif is_of_lua(value) and refers_to_stack(value) then
      setupvalue(twin, index, copy(value, made))
    else
      setupvalue(twin, index, value)
    end
    index = index + 1
    name, value = getupvalue(fn, index)
  end
  return twin
end

-- Returns a function that replaces `on_lost`, and a table for the number of the request; nothing if
-- on_lost itself is safe.
local function replace(on_lost, request)
  local fn = on_lost
  if type(fn) ~= "function" then fn = getmetatable(on_lost).__call end
  if not is_of_lua(fn) or not refers_to_stack(fn) then return end
  local twin, of = copy(fn, {}), { number = 0 }
  return function(lock, reason)
    if lasts(lock, request, of.number) then
      on_lost(lock, reason)
    elseif fn == on_lost then
      twin(lock, reason)
    else
      twin(on_lost, lock, reason)
    end
  end, of
end

--- Replaces on_lost of an acquired lock of the worker, if necessary. `request` is the running
--- request, or nil.
function nginx_on_lost.protect(lock, on_lost, request)
  local made, instead, of = pcall(replace, on_lost, request)
  if made and instead then of.number = replace_on_lost(lock, instead, request) end
end

return nginx_on_lost
