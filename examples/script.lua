--- A script that acquires a lock, works, and releases it.
---
---     lua examples/script.lua 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379

local redlock = require "redlock"

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes, { ttl = 10000 })

local lock = client:new_lock("orders:42")
local validity, message, code = lock:acquire({ wait = 2000 })
if not validity then
  io.stderr:write("not acquired (", code, "): ", message, "\n")
  os.exit(1)
end
print("acquired for " .. validity .. " ms: " .. tostring(lock))
for _, vote in ipairs(lock:votes()) do
  print("  " .. vote.node .. " " .. vote.vote .. (vote.error and ": " .. vote.error or ""))
end

-- Work in steps, and check the lease between them.
for _ = 1, 3 do
  if lock:remaining() < 2000 then assert(lock:extend()) end
  -- ... a step that takes much less than 2 seconds ...
end

local released
released, message = lock:release()
print(released and "released" or "not confirmed: " .. message)
client:close()
