--- Clients of the fake (rl_lua_client.c).

local address = require "redlock.fake_address"
local lease = require "redlock.fake_lease"
local nodes = require "redlock.fake_node"
local object = require "redlock.fake_object"
local operation = require "redlock.fake_operation"
local option = require "redlock.fake_option"
local round = require "redlock.fake_round"
local stats = require "redlock.fake_stats"
local tables = require "redlock.fake_table"

local client = {}

local Client, methods, records = object.Client, object.client_methods, object.records
local check_client, failure, DIRECT = object.check_client, object.failure, object.DIRECT
local floor = math.floor

stats.methods(Client)

--- Forgets all locks and counters, when the world is reset.
function Client:forget()
  local locks = {} -- on_event may make locks while the operations end.
  for lock in pairs(self.locks) do locks[#locks + 1] = lock end
  for _, lock in ipairs(locks) do
    operation.cancel(lock, "cancelled")
    lock.lease, lock.lost, lock.loss, lock.unreleased, lock.depth = nil, nil, nil, nil, 0
  end
  self.owned, self.leases, self.ended = {}, {}, {}
  stats.begin(self)
end

--- (options) -> client; or nil, message.
function client.client(given)
  local options, wrong = option.resolve(option.defaults(), given, true)
  if not options then return nil, wrong end
  if given and given.prefix and #given.prefix > tables.KEY_MAX then
    return nil, "prefix must be at most " .. tables.KEY_MAX .. " bytes"
  end
  if given and given.credentials and (given.username or given.password) then
    return nil, "credentials supply username and password: give either one or the other"
  end
  local guard
  guard, wrong = option.guard(given, options)
  if guard == false then return nil, wrong end
  local self = setmetatable({
    options = options, given = given or {}, guard = guard, prefix = given and given.prefix or "",
    on_lost = given and given.on_lost, reentrant = given and given.reentrant or false,
    turns_in_vain = 0, names = {}, nodes = {}, owned = {}, leases = {}, ended = {},
    locks = setmetatable({}, { __mode = "k" }),
  }, Client)
  stats.begin(self)
  local of = setmetatable({}, object.client_class)
  records[of] = self
  return of
end

--- (client, address or parts) -> true; or nil, message.
function client.add(of, node)
  local self = records[of]
  local name, db = address.read(node, self.given)
  if not name then return nil, db end
  if #self.names == tables.NODES_MAX then return nil, "there are more than " .. tables.NODES_MAX .. " nodes" end
  for _, other in ipairs(self.names) do
    if other.name == name then return nil, name .. " is named twice" end
  end
  self.names[#self.names + 1] = { name = name, db = db }
  return true
end

--- Connects a new client with a world.
function client.join(of, world)
  local self = records[of]
  self.world = world
  for index, name in ipairs(self.names) do self.nodes[index] = world:node(name.name, name.db) end
  self.quorum = self.given.quorum or floor(#self.nodes / 2) + 1
  world.clients[self] = true
  return of
end

--- Returns true if a node is connected; or false and the reason.
function Client:is_up(node)
  if self.world.everywhere == "unavailable" then return false, round.REFUSED end
  if node.state == "down" then return false, nodes.REFUSED end
  return self.used or false
end

function methods.nodes(of)
  local self = check_client(of, DIRECT, "client:nodes()")
  local list = {}
  for index, node in ipairs(self.nodes) do
    local up, reason = self:is_up(node)
    list[index] = { node = node.name, state = up and "up" or "down", error = reason, latency = up and 0 or nil,
      notifies = up and self.has_waited or false }
  end
  return list
end

-- Releases all leases of a client. Returns true if a majority of the nodes has confirmed each.
local function release_all(self)
  local unconfirmed = false
  while next(self.leases) do
    local own = next(self.leases)
    local lock = own.shares[1]
    for _, other in ipairs(own.shares) do other.depth = 0 end
    while own.shares[2] do lease.leave(own, own.shares[2]) end
    self.world.clock:wait(operation.release(lock, "closing"))
    unconfirmed = unconfirmed or lock.result.code == "unavailable"
    lock.unreleased = nil
  end
  return not unconfirmed
end

local function close(self)
  if self.closed then return true end
  self.closed = true
  for lock in pairs(self.locks) do operation.cancel(lock, "closed") end
  local confirmed = release_all(self)
  for lock in pairs(self.locks) do lock.lost, lock.loss = nil, nil end
  return confirmed
end

function methods.close(of)
  local self = check_client(of, DIRECT, "client:close()")
  if close(self) then return true end
  return failure("unavailable", "not all nodes confirmed the releases in time")
end

function methods.pollfd(of)
  check_client(of, DIRECT, "client:pollfd()")
  return nil
end

function methods.events(of)
  check_client(of, DIRECT, "client:events()")
  return "r"
end

function methods.timeout(of)
  local self = check_client(of, DIRECT, "client:timeout()")
  local clock = self.world.clock
  local timer = clock.timers[1]
  if self.ended[1] or clock.ready[1] then return 0 end
  if self.closed or not timer then return nil end
  return math.min(math.max(timer.due - clock.now, 0) / 1000, 1)
end

-- A loop that only takes turns would wait for ever: then the clock goes on by itself.
local TURNS_IN_VAIN = 100

local function in_flight(self)
  for lock in pairs(self.locks) do
    if lock.operation and not lock.operation.over then return true end
  end
end

function methods.process(of)
  local self = check_client(of, DIRECT, "client:process()")
  if self.closed then return failure("closed") end
  self.turns_in_vain = (self.world.clock:turn() or not in_flight(self)) and 0 or self.turns_in_vain + 1
  if self.turns_in_vain >= TURNS_IN_VAIN then
    self.turns_in_vain = 0
    self.world.clock:next()
  end
  return true
end

function methods.next_ended(of)
  local self = check_client(of, DIRECT, "client:next_ended()")
  while self.ended[1] do
    local lock = table.remove(self.ended, 1)
    local found = lock.object[1]
    if found then return found end
  end
  return nil
end

--- Returns counters, histograms and current values.
function methods.stats(of)
  local self = check_client(of, DIRECT, "client:stats()")
  local held = 0
  for own in pairs(self.leases) do held = held + (lease.lasts(own) and 1 or 0) end
  return stats.of(self, held)
end

function object.client_class.__tostring(of)
  local self, up = records[of], 0
  for _, node in ipairs(self.nodes) do up = up + (self:is_up(node) and 1 or 0) end
  return ("redlock.client (%d of %d nodes connected)"):format(up, #self.nodes)
end

function object.client_class.__close(of)
  close(records[of])
end

return client
