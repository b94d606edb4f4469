--- The clock of the fake: timers and coroutines. Time passes only in advance() and wait().
---
--- A call that waits in a coroutine of spawn() yields. Any other call that waits advances the clock
--- until its operation has ended, so that it never blocks.

local Clock = {}
Clock.__index = Clock

local create, resume, running, status, yield =
  coroutine.create, coroutine.resume, coroutine.running, coroutine.status, coroutine.yield
local ceil, huge, min = math.ceil, math.huge, math.min
local traceback = type(debug) == "table" and debug.traceback or function(_, message) return tostring(message) end

local START = 1000000000 -- milliseconds; no test should rely on it

local clock = {}

function clock.new()
  return setmetatable({
    now = START,
    timers = {}, -- in the order of their times
    set = 0, -- number of timers that were ever set
    ready = {}, -- coroutines that need not wait any longer, in their order
    threads = setmetatable({}, { __mode = "k" }), -- those of spawn()
  }, Clock)
end

--- Forgets all timers and coroutines.
function Clock:reset()
  self.timers, self.ready = {}, {}
  self.threads = setmetatable({}, { __mode = "k" })
end

local function before(one, other)
  return one.due < other.due or one.due == other.due and one.number < other.number
end

-- Returns the position of the first timer that is not before `timer`.
local function place_of(timers, timer)
  local low, high = 1, #timers + 1
  while low < high do
    local middle = (low + high - (low + high) % 2) / 2
    if before(timers[middle], timer) then low = middle + 1 else high = middle end
  end
  return low
end

--- Calls fn() at a time, rounded up to milliseconds. Returns the timer. `leap`: a timer that sets
--- itself again and again. leap(due, horizon) does at once what it would do until then, and returns
--- true; or false if it cannot.
function Clock:at(due, fn, leap)
  self.set = self.set + 1
  local timer = { due = ceil(due), fn = fn, number = self.set, leap = leap }
  table.insert(self.timers, place_of(self.timers, timer), timer)
  return timer
end

--- Cancels a timer, if it is set.
function Clock:cancel(timer)
  if not timer then return end
  local place = place_of(self.timers, timer)
  if self.timers[place] == timer then table.remove(self.timers, place) end
end

local function go_on(thread, ok, ...)
  if not ok then error(traceback(thread, tostring((...))), 0) end
end

--- Runs fn(...) in a coroutine until it waits. Returns the coroutine.
function Clock:spawn(fn, ...)
  local thread = create(fn)
  self.threads[thread] = true
  go_on(thread, resume(thread, ...))
  return thread
end

-- Returns the running coroutine if it may yield to this clock.
function Clock:thread()
  local thread = running()
  return thread and self.threads[thread] and thread or nil
end

--- Lets a coroutine go on whose operation has ended.
function Clock:wake(thread)
  if thread then self.ready[#self.ready + 1] = thread end
end

-- Lets repeating timers leap to the next other timer. Returns true if one has.
local function leap(self, limit)
  local repeating, horizon = {}, limit
  for _, timer in ipairs(self.timers) do
    if not timer.leap then
      horizon = min(horizon, timer.due)
      break
    end
    repeating[#repeating + 1] = timer
  end
  local any = false
  for _, timer in ipairs(repeating) do
    if horizon < huge and timer.due < horizon and timer.leap(timer.due, horizon) then any = true end
  end
  return any
end

-- Lets one coroutine go on, or calls the next timer until `limit`. Returns false if there is none.
function Clock:step(limit)
  local thread = table.remove(self.ready, 1)
  if thread then
    if status(thread) == "suspended" then go_on(thread, resume(thread)) end
    return true
  end
  local timer = self.timers[1]
  if not timer or timer.due > limit then return false end
  if timer.leap and leap(self, limit) then return true end
  table.remove(self.timers, 1)
  if timer.due > self.now then self.now = timer.due end
  timer.fn()
  return true
end

--- Lets everything happen that is due now. Returns true if something was.
function Clock:turn()
  local any = false
  while self:step(self.now) do any = true end
  return any
end

--- Moves to the next timer, if there is one.
function Clock:next()
  if self.timers[1] then self:step(huge) end
end

--- Waits until `operation.over`.
function Clock:wait(operation)
  local thread = self:thread()
  while not operation.over do
    if thread then
      operation.thread = thread
      yield()
    else
      assert(self:step(huge), "redlock.fake: an operation has no end")
    end
  end
end

--- Lets time pass.
function Clock:advance(milliseconds)
  local target = self.now + milliseconds
  if self:thread() then
    local pause = { over = false }
    self:at(target, function()
      pause.over = true
      self:wake(pause.thread)
    end)
    return self:wait(pause)
  end
  while self:step(target) do end -- luacheck: ignore 542
  if target > self.now then self.now = target end
end

return clock
