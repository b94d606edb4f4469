--- The turns of a client in a loop of coroutines, and the waits that they end (loop.lua).

local core = require "redlock.core"
local credentials = require "redlock.credentials"
local report = require "redlock.loop_report"

local pending, grace, identify, next_ended, release_send =
  core.pending, core.grace, core.id, core.next_ended, core.release_send
local next_asked, next_lost, watched = core.next_asked, core.next_lost, core.watched
local set_timer, now = core.set_timer, core.now

local CHECK_INTERVAL = 1 -- seconds between checks of leases and for closed coroutines

local weak_keys = { __mode = "k" }

local turns = {}

--- Returns the resource as a message shows it.
function turns.shown(resource)
  if type(resource) == "table" then resource = resource[1] end
  local text = resource:sub(1, 80):gsub("[^ -~]", function(byte) return ("\\x%02x"):format(byte:byte()) end)
  return "'" .. text .. "'"
end
local shown = turns.shown

-- ------------------------------------------------------------------------------------------- turns

-- Returns the lock with this id, or nil if its handle has been collected. The finalizer of another
-- object, such as a controller of cqueues, may still reach such a lock.
local function find(self, id)
  return self.handles[id] and self.by_id[id]
end

local function report_losses(self)
  local callback, subject, reason = next_lost(self.handle)
  while callback do
    if reason then subject = find(self, identify(subject)) end -- The subject of on_event is an event.
    if subject then report(self.loop, callback, subject, reason) end
    callback, subject, reason = next_lost(self.handle)
  end
end

-- Takes a wait out of its seat. The loop may drop the client if no wait is left.
local function leave_seat(self, wait)
  local seat = wait.seat
  if not seat.waits[wait] then return end
  seat.waits[wait] = nil
  if seat.watch and not seat.turning and next(seat.waits) == nil then self.loop.wake(seat) end
end

-- The credentials function runs in a coroutine of its own, too.
local function ask_for_credentials(self)
  local handle = self.handle
  local asked, node, index = next_asked(handle)
  while asked do
    local fn, name, number = asked, node, index
    local function ask() credentials.ask(handle, fn, name, number) end
    if not self.loop.spawn(ask) then coroutine.wrap(ask)() end
    asked, node, index = next_asked(handle)
  end
end

-- Releases a lock whose coroutine was closed during the acquire. Otherwise it would be held until
-- the collector runs, or until the end of the ttl.
local function release_for_closed(lock)
  if lock and lock.operation == "acquire" and lock.handle:result() then release_send(lock.handle) end
end

-- Notes a lease whose coroutine has not run since the grant: the loop must not extend it for ever
-- if the coroutine is gone.
local function note_grant(self, lock, wait)
  if lock and lock.operation == "acquire" and watched(lock.handle) then
    self.leases[lock] = wait.seat
    self.untaken[wait] = { id = lock.id, deadline = now() + lock.handle:ttl() / 1000, turns = 0 }
    set_timer(self.handle, CHECK_INTERVAL)
  end
end

--- Wakes the coroutine that waits for an operation that has ended.
local function wake(self, id, wait)
  local loop, sleeper = self.loop, wait.sleeper
  self.waiting[id], wait.ended = nil, true
  leave_seat(self, wait)
  if loop.is_closed and loop.is_closed(sleeper) then
    release_for_closed(find(self, id))
  else
    note_grant(self, find(self, id), wait)
    loop.signal(sleeper)
  end
end
turns.wake = wake

-- Releases leases whose coroutines have not run since the grant: after the ttl and at least three
-- turns. A living coroutine has run by then, even on a slow machine.
local function release_untaken(self)
  for wait, grant in pairs(self.untaken) do
    local lock = find(self, grant.id)
    grant.turns = grant.turns + 1
    if not lock then
      self.untaken[wait] = nil
    elseif grant.turns > 2 and now() >= grant.deadline then
      self.untaken[wait], self.leases[lock] = nil, nil
      wait.results = { nil, shown(lock.handle:resource()) .. ": released, because its coroutine did not go on",
        "cancelled" }
      lock.operation = "release"
      release_send(lock.handle)
    end
  end
end

-- Cancels the acquires of closed coroutines, which would go on until the end of their budget.
local function sweep(self)
  local is_closed = self.loop.is_closed
  if not is_closed or next(self.waiting) == nil then return end
  set_timer(self.handle, CHECK_INTERVAL)
  if now() < self.sweep_at then return end
  self.sweep_at = now() + CHECK_INTERVAL
  for id, wait in pairs(self.waiting) do
    local lock = is_closed(wait.sleeper) and find(self, id)
    if lock and lock.operation == "acquire" then lock.handle:cancel() end
  end
end

--- Processes replies, wakes the coroutines whose operations have ended, and reports losses.
local function process(self)
  local handle, waiting, count = self.handle, self.waiting, 0
  handle:process()
  local id = next_ended(handle)
  while id do
    local wait = waiting[id]
    if wait then
      wake(self, id, wait)
      count = count + 1
    end
    id = next_ended(handle)
  end
  self.several_ended = count > 1
  report_losses(self)
  ask_for_credentials(self)
end
turns.process = process

-- Returns true if a lease that was acquired at this seat must be extended, or its loss reported.
-- Leases of an outer loop do not keep a nested loop running.
local function has_watched_leases(self, seat)
  for lock, seat_of_lease in pairs(self.leases) do
    if not find(self, lock.id) or not watched(lock.handle) then
      self.leases[lock] = nil
    elseif seat_of_lease == seat then
      return true
    end
  end
  return false
end

