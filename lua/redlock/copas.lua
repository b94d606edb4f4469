--- redlock for copas: clients and locks whose waits let the other threads of copas run (loop.lua).
--- Copas 1 has neither timers nor a way to wake a thread; this file needs neither.

local copas = require "copas"

local loops = require "redlock.loop"

local is_yieldable = coroutine.isyieldable -- luacheck: ignore
local running, status, waits_in, yield = coroutine.running, coroutine.status, loops.waits_in, coroutine.yield

local loop = {
  outside = ": copas.addthread(function() ... end), then copas.loop()",
}

local pause, wake_up = copas.pause or copas.sleep, copas.wakeup
local pause_for_ever = copas.pauseforever or pause and function() pause(-1) end

local HERE = {} -- there is one loop

function loop.here()
  local thread, is_main = running()
  return thread and not is_main and (not is_yieldable or is_yieldable()) and HERE or nil
end

function loop.spawn(fn)
  copas.addthread(fn)
  return true
end

-- ----------------------------------------------------------------------------------------- waiting

local signalled, resuming = {}, false -- copas 1: sleepers to resume in order; resume_signalled() runs

local function nothing() end

-- Copas 1 puts a yielding thread into the queue that the thread yields: this one drops it.
local nowhere = { insert = nothing, push = nothing }

function loop.sleeper()
  return { thread = nil }
end

function loop.wait(sleeper)
  sleeper.thread = running()
  if pause_for_ever then pause_for_ever() else yield(sleeper, nowhere) end
  sleeper.thread = nil
end

-- Returns nil unless the thread is dead: copas does not report that a thread was removed from the
-- loop.
function loop.is_closed(sleeper)
  return sleeper.thread and status(sleeper.thread) == "dead" or nil
end

local function resume_signalled()
  resuming = true
  while signalled[1] do
    local batch = signalled
    signalled = {}
    for index = 1, #batch do
      local sleeper = batch[index]
      local thread = sleeper.thread
      sleeper.thread = nil
      if thread and waits_in(loop.wait, thread) then copas.addthread(thread) end -- resumes it at once
    end
  end
  resuming = false
end

function loop.signal(sleeper)
  if not sleeper.thread then
    return
  elseif wake_up then
    wake_up(sleeper.thread)
  else
    signalled[#signalled + 1] = sleeper
    if not resuming then resume_signalled() end
  end
end

-- ------------------------------------------------------------------------------------------- turns

-- A stand-in for a socket: it is readable when the client's descriptor is, or after wake().
local source_methods = {}
local source_class = { __index = source_methods }

function source_methods.getfd(source)
  return source.descriptor
end

function source_methods.dirty(source)
  return source.called
end

function source_methods.receive(source)
  if source.asked then return "" end
  source.asked = true
  return nil, "timeout"
end

function source_methods.close() end

function source_methods.settimeout()
  return 1
end

-- Coroutines that are woken together start their next operations before the turn sends them.
local function take_turn(seat)
  if wake_up then return pcall(seat.turn) end
  resuming, seat.resuming = true, true
  local ok, err = pcall(seat.turn)
  resume_signalled()
  seat.resuming = false
  return ok, err
end

local function serve(seat, source)
  while seat.watch == source do
    source.asked = false
    copas.receive(source)
    source.called = false
    local ok, err = take_turn(seat)
    if ok and seat.begun then ok, err = take_turn(seat) end
    if not ok then -- For example Ctrl-C: copas gets the error, and the other threads still wait.
      copas.addthread(function() serve(seat, source) end)
      error(err, 0)
    end
    if pause and not seat.wanted() then pause(0) end
    if seat.watch == source and not seat.wanted() then seat.leave() end
  end
end

function loop.attend(seat, _, descriptor)
  if seat.watch then return end
  local source = setmetatable({ descriptor = descriptor, asked = false, called = false }, source_class)
  seat.watch = source
  copas.addthread(function() serve(seat, source) end)
end

function loop.wake(seat)
  seat.watch.called = true
end

function loop.unwatch(source)
  source.called = true
end

local module = {}

--- Like redlock.new(), for threads of copas.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.copas.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
