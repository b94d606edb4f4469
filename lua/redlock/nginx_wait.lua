--- The waits of the requests of a worker of nginx, and how a step of the core ends them.
---
--- A sleeper is the number of a semaphore on which one request at a time waits. A free sleeper is
--- reused.

local core = require "redlock.core"
local semaphore = require "ngx.semaphore"
local bit = require "bit"

local native = core.nginx
local disown, overtake = native.disown, native.overtake
local band, rshift = bit.band, bit.rshift

local waits = {}

local semaphores = {} -- by sleeper
local waiting = {} -- sleeper -> driver of the operation that a request waits for, or false
local taken = {} -- sleeper -> driver that uses the sleeper, or false
local overtaken = {} -- sleeper -> results of a caller whose lock has started another operation
local free, free_count = {}, 0

--- Returns a free sleeper, which enter() takes.
function waits.free_sleeper()
  if free_count > 0 then return free[free_count] end
  local sleeper = #semaphores + 1
  semaphores[sleeper] = assert(semaphore.new(0))
  waiting[sleeper], taken[sleeper] = false, false
  free_count = 1
  free[1] = sleeper
  return sleeper
end

local function return_sleeper(sleeper)
  waiting[sleeper], taken[sleeper] = false, false
  free_count = free_count + 1
  free[free_count] = sleeper
end

-- Frees the sleeper of a dead request, and releases its lock.
local function free_dead(self, sleeper)
  if semaphores[sleeper]:count() ~= 0 then semaphores[sleeper] = assert(semaphore.new(0)) end
  disown(self.handle, sleeper)
  overtaken[sleeper] = nil
  return_sleeper(sleeper)
end

-- Returns true if the caller at the sleeper will go on: it waits, or was woken.
local function is_alive(self, sleeper)
  local count = semaphores[sleeper]:count()
  if taken[sleeper] ~= self then return false end
  if waiting[sleeper] == self then return count < 0 end
  return count <= 0
end

--- Frees the sleeper unless its caller lives.
function waits.free_if_dead(self, sleeper)
  if is_alive(self, sleeper) then return end
  if taken[sleeper] == self then free_dead(self, sleeper) else disown(self.handle, sleeper) end
end

--- Prepares a lock for the next operation while the caller at `sleeper` has not taken the last
--- result. Returns a free sleeper. Frees that of a dead caller. A release cancels the extend of a
--- living caller; raises misuse for any other operation in flight.
function waits.overtake(self, lock, sleeper, number)
  if is_alive(self, sleeper) then
    overtaken[sleeper] = { overtake(lock, number) }
    if waiting[sleeper] then
      waiting[sleeper] = false
      semaphores[sleeper]:post(1)
    end
  else
    waits.free_if_dead(self, sleeper)
  end
  return waits.free_sleeper()
end

--- Wakes the writers of the connections in the set `writers`.
function waits.wake_writers(self, writers)
  local semas, index = self.writers, 1
  while writers ~= 0 do
    if band(writers, 1) ~= 0 then semas[index]:post(1) end
    writers, index = rshift(writers, 1), index + 1
  end
end

--- Wakes the clock of the client (nginx_driver.lua).
function waits.wake_clock(self)
  if self.ticking then self.clock:post(1) end
end

--- Wakes the requests, writers and clock that a step of the core has named.
function waits.deliver(self, count, writers, clock)
  local ended, dead = self.ended, false
  for index = 1, count do
    local sleeper = ended[index]
    if waiting[sleeper] == self then
      local sema = semaphores[sleeper]
      waiting[sleeper] = false
      if sema:count() < 0 then
        sema:post(1)
      else
        free_dead(self, sleeper)
        dead = true
      end
    end
  end
  if writers ~= 0 then waits.wake_writers(self, writers) end
  if clock or dead then waits.wake_clock(self) end
end

--- Frees the sleepers of dead requests whose operations are in flight, or that died just after they
--- were woken.
function waits.sweep(self)
  for sleeper = 1, #semaphores do
    if taken[sleeper] == self then
      local count = semaphores[sleeper]:count()
      if waiting[sleeper] then
        if count >= 0 then free_dead(self, sleeper) end
      elseif count > 0 then
        if self.suspects[sleeper] then free_dead(self, sleeper) end
        self.suspects[sleeper] = not self.suspects[sleeper] or nil
      end
    end
  end
end

--- The caller begins to wait at the free sleeper. Returns the semaphore that it waits on.
function waits.enter(self, sleeper)
  free_count = free_count - 1
  waiting[sleeper], taken[sleeper] = self, self
  return semaphores[sleeper]
end

--- A step does not wake the caller at the sleeper until resume(), because the caller runs the step.
function waits.pause(sleeper)
  local sema = semaphores[sleeper]
  waiting[sleeper] = false
  if sema:count() > 0 then sema:wait(0) end -- Woken just as the wait timed out.
end

function waits.resume(self, sleeper)
  waiting[sleeper] = self
end

--- Returns true if the lock of the caller in the sleeper has started another operation.
function waits.is_overtaken(sleeper)
  return overtaken[sleeper] ~= nil
end

--- Frees the sleeper. Returns the results of its caller if its lock has started another operation.
function waits.leave(sleeper)
  local results = overtaken[sleeper]
  overtaken[sleeper] = nil
  return_sleeper(sleeper)
  return results
end

return waits
