--- Methods of the lock that start an operation, made from the table of
--- csrc/binding/rl_lua_operation.c. The other methods are in C.

local core = require "redlock.core"
local options = require "redlock.options"
require "redlock.loss" -- sets the function that calls on_lost

local run, start, release_send = core.run, core.start, core.release_send
local release_options = options.release
local detach, left_of = core.detach, core.left

local methods = core.lock_methods
local started, numbers = {}, {} -- operations of the lock by name; their codes

-- No tail calls here: C reports errors at the line of the caller's caller.

for name, operation in pairs(core.operations) do
  if operation.of == "lock" then
    local number, check = operation.code, options.arguments[operation.argument]
    started[name] = { number = number, check = check, takes_options = operation.argument == "options" }
    numbers[#numbers + 1] = number
    methods[name] = function(self, argument)
      local result, message, code
      if argument == nil then
        result, message, code = run(self, number)
      else
        result, message, code = run(self, number, check(argument, 2))
      end
      if result then return result end
      return nil, message, code
    end
  end
end

local RELEASE = core.operations.release.code

function methods.release(self, given)
  local released, message, code
  if given ~= nil and release_options(given, 2) then
    released, message, code = release_send(self)
  else
    released, message, code = run(self, RELEASE)
  end
  if released then return true end
  return nil, message, code
end

function methods.detach(self)
  local text, message, code = detach(self)
  if text then return text end
  return nil, message, code
end

-- Returns the names for a sentence: "acquire", "extend" or "release".
local function startable()
  local names, quoted = {}, {}
  for name, entry in pairs(started) do names[entry.number] = name end
  table.sort(numbers)
  for place, number in ipairs(numbers) do quoted[place] = '"' .. names[number] .. '"' end
  return table.concat(quoted, ", ", 1, #quoted - 1) .. " or " .. quoted[#quoted]
end

local START_TAKES = "redlock: lock:start() takes " .. startable()

function methods.start(self, operation, argument)
  local entry = started[operation]
  if not entry then error(START_TAKES, 2) end
  if operation == "release" and argument ~= nil then release_options(argument, 2) end -- start() never waits
  local ok, message, code
  if entry.takes_options and argument ~= nil then
    ok, message, code = start(self, entry.number, entry.check(argument, 2))
  else
    ok, message, code = start(self, entry.number, argument)
  end
  if ok then return true end
  return nil, message, code
end

--- Returns the milliseconds of the lease that are left; raises an error at the caller's line if the
--- lock is not held.
function methods.check(self)
  local left, message = left_of(self)
  if not left then error(message, 2) end
  return left
end

return methods
