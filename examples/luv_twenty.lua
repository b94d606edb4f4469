--- Twenty coroutines lock at once over one client in libuv, each its own name and then all the same
--- one. In Neovim the same works without uv.run(): its loop runs already.

local uv = require "luv"
local redlock = require "redlock.luv"

local COROUTINES = 20

local nodes = #arg > 0 and { (table.unpack or unpack)(arg) } or { "127.0.0.1:6379" }
local client = redlock.new(nodes)
local done, waiting, most, shared = 0, 0, 0, 0

-- Waits as programs in libuv do for each event.
local function sleep(milliseconds)
  local thread, timer = coroutine.running(), uv.new_timer()
  timer:start(milliseconds, 0, function()
    timer:close()
    assert(coroutine.resume(thread))
  end)
  coroutine.yield()
end

for index = 1, COROUTINES do
  coroutine.wrap(function()
    waiting = waiting + 1
    most = math.max(most, waiting)
    local lock = assert(client:acquire("own:" .. index))
    waiting = waiting - 1
    assert(lock:release())

    lock = assert(client:acquire("shared", { wait = 20000, retry_delay = 5, retry_jitter = 5 }))
    local seen = shared
    sleep(1) -- without the lock another coroutine would change it now
    shared = seen + 1
    assert(lock:release())
    done = done + 1
    if done == COROUTINES then client:close() end
  end)()
end

uv.run() -- ends when no coroutine waits
print("waiting for their own name at one time: " .. most)
print(("%d of %d coroutines are done, %d times one after the other"):format(done, COROUTINES, shared))
