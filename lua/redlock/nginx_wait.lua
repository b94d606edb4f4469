--- The waits of the requests of a worker of nginx, and how a step of the core ends them.
---
--- A slot, a number, has a semaphore on which one request at a time waits. A free slot is reused.

local core = require "redlock.core"
local semaphore = require "ngx.semaphore"
local bit = require "bit"

local native = core.nginx
local disown, overtake = native.disown, native.overtake
local band, rshift = bit.band, bit.rshift

local waits = {}

local semaphores = {} -- by slot
local waiting = {} -- slot -> driver of the operation that a request waits for, or false
local taken = {} -- slot -> driver that uses the slot, or false
local overtaken = {} -- slot -> results of a caller whose lock has started another operation
local free, free_count = {}, 0

--- Returns a free slot, which enter() takes.
function waits.free_slot()
  if free_count > 0 then return free[free_count] end
  local slot = #semaphores + 1
  semaphores[slot] = assert(semaphore.new(0))
  waiting[slot], taken[slot] = false, false
  free_count = 1
  free[1] = slot
  return slot
end

local function return_slot(slot)
  waiting[slot], taken[slot] = false, false
  free_count = free_count + 1
  free[free_count] = slot
end

-- Frees the slot of a dead request, and releases its lock.
local function free_dead(self, slot)
  if semaphores[slot]:count() ~= 0 then semaphores[slot] = assert(semaphore.new(0)) end
  disown(self.handle, slot)
  overtaken[slot] = nil
  return_slot(slot)
end

-- Returns true if the caller in the slot will go on: it waits, or was woken.
local function is_alive(self, slot)
  local count = semaphores[slot]:count()
  if taken[slot] ~= self then return false end
  if waiting[slot] == self then return count < 0 end
  return count <= 0
end

--- Frees the slot unless its caller lives.
function waits.free_if_dead(self, slot)
  if is_alive(self, slot) then return end
  if taken[slot] == self then free_dead(self, slot) else disown(self.handle, slot) end
end

--- Prepares a lock for the next operation while the caller in `slot` has not taken the last result.
--- Returns a free slot. Frees the slot of a dead caller. A release cancels the extend of a living
--- caller; raises misuse for any other operation in flight.
function waits.overtake(self, lock, slot, number)
  if is_alive(self, slot) then
    overtaken[slot] = { overtake(lock, number) }
    if waiting[slot] then
      waiting[slot] = false
      semaphores[slot]:post(1)
    end
  else
    waits.free_if_dead(self, slot)
  end
  return waits.free_slot()
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
    local slot = ended[index]
    if waiting[slot] == self then
      local sema = semaphores[slot]
      waiting[slot] = false
      if sema:count() < 0 then
        sema:post(1)
      else
        free_dead(self, slot)
        dead = true
      end
    end
  end
  if writers ~= 0 then waits.wake_writers(self, writers) end
  if clock or dead then waits.wake_clock(self) end
end

--- Frees the slots of dead requests whose operations are in flight, or that died just after they
--- were woken.
function waits.sweep(self)
  for slot = 1, #semaphores do
    if taken[slot] == self then
      local count = semaphores[slot]:count()
      if waiting[slot] then
        if count >= 0 then free_dead(self, slot) end
      elseif count > 0 then
        if self.suspects[slot] then free_dead(self, slot) end
        self.suspects[slot] = not self.suspects[slot] or nil
      end
    end
  end
end

--- The caller begins to wait in the free slot. Returns the semaphore that it waits on.
function waits.enter(self, slot)
  free_count = free_count - 1
  waiting[slot], taken[slot] = self, self
  return semaphores[slot]
end

--- A step does not wake the caller in the slot until resume(), because the caller runs the step.
function waits.pause(slot)
  local sema = semaphores[slot]
  waiting[slot] = false
  if sema:count() > 0 then sema:wait(0) end -- Woken just as the wait timed out.
end

function waits.resume(self, slot)
  waiting[slot] = self
end

--- Returns true if the lock of the caller in the slot has started another operation.
function waits.is_overtaken(slot)
  return overtaken[slot] ~= nil
end

--- Frees the slot. Returns the results of its caller if its lock has started another operation.
function waits.leave(slot)
  local results = overtaken[slot]
  overtaken[slot] = nil
  return_slot(slot)
  return results
end

return waits
