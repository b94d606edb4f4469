--- A function that runs while a name is locked: whatever it does, the lock is given back.

local redlock = require "redlock"

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes)

local function add(lock, a, b)
  assert(lock:is_held())
  return a + b
end

local total, message, code = client:with("accounts", { ttl = 5000, wait = 2000 }, add, 40, 2)
if total then
  print("the total is " .. total)
elseif code == "expired" or code == "lost" then
  -- add() ran, but for some of the time others may have held the lock as well.
  error("the total cannot be trusted: " .. message)
else
  error("not run: " .. message)
end

-- An error in the function is raised again, after the release.
local ok, err = pcall(client.with, client, "accounts", function() error("out of paper", 0) end)
print(ok, err)
print("free again: " .. tostring(client:with("accounts", { wait = 0 }, function() return true end)))

client:close()
