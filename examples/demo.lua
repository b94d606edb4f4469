-- Shows a lock on five nodes: without trouble, with a second client, and after the failure of two
-- nodes. demo.sh starts the nodes and passes "port:pid" for each.
local redlock = require "redlock"

local RESOURCE = "orders:42"
local TTL = 10000

local nodes = {}
for i, argument in ipairs(arg) do
  local port, pid = argument:match("^(%d+):(%d+)$")
  assert(port, "usage: demo.lua port:pid ...")
  nodes[i] = { port = port, pid = pid, address = "127.0.0.1:" .. port, alive = true }
end
assert(#nodes == 5, "this demonstration wants five nodes")

local step = 0
local function headline(text)
  step = step + 1
  print(("\n%d. %s"):format(step, text))
end

local function say(format, ...)
  print("   " .. format:format(...))
end

local function expect(condition, text)
  if not condition then
    error("not what was expected: " .. text, 0)
  end
end

local function show_votes(lock)
  for _, vote in ipairs(lock:votes()) do
    local latency = vote.latency and ("%.2f ms"):format(vote.latency) or "-"
    say("  %-16s %-8s %9s  %s", vote.node, vote.vote, latency, vote.error or "")
  end
end

-- Asks a node itself, past the library.
local function key_on(node)
  local pipe = assert(io.popen(
    "redis-cli -h 127.0.0.1 -p " .. node.port .. " --raw GET " .. RESOURCE))
  local value = pipe:read("*l")
  pipe:close()
  return value ~= nil and value ~= "" and value or nil
end

local function show_keys()
  local left = 0
  for _, node in ipairs(nodes) do
    if node.alive then
      local value = key_on(node)
      left = left + (value and 1 or 0)
      say("  %-16s %s", node.address, value and "the key is still there" or "no key")
    else
      say("  %-16s killed", node.address)
    end
  end
  return left
end

local function signal(node, name)
  os.execute("kill -" .. name .. " " .. node.pid)
end

-- When the vote came that made the majority: the last of those that were granted.
local function decided_after(lock)
  local latest = 0
  for _, vote in ipairs(lock:votes()) do
    if vote.vote == "granted" then
      latest = math.max(latest, vote.latency)
    end
  end
  return latest
end

local addresses = {}
for i, node in ipairs(nodes) do
  addresses[i] = node.address
end
-- Nodes that answer get more time than the default: a laptop may be busy.
local alice = redlock.new(addresses, { ttl = TTL, node_timeout = 2000 })
local bob = redlock.new(addresses, { ttl = TTL, node_timeout = 2000, retry_count = 0 })

local lua = rawget(_G, "jit") and rawget(_G, "jit").version or _VERSION
print("redlock " .. redlock.VERSION .. " on " .. lua .. ", five nodes of Redis")

headline(("Alice acquires %q for %d ms"):format(RESOURCE, TTL))
local lock = alice:new_lock(RESOURCE)
local validity = assert(lock:acquire())
say("granted: valid for another %.0f ms", validity)
show_votes(lock)
say("the third grant decides; a node that answers later is not waited for")

headline("Bob wants it too, and tries once")
local refused, message, code = bob:acquire(RESOURCE)
expect(refused == nil and code == "taken", "Bob must not get the lock")
say("nil, %q, %q", message, code)

headline(("Alice extends it to %d ms"):format(3 * TTL))
say("before: %.0f ms left", lock:remaining())
validity = assert(lock:extend(3 * TTL))
say("after:  %.0f ms left", validity)

headline("Node 1 is killed and node 2 hangs (SIGSTOP): Alice lets go, and locks again with the other three")
assert(lock:release())
signal(nodes[1], "KILL")
nodes[1].alive = false
signal(nodes[2], "STOP")
local times = {}
for round = 1, 20 do
  assert(lock:acquire())
  times[round] = decided_after(lock)
  if round < 20 then
    assert(lock:release())
  end
end
table.sort(times)
say("20 times acquired: half of them within %.2f ms, the slowest after %.2f ms", times[10], times[20])
show_votes(lock)
refused, message, code = bob:acquire(RESOURCE)
expect(refused == nil, "Bob must not get the lock")
say("Bob: nil, %q, %q", message, code)

headline("Alice releases; node 2 goes on")
assert(lock:release())
expect(lock:remaining() == 0 and not lock:is_held(), "a released lock is not held")
signal(nodes[2], "CONT")
say("the nodes themselves say:")
expect(show_keys() == 0, "no node may keep the key")

headline("Now Bob gets it, and gives it back")
local bobs = assert(bob:acquire(RESOURCE))
say("granted: valid for another %.0f ms", bobs:remaining())
assert(bobs:release())

headline("The doctor says what is wrong with the nodes")
local findings = assert(bob:doctor())
for _, finding in ipairs(findings) do
  say("%-7s  %-11s  %s", finding.severity, finding.name, finding.message)
end
expect(findings[1].name == "down" and findings[1].node == nodes[1].address, "the gravest is that a node is down")
alice:close()
bob:close()
print("")
