--- The world of the fake: a clock, nodes, and the acquires that wait.

local clock = require "redlock.fake_clock"
local lease = require "redlock.fake_lease"
local node = require "redlock.fake_node"
local operation = require "redlock.fake_operation"

local World = {}
World.__index = World

local world = {}

function world.new()
  return setmetatable({
    clock = clock.new(),
    nodes = {}, -- by name and database
    clients = setmetatable({}, { __mode = "k" }),
    waiters = {}, -- acquires that wait, in the order of their arrival
    version = 0, -- of what an acquire depends on
    everywhere = nil, outcomes = {}, -- what the test has set
    handovers = {}, -- leases between detach() and attach(), by their texts
    leftovers = {}, -- releases that no node has confirmed
    losses = {}, events = {}, -- to report to on_lost and on_event, in their order
    garbage = {}, -- locks that the collector has freed
    tokens = 0, random = 1, -- state of new_token()
  }, World)
end

--- Forgets all locks, coroutines and settings. Clients stay as they are.
function World:reset()
  self.everywhere, self.outcomes, self.leftovers, self.losses, self.events = nil, {}, {}, {}, {}
  self.telling, self.changing = false, false
  for _, at in pairs(self.nodes) do at:reset() end
  for client in pairs(self.clients) do client:forget() end
  self.waiters, self.handovers, self.leftovers, self.garbage = {}, {}, {}, {}
  self.clock:reset()
end

--- Returns the node with that name and database.
function World:node(name, db)
  local key = name .. "/" .. db
  self.nodes[key] = self.nodes[key] or node.new(name, self.clock)
  return self.nodes[key]
end

--- Returns what the test has set for a lock on these resources: "taken", "unavailable" or nil.
function World:outcome(resources)
  for _, resource in ipairs(resources) do
    if self.outcomes[resource] then return self.outcomes[resource] end
  end
  return self.everywhere
end

--- Sets the outcome of a resource, or of all resources.
function World:set(outcome, resource)
  if resource == nil then self.everywhere = outcome else self.outcomes[resource] = outcome end
  self:change()
end

-- Repeats the releases that no node had confirmed.
local function clear_up(self)
  local rest = self.leftovers
  self.leftovers = {}
  for _, left in ipairs(rest) do
    local refused = self:outcome(left.resources) == "unavailable"
    local kind = refused and "error"
      or left.node:call(function(at) at:release(left.keys, left.token, left.keep_until) end, function() end)
    if kind == "error" then self.leftovers[#self.leftovers + 1] = left end
  end
end

--- Something has changed: lets the waiting acquires try again, in their order.
function World:change()
  self.version = self.version + 1
  if self.changing then return end
  self.changing = true
  clear_up(self)
  local version
  repeat
    version = self.version
    local waiters = {}
    for index, waiter in ipairs(self.waiters) do waiters[index] = waiter end
    for _, waiter in ipairs(waiters) do operation.retry(waiter) end
  until version == self.version
  self.changing = false
end

-- Deletes the keys of a lease on all nodes.
local function forget_keys(own)
  for _, at in ipairs(own.client.nodes) do at:release(own.keys, own.token) end
end

local function is_meant(own, lock, resource)
  for _, other in ipairs(own.shares) do
    if other == lock then return true end
  end
  for _, other in ipairs(own.resources) do
    if other == resource then return true end
  end
end

--- Lets the nodes forget the leases of a lock or a resource. Leases with automatic extends learn it
--- now.
function World:lose(lock, resource)
  local lost = {}
  for client in pairs(self.clients) do
    for own in pairs(client.leases) do
      if is_meant(own, lock, resource) then lost[#lost + 1] = own end
    end
  end
  for _, own in ipairs(lost) do forget_keys(own) end
  for _, own in ipairs(lost) do lease.poke(own) end
  self:change()
end

function World:add_waiter(waiter)
  if waiter.is_queued then return end
  waiter.is_queued = true
  self.waiters[#self.waiters + 1] = waiter
end

--- Removes an operation from those that wait, and cancels its timers.
function World:forget_waiter(waiter)
  self.clock:cancel(waiter.first)
  self.clock:cancel(waiter.last)
  self.clock:cancel(waiter.expiry)
  if not waiter.is_queued then return end
  waiter.is_queued = false
  for index, other in ipairs(self.waiters) do
    if other == waiter then return table.remove(self.waiters, index) end
  end
end

-- Returns the next of some numbers that look like random ones (Park and Miller).
local function random(self)
  self.random = self.random * 16807 % 2147483647
  return self.random
end

--- Returns a token that no other lock has: 40 hexadecimal digits.
function World:new_token()
  self.tokens = self.tokens + 1
  return ("%08x%08x%08x%08x%08x"):format(self.tokens, random(self), random(self), random(self), random(self))
end

--- Releases the locks that the collector has freed.
function World:sweep()
  local garbage = self.garbage
  if not garbage[1] then return end
  self.garbage = {}
  for _, lock in ipairs(garbage) do
    if not lock.client.closed then operation.drop(lock) end
  end
end

return world
