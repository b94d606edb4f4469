--- Another process, which takes a lock again and again, for spec/notify_behaviour.lua:
---
---     notify_partner.lua <directory> <resource> <hold> <wait> <options> <address> ...
---
--- It holds the lock for so many milliseconds each time, and waits for it for so many at most. It
--- ends when the directory has a file "stop", or is gone. Into its file "had" goes a line for each time that it
--- has had the lock.

local redlock = require "redlock"
local socket = require "socket"

local directory, resource, hold, wait, options = arg[1], arg[2], tonumber(arg[3]) / 1000, tonumber(arg[4]), arg[5]
local addresses = { (table.unpack or unpack)(arg, 6) } -- luacheck: ignore
local client = redlock.new(addresses, (loadstring or load)("return " .. options)()) -- luacheck: ignore

local function exists(name)
  local file = io.open(directory .. "/" .. name)
  if file then file:close() end
  return file ~= nil
end

local function is_to_stop()
  return exists("stop") or not exists("output")
end

while not is_to_stop() do
  local lock = client:acquire(resource, { wait = wait })
  if lock then
    local file = assert(io.open(directory .. "/had", "a"))
    file:write(string.format("%.6f\n", socket.gettime()))
    file:close()
    socket.sleep(hold)
    lock:release()
  end
end
client:close()
