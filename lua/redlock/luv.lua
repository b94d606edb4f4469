--- redlock for programs that run in libuv, and so for Neovim: the same clients and locks, but what has to wait lets
--- the other coroutines go on (loop.lua). A coroutine that waits is resumed by a callback of the loop; in Neovim by
--- vim.schedule(), so that it may call whatever a script may.

local vim = rawget(_G, "vim")
local uv = vim and (vim.uv or vim.loop) or require "luv"

local loops = require "redlock.loop"

local create, resume, running, status = coroutine.create, coroutine.resume, coroutine.running, coroutine.status
local is_yieldable = coroutine.isyieldable -- luacheck: ignore
local waits_in, yield = loops.waits_in, coroutine.yield
local traceback = type(debug) == "table" and debug.traceback or function(_, text) return text end

local loop = {
  outside = ": coroutine.wrap(function() ... end)(), and uv.run() when all is set up",
}

--- The libuv of the process is one loop. It cannot be asked whether it runs.
function loop.here()
  local thread, is_main = running()
  return thread and not is_main and (not is_yieldable or is_yieldable()) and uv or nil
end

-- Calls fn() from the loop.
local function call_soon(fn)
  if vim and vim.schedule then
    vim.schedule(fn)
  else
    local timer = uv.new_timer()
    timer:start(0, 0, function()
      timer:close()
      fn()
    end)
  end
end

-- What a coroutine raises is raised in a callback of its own: the loop does with it what it does with errors, and
-- the other coroutines are woken nevertheless.
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

local called, resuming, scheduled = {}, false, false -- who has been signalled, in turn; who sees to them

local function resume_called()
  scheduled, resuming = false, true
  while called[1] do
    local batch = called
    called = {}
    for index = 1, #batch do
      local waiter = batch[index]
      local thread = waiter.thread
      waiter.called, waiter.thread = false, nil
      if thread and waits_in(loop.wait, thread) then resume_here(thread) end
    end
  end
  resuming = false
end

function loop.waiter()
  return { thread = nil, called = false }
end

function loop.wait(waiter)
  waiter.thread = running()
  yield()
  waiter.thread = nil
end

function loop.is_closed(waiter)
  return waiter.thread ~= nil and status(waiter.thread) == "dead"
end

function loop.signal(waiter)
  if waiter.called or not waiter.thread then return end
  waiter.called = true
  called[#called + 1] = waiter
  if not resuming and not scheduled then
    scheduled = true
    call_soon(resume_called)
  end
end

-- ------------------------------------------------------------------------------------------- turns

-- The poll handle keeps the loop alive while somebody waits, and not for leases that are only looked after.
local function settle(seat)
  local poll = seat.watch
  if not poll then return end
  if not seat.wanted() then
    seat.leave()
  elseif seat.rests ~= (next(seat.waiters) == nil) then
    seat.rests = not seat.rests
    if seat.rests then poll:unref() else poll:ref() end
  end
end

-- Those that are woken together begin what they do next before it is sent.
local function take_turn(seat)
  scheduled = true -- by this
  local ok, err = pcall(seat.turn) -- Ctrl-C, for one, may raise an error anywhere
  if not ok then call_soon(function() error(err, 0) end) end
  if vim and vim.schedule then
    scheduled = called[1] ~= nil
    if scheduled then vim.schedule(resume_called) end
  else
    seat.resuming = true
    resume_called()
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
      settle(seat)
    end)
  end
  settle(seat)
end

function loop.wake(seat)
  if not seat.resuming then settle(seat) end
end

-- The handle is closed, for the descriptor's number may be another's soon.
function loop.unwatch(poll)
  poll:stop()
  poll:close()
end

local module = {}

--- As redlock.new(), for coroutines that libuv runs.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.luv.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
