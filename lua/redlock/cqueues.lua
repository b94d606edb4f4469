--- redlock for cqueues: clients and locks whose waits let other coroutines run (loop.lua).

local condition = require "cqueues.condition"
local cqueues = require "cqueues"

local loops = require "redlock.loop"

local poll, running = cqueues.poll, cqueues.running

local type_of = cqueues.type

local loop = { here = running, sleeper = condition.new, collects = true }

local waits_in = setmetatable({}, { __mode = "kv" }) -- sleeper -> controller

function loop.wait(sleeper)
  waits_in[sleeper] = running()
  poll(sleeper)
end

-- A closed controller never resumes its coroutines.
function loop.is_closed(sleeper)
  return type_of(waits_in[sleeper]) == "closed controller"
end

function loop.signal(sleeper)
  sleeper:signal()
end

function loop.spawn(fn)
  local controller = running()
  if controller then controller:wrap(fn) end
  return controller
end

-- One coroutine in each controller polls the client for all coroutines that wait there, so that a
-- reply does not wake all of them. The coroutines that it has woken run before it checks wanted().
-- The client may be closed before it begins.
local function serve(seat, descriptor, called)
  local source = { pollfd = descriptor, events = "r" }
  while seat.watch == called do
    poll(source, called)
    local ok, err = pcall(seat.turn)
    if not ok then -- For example Ctrl-C: the controller gets the error, and the other coroutines still wait.
      running():wrap(function() serve(seat, descriptor, called) end)
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
  controller:wrap(function() serve(seat, descriptor, called) end)
end

function loop.wake(seat)
  seat.watch:signal()
end

-- A controller keeps a descriptor until cancel(), and fails if the descriptor is closed before.
-- cancel() wakes the polls of all controllers.
function loop.unwatch(called, descriptor)
  called:signal()
  if descriptor then cqueues.cancel(descriptor) end
end

function loop.block(handle)
  poll(handle)
end

local module = {}

--- Like redlock.new(), for coroutines of a cqueues controller.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.cqueues.Client
---@nodiscard
function module.new(nodes, given)
  local client = loops.new(loop, nodes, given, 2)
  return client
end

return module
