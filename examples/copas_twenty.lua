--- Twenty threads of copas lock at once over one client, each its own name and then all the same
--- one.

local copas = require "copas"
local redlock = require "redlock.copas"

local THREADS = 20

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes)
local done, waiting, most, shared, is_over = 0, 0, 0, 0, false

for index = 1, THREADS do
  copas.addthread(function()
    waiting = waiting + 1
    most = math.max(most, waiting)
    local lock = assert(client:acquire("own:" .. index))
    waiting = waiting - 1
    assert(lock:release())

    lock = assert(client:acquire("shared", { wait = 20000, retry_delay = 5, retry_jitter = 5 }))
    local seen = shared
    assert(lock:extend()) -- which waits: without the lock another thread would change it now
    shared = seen + 1
    assert(lock:release())
    done = done + 1
    if done == THREADS then
      client:close()
      is_over = true
    end
  end)
end

repeat copas.step() until is_over -- copas.loop() does so for ever, in newer versions until no thread waits
print("waiting for their own name at one time: " .. most)
print(("%d of %d threads are done, %d times one after the other"):format(done, THREADS, shared))
