--- A function that runs under a lock. The lock is released however the function ends.

local redlock = require "redlock"

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes)

local function add(lock, a, b)
  assert(lock:is_held())
  return a + b
end

-- true and what add() returned; or nil, a message and a code.
local ok, total, code = client:with("accounts", { ttl = 5000, wait = 2000 }, add, 40, 2)
if ok then
  print("the total is " .. total)
elseif code == "expired" or code == "lost" then
  -- add() ran, but another client may have held the lock for some of the time.
  error("the total cannot be trusted: " .. total)
else
  error("not run: " .. total)
end

-- An error in the function is raised again, after the release.
print(pcall(client.with, client, "accounts", function() error("out of paper", 0) end))
assert(client:with("accounts", { wait = 0 }, function() print("free again") end))

client:close()
