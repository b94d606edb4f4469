-- Adapter for libraries that are not installed: it sends the commands that they send.
--
--     lua5.4 conformance/adapters/commands.lua redisson|locktake|setnx
--
-- redisson: a hash with a counter for each owner. locktake: SET NX PX, and transactions which watch
-- the value. setnx: SETNX with the time at which the lock ends, as the manual of SETNX showed it.
--
-- SPDX-License-Identifier: MIT

local socket = require "socket"
local serve = require "conformance.adapters.serve"

local connection
local locks, last = {}, 0

local function read_reply()
  local line = assert(connection:receive("*l"))
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "-" then error(rest, 0) end
  if kind == "+" then return rest end
  if kind == ":" then return tonumber(rest) end
  if tonumber(rest) < 0 then return nil end
  if kind == "$" then return (assert(connection:receive(tonumber(rest) + 2)):sub(1, -3)) end
  local list = {}
  for index = 1, tonumber(rest) do list[index] = read_reply() end
  return list
end

local function ask(...)
  local parts = { ("*%d\r\n"):format(select("#", ...)) }
  for _, word in ipairs { ... } do parts[#parts + 1] = ("$%d\r\n%s\r\n"):format(#tostring(word), word) end
  assert(connection:send(table.concat(parts)))
  return read_reply()
end

local function random_id()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Runs the commands if the key has the value, in a transaction that a change of the key breaks.
local function if_equal(lock, ...)
  ask("WATCH", lock.resource)
  if ask("GET", lock.resource) ~= lock.id then
    ask("UNWATCH")
    return false
  end
  ask("MULTI")
  ask(...)
  return ask("EXEC") ~= nil
end

local REDISSON_ACQUIRE = [[
local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
if redis.call('EXISTS', KEYS[1]) == 1 and not mine then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
return redis.call('PEXPIRE', KEYS[1], ARGV[1])]]
local REDISSON_EXTEND = [[
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])]]
local REDISSON_RELEASE = [[
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then return 0 end
return redis.call('DEL', KEYS[1])]]

local families = {
  redisson = {
    acquire = function(lock, ttl) return ask("EVAL", REDISSON_ACQUIRE, 1, lock.resource, ttl, lock.id .. ":1") == 1 end,
    extend = function(lock, ttl) return ask("EVAL", REDISSON_EXTEND, 1, lock.resource, ttl, lock.id .. ":1") == 1 end,
    release = function(lock) return ask("EVAL", REDISSON_RELEASE, 1, lock.resource, "", lock.id .. ":1") == 1 end,
  },
  locktake = {
    acquire = function(lock, ttl) return ask("SET", lock.resource, lock.id, "NX", "PX", ttl) == "OK" end,
    extend = function(lock, ttl) return if_equal(lock, "PEXPIRE", lock.resource, ttl) end,
    release = function(lock) return if_equal(lock, "DEL", lock.resource) end,
  },
  setnx = {
    acquire = function(lock, ttl)
      lock.id = ("%.6f"):format(socket.gettime() + ttl / 1000)
      if ask("SETNX", lock.resource, lock.id) == 1 then return true end
      local found = ask("GET", lock.resource)
      local ends = tonumber(found or "")
      if not ends or ends > socket.gettime() then return false end
      return ask("GETSET", lock.resource, lock.id) == found
    end,
    release = function(lock)
      return tonumber(lock.id) > socket.gettime() and ask("DEL", lock.resource) == 1
    end,
  },
}
local family = families[arg[1]]

local function outcome(good) return good and { ok = true } or { ok = false, error = "refused" } end

serve {
  open = function(request)
    local host, port = request.nodes[1]:match("^(.*):(%d+)$")
    connection = assert(socket.connect(host, tonumber(port)))
    return { ok = true }
  end,
  acquire = function(request)
    local lock = { resource = request.resource, id = random_id() }
    if not family.acquire(lock, request.ttl) then return outcome(false) end
    last = last + 1
    locks[tostring(last)] = lock
    return { ok = true, lock = tostring(last) }
  end,
  extend = function(request) return outcome(family.extend(locks[request.lock], request.ttl)) end,
  release = function(request) return outcome(family.release(locks[request.lock])) end,
  validity = function() return outcome(false) end,
}
