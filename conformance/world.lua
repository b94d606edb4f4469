-- The world of a statement: clients of one or two libraries, three nodes behind relays, the keys.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"
local Adapter = require "conformance.adapter"
local Relay = require "conformance.relay"
local task = require "conformance.task"

local World = {}
World.__index = World

World.LONG = 60000  -- ttl of a lease that does not end during a statement
World.SHORT = 2000  -- ttl of a lease that is awaited
World.TIMEOUT = 3000 -- for a command to a node, if the library or its client has such a setting
World.START = 60000  -- limit of each call until a client has connected
World.SETTLE = 15000 -- limit of a change that a client makes in the background

local Verdict = {}

-- Ends the statement with a verdict: "fails", "none" (not applicable) or "untested".
local function verdict(kind, text, ...)
  error(setmetatable({ kind = kind, text = text:format(...) }, Verdict), 0)
end
function World.fails(...) verdict("fails", ...) end
function World.not_applicable(...) verdict("none", ...) end
function World.untested(...) verdict("untested", ...) end

--- |settings|: farm, kind, log, directory, deadline (ms for one call), seconds (of a contest).
function World.new(settings, statement)
  local self = setmetatable({ farm = settings.farm, kind = settings.kind, settings = settings, clients = {},
    all_relays = {}, deadline = settings.deadline }, World)
  self.nodes = settings.kind.nodes or statement.nodes or settings.farm.count
  self.resource = "conformance:" .. statement.name
  self.key = (settings.kind.prefix or "") .. self.resource
  self.relays = self:new_relays()
  return self
end

-- Returns a relay to each node.
function World:new_relays()
  local relays = {}
  for node = 1, self.nodes do
    relays[node] = Relay.new(self.farm.paths[node], self.resource)
    table.insert(self.all_relays, relays[node])
  end
  return relays
end

function World:shut()
  for _, client in ipairs(self.clients) do client.adapter:shut() end
  for _, relay in ipairs(self.all_relays) do relay:shut() end
end

--- Returns the number of nodes that decide.
function World:majority() return self.nodes // 2 + 1 end

-- ------------------------------------------------------------------------------------ clients

local Client = {}
Client.__index = Client

--- Starts a client, which has connected to its nodes and used its scripts once.
--- |options|: kind, timeout (ms for a node), environment, own_relays (beside the faulty ones).
function World:client(options)
  options = options or {}
  local kind = options.kind or self.kind
  local client = setmetatable({ world = self, kind = kind, deadline = World.START }, Client)
  client.adapter = Adapter.start(kind, self.settings.log, options.environment)
  client.resource = kind == self.kind and self.resource or self.key
  table.insert(self.clients, client)
  local addresses = {}
  for node, relay in ipairs(options.own_relays and self:new_relays() or self.relays) do
    addresses[node] = "127.0.0.1:" .. relay.port
  end
  local answer = client:call { op = "open", nodes = addresses, timeout = options.timeout or World.TIMEOUT }
  if not answer or not answer.ok then
    World.untested("the adapter does not open: %s", answer and answer.error or "no answer")
  end
  kind.version = answer.version
  if answer.extends == false then kind.extends = false end
  if answer.prefix and kind == self.kind then self.key = answer.prefix .. self.resource end
  client:warm_up()
  client.deadline = self.deadline
  return client
end

