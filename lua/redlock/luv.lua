--- redlock for libuv, and so for Neovim: clients and locks whose waits let other coroutines run
--- (loop.lua). A callback of the loop resumes a waiting coroutine; in Neovim vim.schedule() does,
--- so that the coroutine may call the whole API.

local vim = rawget(_G, "vim")
local uv = vim and (vim.uv or vim.loop) or require "luv"

local loops = require "redlock.loop"

local create, resume, running, status = coroutine.create, coroutine.resume, coroutine.running, coroutine.status
local is_yieldable = coroutine.isyieldable -- luacheck: ignore
local waits_in, yield = loops.waits_in, coroutine.yield
local traceback = type(debug) == "table" and debug.traceback or function(_, text) return text end

local loop = {
  outside = ": coroutine.wrap(function() ... end)(), then uv.run()",
}

--- The libuv of the process is one loop, which does not tell if it runs.
function loop.here()
  local thread, is_main = running()
  return thread and not is_main and (not is_yieldable or is_yieldable()) and uv or nil
end

-- When the Lua state ends, luv 1.44 frees each handle that is closing, and then runs the loop,
-- which uses it: a segmentation fault. Any coroutine may end the program, and the loop may never
-- run again. So a timer is reused, not closed, and the loop closes a poll handle (unwatch()).
-- The program may close all handles.
local idle_timers = {}

-- Calls fn() from the loop.
local function call_soon(fn)
  if vim and vim.schedule then
    vim.schedule(fn)
  else
    local timer = table.remove(idle_timers)
    if not timer or timer:is_closing() then timer = uv.new_timer() end
    timer:start(0, 0, function()
      idle_timers[#idle_timers + 1] = timer
      fn()
    end)
  end
end

-- Resumes a coroutine. A callback of its own raises the coroutine's error, so that the loop handles
-- it and the other coroutines are woken nevertheless.
local function resume_here(thread)
  local ok, err = resume(thread)
  if ok then return end
  local text = traceback(thread, tostring(err))
  call_soon(function() error(text, 0) end)
end

function loop.spawn(fn)
  call_soon(function() resume_here(create(fn)) end)
  return true
end

-- ----------------------------------------------------------------------------------------- waiting

local signalled = {} -- sleepers to resume, in order
local resuming, scheduled = false, false -- resume_signalled() runs; it will run

local function resume_signalled()
  scheduled, resuming = false, true
  while signalled[1] do
    local batch = signalled
    signalled = {}
    for index = 1, #batch do
      local sleeper = batch[index]
      local thread = sleeper.thread
      sleeper.signalled, sleeper.thread = false, nil
      if thread and waits_in(loop.wait, thread) then resume_here(thread) end
    end
  end
  resuming = false
end

function loop.sleeper()
  return { thread = nil, signalled = false }
end

function loop.wait(sleeper)
  sleeper.thread = running()
  yield()
  sleeper.thread = nil
end

function loop.is_closed(sleeper)
  return sleeper.thread ~= nil and status(sleeper.thread) == "dead"
end

function loop.signal(sleeper)
  if sleeper.signalled or not sleeper.thread then return end
  sleeper.signalled = true
  signalled[#signalled + 1] = sleeper
  if not resuming and not scheduled then
    scheduled = true
    call_soon(resume_signalled)
  end
end

-- ------------------------------------------------------------------------------------------- turns

-- The poll handle keeps the loop alive while a coroutine waits, but not for watched leases alone.
local function adjust_poll(seat)
  local poll = seat.watch
  if not poll then return end
  if not seat.wanted() then
    seat.leave()
  elseif seat.rests ~= (next(seat.waits) == nil) then
    seat.rests = not seat.rests
    if seat.rests then poll:unref() else poll:ref() end
  end
end

-- Coroutines that are woken together start their next operations before the turn sends them.
local function take_turn(seat)
  scheduled = true -- by this
  local ok, err = pcall(seat.turn) -- Ctrl-C may raise an error anywhere.
  if not ok then call_soon(function() error(err, 0) end) end
  if vim and vim.schedule then
    scheduled = signalled[1] ~= nil
    if scheduled then vim.schedule(resume_signalled) end
  else
    seat.resuming = true
    resume_signalled()
    seat.resuming = false
  end
end

function loop.attend(seat, _, descriptor)
  if not seat.watch then
    local poll = assert(uv.new_poll(descriptor))
    seat.watch, seat.rests = poll, false
    poll:start("r", function()
      take_turn(seat)
      if seat.begun then take_turn(seat) end
      adjust_poll(seat)
    end)
  end
  adjust_poll(seat)
end

function loop.wake(seat)
  if not seat.resuming then adjust_poll(seat) end
end

local stopped_polls, prepare = {}, nil

local function close_stopped_polls()
  prepare:stop()
  local polls = stopped_polls
  stopped_polls = {}
  for index = 1, #polls do
    if not polls[index]:is_closing() then polls[index]:close() end
  end
end

-- Stops the handle, because the number of the descriptor may soon be reused. A close stops that
-- number in the loop once more, so it comes before the loop polls again.
function loop.unwatch(poll)
  if poll:is_closing() then return end
  poll:stop()
  if vim then
    poll:close()
    return
  end
  stopped_polls[#stopped_polls + 1] = poll
  if not prepare or prepare:is_closing() then prepare = uv.new_prepare() end
  prepare:start(close_stopped_polls)
end

local module = {}

--- Like redlock.new(), for coroutines that libuv runs.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.luv.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
