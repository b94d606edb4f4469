--- redlock for programs that run in cqueues: the same clients and locks, but what has to wait lets
--- the other coroutines go on (loop.lua).

local condition = require "cqueues.condition"
local cqueues = require "cqueues"

local loops = require "redlock.loop"

local poll, running = cqueues.poll, cqueues.running

local type_of = cqueues.type

local loop = { here = running, waiter = condition.new, collects = true }

local waits_in = setmetatable({}, { __mode = "kv" }) -- by waiter: the controller

function loop.wait(waiter)
  waits_in[waiter] = running()
  poll(waiter)
end

-- A controller that was closed resumes none of its coroutines.
function loop.is_closed(waiter)
  return type_of(waits_in[waiter]) == "closed controller"
end

function loop.signal(waiter)
  waiter:signal()
end

function loop.spawn(fn)
  local controller = running()
  if controller then controller:wrap(fn) end
  return controller
end

-- One coroutine in each controller polls the client for all that wait there, so that a reply does not wake everyone.
-- Those that it has woken run before it looks whether anybody waits. The client may be closed before it has begun.
local function look_after(seat, descriptor, called)
  local source = { pollfd = descriptor, events = "r" }
  while seat.watch == called do
    poll(source, called)
    local ok, err = pcall(seat.turn)
    if not ok then -- Ctrl-C, for one: the controller hears of it, and the others wait still
      running():wrap(function() look_after(seat, descriptor, called) end)
      error(err, 0)
    end
    if not seat.wanted() then poll(0) end
    if seat.watch == called and not seat.wanted() then seat.leave() end
  end
end

function loop.attend(seat, controller, descriptor)
  if seat.watch then return end
  local called = condition.new()
  seat.watch = called
  controller:wrap(function() look_after(seat, descriptor, called) end)
end

function loop.wake(seat)
  seat.watch:signal()
end

-- A controller keeps a descriptor until it is told otherwise, and fails when it has been closed. Those of all
-- controllers that poll it look again.
function loop.unwatch(called, descriptor)
  called:signal()
  if descriptor then cqueues.cancel(descriptor) end
end

function loop.block(handle)
  poll(handle)
end

local module = {}

--- As redlock.new(), for use inside of a cqueues controller.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.cqueues.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
