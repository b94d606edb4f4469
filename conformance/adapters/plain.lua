-- A small Redlock on LuaSocket, and wrong variants of it that the statements must detect:
--
--     lua5.4 conformance/adapters/plain.lua [DEFECT]
--
-- It shows what an adapter needs, and is no library: it asks one node after the other.
--
-- SPDX-License-Identifier: MIT

local socket = require "socket"
local serve = require "conformance.adapters.serve"

local defect = arg[1] or "none"

local IF_EQUAL = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
local RELEASE = IF_EQUAL .. "return redis.call('DEL', KEYS[1])"
local EXTEND = IF_EQUAL .. "return redis.call('PEXPIRE', KEYS[1], ARGV[2])"
local BLIND_RELEASE = "return redis.call('DEL', KEYS[1])"
local BLIND_EXTEND = "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1"
local LYING_EXTEND = "return 1"
local hashes = {}

local nodes, timeout, last = {}, 1, 0
local locks = {}

-- Monotonic seconds.
local function now()
  if defect == "wall-clock" then return socket.gettime() end
  local file = io.open("/proc/uptime")
  local seconds = file:read("n")
  file:close()
  return seconds
end

-- -------------------------------------------------------------------------------------- nodes

local function connect(node)
  node.socket = socket.tcp()
  node.socket:settimeout(timeout)
  node.pending = 0
  if not node.socket:connect(node.host, node.port) then node.socket = nil end
end

local function drop(node)
  if node.socket then node.socket:close() end
  node.socket = nil
end

local function send(node, words)
  if not node.socket and (defect ~= "no-reconnect" or not node.was_up) then connect(node) end
  if not node.socket then return false end
  node.was_up = true
  local parts = { ("*%d\r\n"):format(#words) }
  for _, word in ipairs(words) do parts[#parts + 1] = ("$%d\r\n%s\r\n"):format(#tostring(word), word) end
  if not node.socket:send(table.concat(parts)) then
    drop(node)
    return false
  end
  node.pending = node.pending + 1
  return true
end

-- Reads the replies that are outstanding, and returns the last one; nil if it does not come.
local function receive(node, seconds)
  local limit, reply = now() + seconds, nil
  while node.socket and node.pending > 0 do
    node.socket:settimeout(defect ~= "patient" and math.max(0, limit - now()) or nil)
    local line, failure, part = node.socket:receive("*l", node.part)
    node.part = failure == "timeout" and part or nil
    if not line then
      if failure ~= "timeout" then drop(node) end
      return nil, failure
    end
    node.pending, reply = node.pending - 1, line
  end
  return reply
end

-- Sends a command and returns its reply. A connection that has broken is replaced once.
local function ask(node, words)
  for _ = 1, 2 do
    if not send(node, words) then return nil end
    local reply, failure = receive(node, timeout)
    if failure ~= "closed" then return reply end
  end
end

local function run(node, script, key, ...)
  local hash = hashes[script]
  if defect == "sha-only" then
    local reply = ask(node, { "EVALSHA", hash or ("0"):rep(40), 1, key, ... })
    if not hash and reply and reply:find("^-NOSCRIPT") then return ask(node, { "EVAL", script, 1, key, ... }) end
    return reply
  end
  return ask(node, { "EVAL", script, 1, key, ... })
end

-- ----------------------------------------------------------------------------------- algorithm

local function votes_needed()
  if defect == "minority" then return 1 end
  return defect == "all-nodes" and #nodes or #nodes // 2 + 1
end

local function new_token()
  if defect == "same-token" then return "the-token-of-this-client" end
  local file = io.open("/dev/urandom", "rb")
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Releases a node. If an earlier command is outstanding, the release follows it on the same
-- connection, so that the node executes it afterwards.
local function release_node(node, resource, token)
  if node.socket and node.pending > 0 then
    return send(node, { "EVAL", RELEASE, 1, resource, token })
  end
  return run(node, defect == "blind-release" and BLIND_RELEASE or RELEASE, resource, token)
end

local function release(lock)
  for _, node in ipairs(nodes) do
    local skipped = defect == (lock.failed and "leak" or "no-release")
    skipped = skipped or defect == "granted-only" and lock.failed and not lock.granted[node]
    if not skipped then release_node(node, lock.resource, lock.token) end
  end
end

local function validity_of(started, ttl)
  local drift = defect == "no-drift" and 0 or ttl * 0.01 + 2
  local elapsed = defect == "elapsed" and 0 or (now() - started) * 1000
  return ttl - elapsed - drift
end

local function acquire(resource, ttl)
  local lock, votes, started = { resource = resource, token = new_token(), granted = {} }, 0, now()
  for _, node in ipairs(nodes) do
    local words = { "SET", resource, lock.token, "PX", ttl }
    if defect ~= "overwrite" then table.insert(words, "NX") end
    if ask(node, words) == "+OK" then votes, lock.granted[node] = votes + 1, true end
  end
  local validity = validity_of(started, ttl)
  if votes >= votes_needed() and (validity > 0 or defect == "late-grant" or defect == "elapsed") then
    lock.deadline = now() + validity / 1000
    return lock, validity
  end
  lock.failed = true
  release(lock)
  return nil
end

local function extend(lock, ttl)
  local script = ({ ["blind-extend"] = BLIND_EXTEND, ["lying-extend"] = LYING_EXTEND })[defect] or EXTEND
  local votes, started = 0, now()
  for _, node in ipairs(nodes) do
    if run(node, script, lock.resource, lock.token, ttl) == ":1" then votes = votes + 1 end
  end
  if votes < (defect == "one-extend" and 1 or votes_needed()) then return nil end
  if now() >= lock.deadline and defect ~= "late-extend" and script == EXTEND then return nil end
  local validity = validity_of(started, ttl)
  lock.deadline = now() + validity / 1000
  return validity
end

-- ------------------------------------------------------------------------------------- adapter

local refused = { ok = false, error = "refused" }

serve {
  open = function(request)
    timeout = defect == "impatient" and 0.1 or request.timeout / 1000
    for index, address in ipairs(request.nodes) do
      local host, port = address:match("^(.*):(%d+)$")
      nodes[index] = { host = host, port = tonumber(port), pending = 0 }
    end
    for _, node in ipairs(nodes) do
      for _, script in ipairs { RELEASE, EXTEND } do
        if defect == "sha-only" and send(node, { "SCRIPT", "LOAD", script }) then
          node.socket:settimeout(timeout)
          node.socket:receive("*l")
          hashes[script] = node.socket:receive("*l")
          node.pending = 0
        end
      end
    end
    return { ok = true, version = defect }
  end,
  acquire = function(request)
    local lock, validity = acquire(request.resource, request.ttl)
    if not lock then return refused end
    last = last + 1
    locks[tostring(last)] = lock
    return { ok = true, lock = tostring(last), validity = math.floor(validity) }
  end,
  extend = function(request)
    local validity = extend(locks[request.lock], request.ttl)
    return validity and { ok = true, validity = math.floor(validity) } or refused
  end,
  release = function(request)
    release(locks[request.lock])
    return { ok = true }
  end,
  validity = function(request)
    return { ok = true, validity = math.floor((locks[request.lock].deadline - now()) * 1000) }
  end,
}
