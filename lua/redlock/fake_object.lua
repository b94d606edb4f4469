--- Objects of the fake: clients and locks, and the mistakes of calls on them.
---
--- A program has an object, a table without fields of its own. Its record has the state. The record
--- does not keep its object alive, so that a dropped lock is collected and released.

local tables = require "redlock.fake_table"

local object = {}

-- Raises a mistake. Levels: 1 is the caller of the function that calls this one, 2 its caller.
function object.misuse(level, ...)
  error("redlock: " .. string.format(...), level + 2)
end
object.DIRECT, object.WRAPPED = 1, 2

local misuse = object.misuse

object.records = setmetatable({}, { __mode = "k" }) -- of clients and locks, by their objects
object.INSIDE = {} -- key of what an object keeps alive

local records = object.records

--- Returns a value whose collection calls fn(). Tables of Lua 5.1 have no finalizers.
function object.finalizer(fn)
  local proxy = rawget(_G, "newproxy")
  if not proxy then return setmetatable({}, { __gc = fn }) end
  local made = proxy(true)
  getmetatable(made).__gc = fn
  return made
end

--- Classes of the records.
local Client, Lock = {}, {}
Client.__index, Lock.__index = Client, Lock
object.Client, object.Lock = Client, Lock

--- Methods and metatables of the objects.
object.client_methods, object.lock_methods = {}, {}
object.client_class = { __index = object.client_methods, __name = "redlock.client", __metatable = "redlock.client" }
object.lock_class = { __index = object.lock_methods, __name = "redlock.lock", __metatable = "redlock.lock" }

--- Returns "nil", or the type of a value, such as "a redlock client".
function object.noun(value)
  if value == nil then return "nil" end
  local class = getmetatable(value)
  local name = type(class) == "string" and class:match("^redlock%.(%a+)$")
  return "a " .. (name and "redlock " .. name or type(value))
end

-- Each call into the fake releases the locks that were collected.
local function check(value, class, noun, method, level)
  local record = value ~= nil and records[value] or nil
  if getmetatable(record) ~= class then
    misuse(level + 2, "%s needs a %s before the colon, got %s", method, noun, object.noun(value))
  end
  local world = record.world or record.client.world
  if world then world:sweep() end
  return record
end

--- Returns the record of a client, or raises a mistake.
function object.check_client(value, level, method)
  local record = check(value, Client, "client", method, level)
  return record
end

--- Returns the record of a lock, or raises a mistake.
function object.check_lock(value, level, method)
  local record = check(value, Lock, "lock", method, level)
  return record
end

--- Returns nil, message, code.
function object.failure(code, text)
  return nil, text or tables.sentences[code], code
end

return object
