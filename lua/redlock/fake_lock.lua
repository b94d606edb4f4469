--- Locks of the fake (rl_lua_lock.c): how they are made, and the methods that ask no node.

local lease = require "redlock.fake_lease"
local message = require "redlock.fake_message"
local object = require "redlock.fake_object"
local operation = require "redlock.fake_operation"
local option = require "redlock.fake_option"
local tables = require "redlock.fake_table"

local lock = {}

local Lock, methods, records, INSIDE = object.Lock, object.lock_methods, object.records, object.INSIDE
local check_client, check_lock, failure, misuse =
  object.check_client, object.check_lock, object.failure, object.misuse
local DIRECT, WRAPPED = object.DIRECT, object.WRAPPED
local sentences = tables.sentences

local call_on_lost -- function that calls an on_lost and catches its errors

function lock.dispatch_by(fn)
  call_on_lost = fn
end

local function tell_loss(loss)
  local lost = loss.lock.object[1]
  local inside = lost and lost[INSIDE]
  local fn = inside and (inside.on_lost_of_call or inside.on_lost or loss.lock.client.on_lost)
  if fn then call_on_lost(fn, lost, loss.reason) end
end

-- Calls on_lost for each reported loss, and then on_event for each event. Calls do not nest.
local function tell_all(world)
  if world.telling then return end
  world.telling = true
  while world.losses[1] or world.events[1] do
    if world.losses[1] then
      tell_loss(table.remove(world.losses, 1))
    else
      local event = table.remove(world.events, 1)
      call_on_lost(event.on_event, event.event)
    end
  end
  world.telling = false
end

