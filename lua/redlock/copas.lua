--- redlock for programs that run in copas: the same clients and locks, but what has to wait lets the other threads
--- of copas go on (loop.lua). Copas 1 has neither timers nor a way to wake a thread; nothing here needs them.

local copas = require "copas"

local loops = require "redlock.loop"

local is_yieldable = coroutine.isyieldable -- luacheck: ignore
local running, status, waits_in, yield = coroutine.running, coroutine.status, loops.waits_in, coroutine.yield

local loop = {
  outside = ": copas.addthread(function() ... end), and copas.loop() when all is set up",
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

local called, resuming = {}, false -- copas 1: who has been signalled, in turn; somebody sees to them

local function nothing() end

-- Copas 1 puts a thread that yields where the thread says, and forgets it there.
local nowhere = { insert = nothing, push = nothing }

function loop.waiter()
  return { thread = nil }
end

function loop.wait(waiter)
  waiter.thread = running()
  if pause_for_ever then pause_for_ever() else yield(waiter, nowhere) end
  waiter.thread = nil
end

-- Of a thread that was removed from the loop copas does not tell.
function loop.is_closed(waiter)
  return waiter.thread and status(waiter.thread) == "dead" or nil
end

local function resume_called()
  resuming = true
  while called[1] do
    local batch = called
    called = {}
    for index = 1, #batch do
      local waiter = batch[index]
      local thread = waiter.thread
      waiter.thread = nil
      if thread and waits_in(loop.wait, thread) then copas.addthread(thread) end -- goes on with it at once
    end
  end
  resuming = false
end

function loop.signal(waiter)
  if not waiter.thread then
    return
  elseif wake_up then
    wake_up(waiter.thread)
  else
    called[#called + 1] = waiter
    if not resuming then resume_called() end
  end
end

-- ------------------------------------------------------------------------------------------- turns

-- What copas takes for a socket: it becomes readable with the client's descriptor, or when it is called.
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

-- Those that are woken together begin what they do next before it is sent.
local function take_turn(seat)
  if wake_up then return pcall(seat.turn) end
  resuming, seat.resuming = true, true
  local ok, err = pcall(seat.turn)
  resume_called()
  seat.resuming = false
  return ok, err
end

local function look_after(seat, source)
  while seat.watch == source do
    source.asked = false
    copas.receive(source)
    source.called = false
    local ok, err = take_turn(seat)
    if ok and seat.begun then ok, err = take_turn(seat) end
    if not ok then -- Ctrl-C, for one: copas hears of it, and the others wait still
      copas.addthread(function() look_after(seat, source) end)
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
  copas.addthread(function() look_after(seat, source) end)
end

function loop.wake(seat)
  seat.watch.called = true
end

function loop.unwatch(source)
  source.called = true
end

local module = {}

--- As redlock.new(), for threads of copas.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.copas.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
