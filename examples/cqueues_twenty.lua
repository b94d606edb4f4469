--- Twenty coroutines use one client: first each with its own lock, then all with the same one.

local cqueues = require "cqueues"
local redlock = require "redlock.cqueues"

local COROUTINES = 20

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes)
local controller = cqueues.new()
local done, waiting, shared = 0, 0, 0

for index = 1, COROUTINES do
  controller:wrap(function()
    waiting = waiting + 1
    local lock = assert(client:acquire("own:" .. index))
    waiting = waiting - 1
    assert(lock:release())

    lock = assert(client:acquire("shared", { wait = 20000, retry_delay = 5, retry_jitter = 5 }))
    local seen = shared
    cqueues.sleep(0.001) -- without the lock another coroutine would change the counter now
    shared = seen + 1
    assert(lock:release())
    done = done + 1
  end)
end

controller:wrap(function()
  while waiting < COROUTINES and done == 0 do cqueues.sleep(0) end
  print("waiting for their own name at one time: " .. waiting)
end)

assert(controller:loop())
print(("%d of %d coroutines are done, %d times one after the other"):format(done, COROUTINES, shared))
client:close()
