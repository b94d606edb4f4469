--- Lua 5.4: the lock is released at the end of the scope, however the program leaves it.

local redlock = require "redlock"

local nodes = #arg > 0 and { table.unpack(arg) } or { "127.0.0.1:6379" }
local client <close> = redlock.new(nodes)

do
  local lock <close> = assert(client:acquire("orders:42", { ttl = 5000, wait = 2000 }))
  local second, _, code = client:acquire("orders:42", { wait = 0 })
  print("held inside: " .. tostring(lock), second, code)
end

do
  local lock <close> = assert(client:acquire("orders:42", { wait = 0 }))
  print("free outside: " .. tostring(lock))
end
