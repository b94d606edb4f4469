--- A stand-in for copas 2 to 4, which Debian does not have: what redlock.copas calls of it, as its
--- documentation says it. Threads begin with the next step, a wait can be ended by wakeup(), and
--- step() looks after both.

local socket = require "socket"

local copas = {}
local reading, sleeping = {}, {} -- threads by socket; when threads are due, math.huge = when they are woken
local READ, SLEEP = {}, {}

local function go_on(thread, ...)
  local ok, what, where = coroutine.resume(thread, ...)
  if not ok then error(debug.traceback(thread, what), 0) end
  if where == READ then
    reading[what] = thread
  elseif where == SLEEP then
    sleeping[thread] = what
  end
end

function copas.pause(seconds)
  coroutine.yield(socket.gettime() + (seconds or 0), SLEEP)
end

function copas.pauseforever()
  coroutine.yield(math.huge, SLEEP)
end

function copas.wakeup(thread)
  if sleeping[thread] then sleeping[thread] = 0 end
end

--- The thread is never resumed again, whoever keeps it.
function copas.removethread(thread)
  sleeping[thread] = nil
  for skt, waits in pairs(reading) do
    if waits == thread then reading[skt] = nil end
  end
end

function copas.addthread(fn)
  local thread = coroutine.create(function()
    copas.pause()
    fn()
  end)
  go_on(thread)
  return thread
end

function copas.receive(skt)
  while true do
    local got, err = skt:receive("*l")
    if math.random() > 0.9 then copas.pause() end
    if got or err ~= "timeout" then return got, err end
    coroutine.yield(skt, READ)
  end
end

function copas.finished()
  for _, due in pairs(sleeping) do
    if due < math.huge then return false end
  end
  return next(reading) == nil
end

function copas.step(seconds)
  local due, sockets = {}, {}
  local now, until_when = socket.gettime(), socket.gettime() + seconds
  for thread, at in pairs(sleeping) do
    if at <= now then due[#due + 1] = thread elseif at < until_when then until_when = at end
  end
  for _, thread in ipairs(due) do
    sleeping[thread] = nil
    go_on(thread)
  end
  for skt in pairs(reading) do sockets[#sockets + 1] = skt end
  for _, skt in ipairs(socket.select(sockets, nil, #due > 0 and 0 or math.max(until_when - now, 0))) do
    local thread = reading[skt]
    reading[skt] = nil
    go_on(thread)
  end
end

return copas