-- Makes the connections and loads the scripts of a client, so that a fault meets only its commands.
function Client:warm_up()
  local function must(request)
    local answer
    for _ = 1, 3 do -- a busy machine may delay a connection beyond the time-out
      answer = self:call(request)
      if answer and answer.ok then break end
    end
    if not answer or not answer.ok then
      World.untested("no %s from healthy nodes: %s", request.op, answer and answer.error or "no answer")
    end
    return answer
  end
  local lock = must { op = "acquire", resource = ("warm-up:%d"):format(#self.world.clients), ttl = World.LONG }.lock
  if self.kind.extends ~= false then must { op = "extend", lock = lock, ttl = World.LONG } end
  must { op = "release", lock = lock }
end

--- Sends a request and waits for the answer. Returns nil if there is none before the deadline.
function Client:call(request) return self.adapter.await(self.adapter:send(request), self.deadline) end

--- Begins an acquire. settle() waits for it.
function Client:begin_acquire(ttl)
  return self.adapter:send { op = "acquire", resource = self.resource, ttl = ttl }
end

function Client:begin_extend(ttl) return self.adapter:send { op = "extend", lock = self.lock, ttl = ttl } end

--- Waits for the answer of a call that must end. A granted lock is kept.
function Client:settle(call, what)
  local answer = self.adapter.await(call, self.deadline)
  if not answer then World.fails("%s did not end within %d s", what, self.deadline // 1000) end
  if answer.died then World.fails("%s: %s", what, answer.error) end
  answer.sent = call.sent
  if answer.ok and answer.lock then self.lock = answer.lock end
  return answer
end

function Client:acquire(ttl) return self:settle(self:begin_acquire(ttl), "acquire") end

--- Acquires, as a condition of the statement. A library returns as soon as a majority has granted:
--- waits until the rest of |nodes|, or of all, has the key too.
function Client:must_acquire(ttl, nodes)
  local world = self.world
  local answer = self:acquire(ttl)
  if not answer.ok then World.untested("the lock was not granted: %s", answer.error or "no reason") end
  task.eventually(math.min(ttl / 4, 5000), function() return world:holders() >= (nodes or world.nodes) end)
  return answer
end

--- Tries to acquire a lock that another client holds.
function Client:must_be_refused(why)
  local answer = self:acquire(World.LONG)
  if answer.ok then World.fails("a second client got the lock %s", why) end
  return answer
end

function Client:extend(ttl)
  if self.kind.extends == false then World.not_applicable("the library has no extend") end
  return self:settle(self:begin_extend(ttl), "extend")
end

function Client:release()
  return self:settle(self.adapter:send { op = "release", lock = self.lock }, "release")
end

--- The rest of the lease by the library's own account, or nil.
function Client:validity()
  local answer = self:settle(self.adapter:send { op = "validity", lock = self.lock }, "validity")
  return answer.ok and answer.validity or nil
end

-- --------------------------------------------------------------------------------------- keys

function World:exists(node) return self.farm:ask(node, "EXISTS", self.key) == 1 end

function World:holders()
  local count = 0
  for node = 1, self.nodes do count = count + (self:exists(node) and 1 or 0) end
  return count
end

--- Returns the values and the ends of the key on all nodes.
function World:snapshot()
  local values, ends = {}, {}
  for node = 1, self.nodes do
    values[node] = self.farm:value(node, self.key)
    ends[node] = self.farm:key_end(node, self.key) or 0
  end
  return values, ends
end

--- Fails if the keys of a snapshot were changed, deleted or prolonged.
function World:must_be_unchanged(values, ends, what)
  local now_values, now_ends = self:snapshot()
  for node = 1, self.nodes do
    if values[node] then -- otherwise the holder's own request may have been late
      if not now_values[node] then World.fails("%s deleted the holder's key", what) end
      if values[node] ~= now_values[node] then World.fails("%s changed the holder's key", what) end
      if now_ends[node] > ends[node] + 1000 then World.fails("%s prolonged the holder's key", what) end
    end
  end
end

--- Fails unless the key vanishes from the nodes.
function World:must_vanish(what, nodes)
  local function left()
    local names = {}
    for _, node in ipairs(nodes or { 1, 2, 3 }) do
      if node <= self.nodes and self:exists(node) then names[#names + 1] = node end
    end
    return names
  end
  if not task.eventually(self.settings.settle or World.SETTLE, function() return #left() == 0 end) then
    World.fails("%s: the key is left on %d node%s", what, #left(), #left() == 1 and "" or "s")
  end
end

--- Waits until a short lease is over on all nodes.
function World:await_expiry()
  if not task.eventually(60000, function() return self:holders() == 0 end) then
    World.untested("the key does not expire")
  end
end

--- The same, for a client whose keys may lack a time of their own.
function World:await_end_of(client)
  if self.farm:ask(1, "PTTL", self.key) == -1 then
    World.not_applicable("a key of %s never expires", client.kind.title or client.kind.name)
  end
  self:await_expiry()
end

--- Returns the time at which so many keys have ended that no majority is left.
function World:majority_end()
  local _, ends = self:snapshot()
  table.sort(ends, function(a, b) return a > b end)
  return ends[self:majority()]
end

--- Another client, which only the servers know, holds the key on some nodes.
function World:occupy(...)
  for _, node in ipairs { ... } do self.farm:ask(node, "SET", self.key, "another-client", "PX", World.LONG) end
end

function World:occupied(...)
  for _, node in ipairs { ... } do
    if self.farm:value(node, self.key) ~= "another-client" then return false end
  end
  return true
end

-- -------------------------------------------------------------------------------------- clock

--- Returns the environment of a client whose wall clock step() sets back or forward.
function World:stepped_clock()
  local path = os.tmpname()
  local function step(ms)
    local file = assert(io.open(path, "r+b"))
    file:write(string.pack("<i8", ms * 1000))
    file:close()
  end
  assert(io.open(path, "wb")):close()
  local file = assert(io.open(path, "wb"))
  file:write(string.pack("<i8", 0))
  file:close()
  self.clock_file = path
  return { LD_PRELOAD = self.settings.clockshim, CHAOS_CLOCK = path }, step
end

--- Runs a statement. Returns its verdict and the observation.
function World.judge(settings, statement)
  local world
  local ok, result = xpcall(function()
    world = World.new(settings, statement)
    return statement.run(world)
  end, function(failure)
    return getmetatable(failure) == Verdict and failure or debug.traceback(tostring(failure))
  end)
  if world then
    world:shut()
    if world.clock_file then uv.fs_unlink(world.clock_file) end
  end
  if ok then return "holds", result or "" end
  if getmetatable(result) == Verdict then return result.kind, result.text end
  return "untested", result
end

return World
