--- Statistics of the fake: client:stats() (rl_stats.c). Times are those of its clock.

local stats = {}

-- Upper bounds of the buckets in seconds.
local BOUNDS = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
  60, math.huge }
local OUTCOMES = { "ok", "taken", "unavailable", "expired", "lost", "held", "not_held", "closed", "cancelled", "error" }
local VOTES = { "granted", "taken", "error", "quarantined", "unknown", "late" }

local function zeros(names)
  local made = {}
  for _, name in ipairs(names) do made[name] = 0 end
  return made
end

local function copy(counters)
  local made = {}
  for name, count in pairs(counters) do made[name] = count end
  return made
end

local function histogram()
  local made = { sum = 0 }
  for index = 1, #BOUNDS do made[index] = 0 end
  return made
end

local function note(of, seconds)
  local index = 1
  while seconds > BOUNDS[index] do index = index + 1 end
  of[index], of.sum = of[index] + 1, of.sum + seconds
end

local function shown(of)
  local count, buckets = 0, {}
  for index, bound in ipairs(BOUNDS) do
    count = count + of[index]
    buckets[index] = { le = bound, count = count }
  end
  return { count = count, sum = of.sum, buckets = buckets }
end

--- Begins the statistics of a client.
function stats.begin(client)
  client.attempts = 0
  client.outcomes = {}
  for _, name in ipairs { "acquire", "extend", "auto_extend", "release" } do client.outcomes[name] = zeros(OUTCOMES) end
  client.acquire_time, client.wait_time = histogram(), histogram()
  client.losses = zeros { "expired", "lost", "max_hold" }
  client.warnings = zeros { "unavailable", "clock" }
  client.of_nodes = {}
end

-- The methods of a client that count.
local methods = {}

--- Counts the end of an operation.
function methods:count(name, code, operation)
  local counters = self.outcomes[name]
  if not counters then return end
  counters[counters[code] and code or "error"] = (counters[code] or counters.error) + 1
  local now = self.world.clock.now
  local took = operation.began and (now - operation.began) / 1000
  if operation.granted then note(self.acquire_time, took) end
  if not operation.waits then return end
  note(self.wait_time, took)
  if took >= 1 then
    self:tell { event = "waited", resource = operation.lock.resources[1], waited = took, result = code }
  end
end

--- Counts automatic extends that all nodes have granted.
function methods:count_extends(count)
  self.outcomes.auto_extend.ok = self.outcomes.auto_extend.ok + count
  for index = 1, #self.nodes do
    local of = self:of_node(index)
    of.votes.granted, of.latency[1] = of.votes.granted + count, of.latency[1] + count
  end
end

function methods:count_loss(reason, resource)
  self.losses[reason] = self.losses[reason] + 1
  self:tell { event = "lost", resource = resource, reason = reason }
end

function methods:count_warning(reason, resource)
  self.warnings[reason] = self.warnings[reason] + 1
  self:tell { event = "warned", resource = resource, reason = reason }
end

function methods:count_heal(index)
  local of = self:of_node(index)
  of.heals = of.heals + 1
end

--- Returns the counters of a node.
function methods:of_node(index)
  local of = self.of_nodes[index]
  if not of then
    of = { votes = zeros(VOTES), latency = histogram(), connections = 0, failures = 0, heals = 0, up = false }
    self.of_nodes[index] = of
  end
  return of
end

--- Counts a vote. `answered`: the node has replied.
function methods:count_vote(index, vote, answered)
  local of = self:of_node(index)
  of.votes[vote] = of.votes[vote] + 1
  if answered then note(of.latency, 0) end
end

--- Counts a connection that came up, or one that failed for a reason.
function methods:count_connection(index, reason)
  local of, node = self:of_node(index), self.nodes[index].name
  if reason then
    if of.up or of.failures == 0 then
      of.failures = of.failures + 1
      self:tell { event = "down", node = node, reason = reason }
    end
  elseif not of.up then
    of.connections = of.connections + 1
    self:tell { event = "up", node = node }
  end
  of.up = not reason
end

--- Adds the methods that count to the class of clients.
function stats.methods(Client)
  for name, method in pairs(methods) do Client[name] = method end
end

local function of_node(client, index, node)
  local of = client:of_node(index)
  return {
    node = node.name, up = client:is_up(node), quarantined = false, votes = copy(of.votes),
    latency = shown(of.latency), connections = of.connections, failures = of.failures, heals = of.heals,
    quarantines = 0, outstanding = #node.queue,
  }
end

--- Returns the result of client:stats(). `held`: the number of leases that last.
function stats.of(client, held)
  local waiting, nodes, operations = 0, {}, {}
  for _, waiter in ipairs(client.world.waiters) do
    if waiter.lock.client == client then waiting = waiting + 1 end
  end
  for index, node in ipairs(client.nodes) do nodes[index] = of_node(client, index, node) end
  for name, counters in pairs(client.outcomes) do operations[name] = copy(counters) end
  return {
    operations = operations, attempts = client.attempts, nodes = nodes, quorum = client.quorum,
    acquire_time = shown(client.acquire_time), wait_time = shown(client.wait_time), held = held, waiting = waiting,
    lost = copy(client.losses), warnings = copy(client.warnings),
  }
end

return stats
