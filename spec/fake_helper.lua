--- Stands for spec.helper where specs run against redlock.fake: nodes in memory, and the clock of
--- the fake. No sockets, no processes, no C.

local fake = require "redlock.fake"

local helper = {}

local DEADLINE = 45000 -- milliseconds of the fake's clock

function helper.now()
  return fake:now() / 1000
end

function helper.eventually(condition, what, seconds)
  local deadline = fake:now() + (seconds and seconds * 1000 or DEADLINE)
  while true do
    local value = condition()
    if value then return value end
    if fake:now() > deadline then error("in vain waited for: " .. (what or "a condition"), 2) end
    fake:advance(2)
  end
end

function helper.pass(seconds, turn)
  local until_when = fake:now() + seconds * 1000
  repeat
    if turn then turn() end
    fake:advance(2)
  until fake:now() > until_when
end

function helper.unless_stalled(_, block)
  block()
end

function helper.warm(client)
  assert(assert(client:acquire("warm")):release())
end

local jit = rawget(_G, "jit")
if jit then
  jit.off(helper.eventually)
  jit.off(helper.pass)
end

-- ------------------------------------------------------------------------------------------- farm

local Node = {}
Node.__index = Node

-- The world forgets its nodes in each reset().
function Node:at()
  return fake.world_of_fake:node(self.address, 0)
end

local commands = {}

function commands.set(at, key, value, ...)
  local life, absent
  for index = 1, select("#", ...) do
    local word = (select(index, ...))
    if word == "PX" then life = tonumber((select(index + 1, ...))) end
    absent = absent or word == "NX"
  end
  if absent and at:get(key) then return false end
  at:put(key, tostring(value), life)
  return "OK"
end

function commands.get(at, key)
  local entry = at:get(key)
  return entry and entry.kind == "string" and entry.value or false
end

function commands.del(at, ...)
  for index = 1, select("#", ...) do at.keys[select(index, ...)] = nil end
  return select("#", ...)
end

function commands.pttl(at, key)
  local entry = at:get(key)
  return not entry and -2 or entry.expires and math.floor(entry.expires - at.clock.now) or -1
end

function commands.hset(at, key)
  at.keys[key] = { kind = "hash", value = "" }
  return 1
end

function commands.type(at, key)
  local entry = at:get(key)
  return entry and entry.kind or "none"
end

function commands.script()
  return "OK"
end

-- The only script of the specs: delete a key that has a value.
function commands.eval(at, _, _, key, value)
  if commands.get(at, key) ~= value then return 0 end
  return commands.del(at, key)
end

function Node:command(name, ...)
  if self:at().state == "down" then return nil, "connection refused" end
  local result = commands[name:lower()](self:at(), ...)
  fake.world_of_fake:change()
  return result
end

function Node:set(state)
  self:at():set(state)
  self.stopped, self.killed = state == "hung", state == "down"
  fake.world_of_fake:change()
end

function Node:stop() self:set("hung") end
function Node:continue() self:set("up") end
function Node:restart() self:set("up") end

function Node:kill()
  self:at():forget()
  self:set("down")
end

local Farm = {}
Farm.__index = Farm

function helper.farm(count)
  local farm = setmetatable({ addresses = {} }, Farm)
  for index = 1, count do
    farm.addresses[index] = "127.0.0.1:" .. 7000 + index
    farm[index] = setmetatable({ address = farm.addresses[index] }, Node)
  end
  return farm
end

function Farm:reset()
  fake:reset()
  for _, node in ipairs(self) do node.stopped, node.killed = false, false end
end

function Farm:count(key, value)
  local count = 0
  for _, node in ipairs(self) do
    local found = not node.stopped and not node.killed and node:command("GET", key)
    if found and (value == nil or found == value) then count = count + 1 end
  end
  return count
end

function Farm:eventually_free(key, seconds)
  helper.eventually(function() return self:count(key) == 0 end, "the key " .. key .. " to be gone", seconds)
end

function Farm:shut()
  self:reset()
end

return helper