--- Reports an event to on_event.
function object.Client:tell(event)
  local on_event = self.given.on_event
  if not on_event then return end
  event.ago = 0
  self.world.events[#self.world.events + 1] = { on_event = on_event, event = event }
  tell_all(self.world)
end

--- Reports a loss to on_lost.
function Lock:tell(reason)
  local world = self.client.world
  world.losses[#world.losses + 1] = { lock = self, reason = reason }
  tell_all(world)
end

local function new_lock(client, client_object, resources, options, given)
  local self = setmetatable({
    client = client, resources = resources, options = options, depth = 0,
    object = setmetatable({}, { __mode = "v" }),
    reports = options.notify_lost or options.auto_extend,
    reentrant = given and given.reentrant,
  }, Lock)
  local world = client.world
  local made = setmetatable({
    [INSIDE] = { client = client_object, on_lost = given and given.on_lost, finalizer = object.finalizer(function()
      world.garbage[#world.garbage + 1] = self
    end) },
  }, object.lock_class)
  if self.reentrant == nil then self.reentrant = client.reentrant end
  self.object[1] = made
  records[made] = self
  client.locks[self] = true
  return made
end

local function longest_of(resources)
  local longest = 0
  for _, resource in ipairs(resources) do longest = math.max(longest, #resource) end
  return longest
end

local RESERVED = "the name of a resource is reserved for the library: names that end in "
  .. "':redlock-fence', ':redlock-queue', ':redlock-reserved' or ':redlock-wait', and 'redlock:lineage'"

local function is_reserved(key)
  return key:find(":redlock%-fence$") or key:find(":redlock%-queue$")
    or key:find(":redlock%-keep$") or key:find(":redlock%-wait$")
    or key == "redlock:lineage"
end

--- Raises the mistakes of new_lock(): its options and resources. Returns the options.
function lock.check_options(client, above, given, resources, level)
  local options, wrong = option.resolve(above, given)
  if not options then misuse(level + 1, "%s", wrong) end
  local longest = longest_of(resources)
  if longest > tables.KEY_MAX - #client.prefix then
    misuse(level + 1, "resource is too long: it has %d bytes, and prefix and resource together may have %d", longest,
      tables.KEY_MAX)
  end
  for _, resource in ipairs(resources) do
    if is_reserved(client.prefix .. resource) then
      misuse(level + 1, "'%s': %s", message.resources(resources), RESERVED)
    end
  end
  if option.has_permits(options) and #resources > 1 then
    misuse(level + 1, "'%s': %s", message.resources(resources), option.SEVERAL)
  end
  local too_long = client.guard and option.too_long(options, client.guard)
  if too_long then misuse(level + 1, "'%s': %s", message.resources(resources), too_long) end
  return options
end

local own_names = { ["redlock-bootstrap"] = true, ["redlock-doctor"] = true }

local function closed(resources)
  if #resources == 1 and own_names[resources[1]] then return failure("closed") end
  return failure("closed", "'" .. message.resources(resources) .. "': " .. sentences.closed)
end

--- (client, resource or list of resources, options) -> lock; or nil, message, code.
function lock.new(of, resource, given)
  local client = check_client(of, WRAPPED, "client:new_lock()")
  local resources = { resource }
  if type(resource) == "table" then
    for index = 1, #resource do resources[index] = resource[index] end
  end
  local options = lock.check_options(client, client.options, given, resources, WRAPPED)
  if client.closed then return closed(resources) end
  return new_lock(client, of, resources, options, given)
end

-- Returns why a lease cannot be attached by a client, or nil.
local function wrong_handover(client, handover, given)
  if handover.count ~= #client.nodes then
    return "it was detached by a client with another number of nodes"
  elseif handover.prefix ~= client.prefix then
    return "it was detached by a client with another prefix"
  elseif (given and given.fence or client.options.fence) and not handover.fence then
    return "fence: the lease that was detached was acquired without a fencing token"
  end
end

--- Returns the handed lease for an acquire with the options `given`, which may replace the rest of
--- hold_at_least.
function lock.handed(handover, given)
  if not handover or not given or given.hold_at_least == nil then return handover end
  local copy = {}
  for name, value in pairs(handover) do copy[name] = value end
  copy.keep_until = nil
  return copy
end

--- (client, text of lock:detach(), options) -> lock; or nil, message, code.
function lock.attach(of, text, given)
  local client = check_client(of, WRAPPED, "client:attach()")
  if client.closed then return failure("closed") end
  local handover = client.world.handovers[text]
  if not handover then
    return failure("lost", "the text was not written by detaching a lock, or it was changed")
  end
  local wrong = wrong_handover(client, handover, given)
  if wrong then misuse(WRAPPED, "%s", wrong) end
  local above = {}
  for name, value in pairs(client.options) do above[name] = value end
  above.ttl, above.lock_delay, above.hold_at_least = handover.ttl, handover.lock_delay, 0
  local options = lock.check_options(client, above, given, handover.resources, WRAPPED)
  local own = {}
  for name, value in pairs(options) do own[name] = value end
  own.fence, own.permits = handover.fence ~= nil, handover.permits
  local made = new_lock(client, of, handover.resources, own, given)
  records[made].handed, records[made].slot = lock.handed(handover, given), handover.slot
  return made
end

-- ---------------------------------------------------------------------------------------- methods

function methods.result(of)
  local self = check_lock(of, DIRECT, "lock:result()")
  local busy = self.operation
  if busy and busy.abandoned then self.client.world.clock:turn() end
  if self.operation then return nil, "the operation has not ended yet", "pending" end
  if not self.result then misuse(DIRECT, "lock:result() before any operation") end
  return operation.outcome(self)
end

function methods.cancel(of)
  local self = check_lock(of, DIRECT, "lock:cancel()")
  operation.cancel(self, "cancelled")
end

function methods.remaining(of)
  local self = check_lock(of, DIRECT, "lock:remaining()")
  return option.whole(lease.left(self.lease))
end

function methods.is_held(of)
  local self = check_lock(of, DIRECT, "lock:is_held()")
  return lease.lasts(self.lease)
end

function methods.margin(of)
  local self = check_lock(of, DIRECT, "lock:margin()")
  return lease.lasts(self.lease) and lease.margin(self.lease) or nil
end

function methods.lost(of)
  local self = check_lock(of, DIRECT, "lock:lost()")
  local reason, since = lease.loss_of(self)
  if not reason then return nil end
  return reason, option.whole(self.client.world.clock.now - since)
end

function methods.resource(of)
  local self = check_lock(of, DIRECT, "lock:resource()")
  return self.resources[1]
end

function methods.resources(of)
  local self = check_lock(of, DIRECT, "lock:resources()")
  local list = {}
  for index, resource in ipairs(self.resources) do list[index] = resource end
  return list
end

function methods.token(of)
  local self = check_lock(of, DIRECT, "lock:token()")
  return lease.lasts(self.lease) and self.lease.token or nil
end

function methods.fence(of)
  local self = check_lock(of, DIRECT, "lock:fence()")
  return lease.lasts(self.lease) and self.lease.fence or nil
end

function methods.slot(of)
  local self = check_lock(of, DIRECT, "lock:slot()")
  return lease.lasts(self.lease) and self.lease.slot or nil
end

function methods.ttl(of)
  local self = check_lock(of, DIRECT, "lock:ttl()")
  return self.options.ttl
end

function methods.votes(of)
  local self = check_lock(of, DIRECT, "lock:votes()")
  local list = {}
  for index, node in ipairs(self.client.nodes) do
    local vote = self.votes and self.votes[index] or { vote = "unknown" }
    list[index] = { node = node.name, vote = vote.vote, error = vote.error, latency = vote.latency }
  end
  return list
end

function object.lock_class.__tostring(of)
  local self = records[of]
  local name, left = message.resources(self.resources), option.whole(lease.left(self.lease))
  local busy = self.operation
  if busy and not busy.abandoned then return ("redlock.lock %s (%s)"):format(name, tables.gerunds[busy.name]) end
  if left > 0 then return ("redlock.lock %s (held, %d ms left)"):format(name, left) end
  return ("redlock.lock %s (not held)"):format(name)
end

function object.lock_class.__close(of)
  local self = records[of]
  operation.cancel(self, "cancelled")
  if self.operation or not self.client.closed then self.client.world.clock:wait(operation.release(self)) end
end

return lock