-- Returns true if a coroutine waits. If a waiting lock was collected, its coroutine was closed:
-- its wait must not keep the loop running.
local function has_waits(self, seat)
  local wait = next(seat.waits)
  while wait and wait.id and not find(self, wait.id) do
    self.waiting[wait.id], seat.waits[wait] = nil, nil
    wait = next(seat.waits)
  end
  return wait ~= nil
end

local function is_wanted(self, seat)
  return not self.gone and (has_waits(self, seat) or has_watched_leases(self, seat))
end

-- Wakes the coroutines that wait for a condition: each checks it in every turn. Drops expired
-- waits, because a closed coroutine never checks again.
local function wake_checkers(self)
  local time = next(self.checkers) and now()
  for wait in pairs(self.checkers) do
    self.loop.signal(wait.sleeper)
    if wait.deadline > time then
      set_timer(self.handle, wait.deadline - time)
    else
      self.checkers[wait] = nil
      leave_seat(self, wait)
    end
  end
end

local function turn(self, seat)
  if self.gone then return end
  seat.begun, seat.turning = false, true
  sweep(self)
  process(self)
  wake_checkers(self)
  release_untaken(self)
  if next(self.leases) ~= nil then set_timer(self.handle, CHECK_INTERVAL) end
  seat.turning = false
end

-- Takes the descriptor from the loop, which otherwise keeps the client from the collector.
local function leave(self, seat)
  local watch = seat.watch
  seat.watch = nil
  if watch then self.loop.unwatch(watch, self.handle:pollfd()) end
end

-- Creates the seat of the running loop. Each loop has its own seat, because another loop may not
-- run before this one has ended.
local function new_seat(self, here)
  local seat = { waits = self.loop.collects and setmetatable({}, weak_keys) or {} }
  seat.turn = function() turn(self, seat) end
  seat.wanted = function() return is_wanted(self, seat) end
  seat.leave = function() leave(self, seat) end
  self.seats[here] = seat
  return seat
end

-- Makes the loop serve the client. Returns nothing if the process has no descriptor left.
local function attend(self, seat, here)
  local descriptor = not self.gone and self.handle:pollfd()
  if descriptor then self.loop.attend(seat, here, descriptor) end
  return descriptor
end

-- ----------------------------------------------------------------------------------------- waiting

--- Waits for a condition, for `seconds` at most.
local function wait_for(self, here, seconds, has_come)
  local seat, deadline = self.seats[here] or new_seat(self, here), now() + seconds
  local wait = { sleeper = self.loop.sleeper(), deadline = deadline }
  wait.seat, seat.waits[wait], self.checkers[wait] = seat, true, true
  while not self.gone and not has_come() and now() < deadline and attend(self, seat, here) do
    set_timer(self.handle, deadline - now())
    self.loop.wait(wait.sleeper)
  end
  self.checkers[wait] = nil
  leave_seat(self, wait)
end
turns.wait_for = wait_for

-- Serves nodes that were not needed for the decision for the grace period
-- (csrc/core/lifecycle/rl_grace.c), because the loop may not run for a while afterwards.
local function serve_late_nodes(self, handle, wait, here)
  local seconds = grace(handle)
  if here then
    wait_for(self, here, seconds or 0, function() return wait.results or not grace(handle) end)
  else
    while seconds and not wait.results do
      set_timer(self.handle, seconds)
      self.loop.block(self.handle)
      process(self)
      seconds = grace(handle)
    end
  end
end

local function without_descriptor(handle)
  return shown(handle:resource()) .. ": no descriptor is left to wait with, so nothing was sent; "
    .. "raise the limit of open files (ulimit -n)"
end

local function wait_in_loop(self, lock, wait, here)
  local handle, loop, seat = lock.handle, self.loop, self.seats[here] or new_seat(self, here)
  local alone = not self.several_ended and next(self.waiting) == nil
  self.waiting[lock.id], wait.seat, seat.waits[wait] = wait, seat, true
  wait.id = lock.id
  if (not seat.watch or seat.rests) and not attend(self, seat, here) then
    handle:cancel()
    wait.results = { nil, without_descriptor(handle), "unavailable" }
  elseif seat.resuming then
    seat.begun = true -- The turn sends it after all woken coroutines have run.
  elseif alone then
    process(self)
  end
  while not wait.ended and pending(handle) do loop.wait(wait.sleeper) end
  if not wait.ended then
    if self.waiting[lock.id] == wait then self.waiting[lock.id] = nil end
    leave_seat(self, wait)
  end
end

-- Waits outside of a loop: each call polls.
local function wait_by_itself(self, lock, wait)
  process(self)
  while not wait.results and pending(lock.handle) do
    self.loop.block(self.handle)
    process(self)
  end
end

--- Waits until the operation of the lock has ended: in the loop `here`, or outside of a loop.
function turns.wait(self, lock, wait, here)
  if here then wait_in_loop(self, lock, wait, here) else wait_by_itself(self, lock, wait) end
  if grace(lock.handle) then serve_late_nodes(self, lock.handle, wait, here) end
end

--- Makes the loop serve a lease even if no coroutine waits.
function turns.watch_lease(self, lock, here)
  local seat = self.seats[here] or new_seat(self, here)
  self.leases[lock] = seat
  attend(self, seat, here)
  set_timer(self.handle, CHECK_INTERVAL)
end

--- Wakes seats without waits, because a lease that they served has ended.
function turns.wake_idle_seats(self)
  for _, seat in pairs(self.seats) do
    if seat.watch and next(seat.waits) == nil then self.loop.wake(seat) end
  end
end

return turns
