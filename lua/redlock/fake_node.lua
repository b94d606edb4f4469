--- A node of the fake: keys in memory, and the commands of a lock.
---
--- A node that hangs executes its commands when it goes on, as a stopped server does.

local label = require "redlock.fake_label"

local Node = {}
Node.__index = Node

local node = {}

--- Reason of a node that is down.
node.REFUSED = "Connection refused"

--- Returns a node. `clock` has the time.
function node.new(name, clock)
  return setmetatable({
    name = name,
    clock = clock,
    state = "up", -- or "down", "hung"
    keys = {}, -- by name: { value = , expires = , kind = }
    queue = {}, -- commands that wait while it hangs
  }, Node)
end

--- Executes a command, fn(node). Returns "ok" and its results; "error" and a reason; or "silent" if
--- the node hangs. Then `late` gets the results when it goes on.
function Node:call(fn, late)
  if self.state == "down" then return "error", node.REFUSED end
  if self.state == "hung" then
    self.queue[#self.queue + 1] = function() late(fn(self)) end
    return "silent"
  end
  return "ok", fn(self)
end

--- Lets the node answer, hang ("hung") or refuse connections ("down").
function Node:set(state)
  self.state = state
  local queue = self.queue
  if state == "hung" then return end
  self.queue = {}
  if state == "up" then
    for _, command in ipairs(queue) do command() end
  end
end

--- Makes it as new.
function Node:reset()
  self.state, self.keys, self.queue = "up", {}, {}
end

--- Forgets all keys.
function Node:forget()
  self.keys = {}
end

--- Returns the entry of a key, or nil.
function Node:get(key)
  local entry = self.keys[key]
  if entry and entry.expires and entry.expires <= self.clock.now then
    self.keys[key] = nil
    return nil
  end
  return entry
end

--- Sets a key. Without `milliseconds` it does not expire.
function Node:put(key, value, milliseconds)
  self.keys[key] = { value = value, kind = "string", expires = milliseconds and self.clock.now + milliseconds }
end

local function has(entry, token)
  return entry ~= nil and entry.kind == "string" and entry.value == token
end

--- Returns true if a key has a value.
function Node:has(key, value)
  return has(self:get(key), value)
end

--- Sets all keys if none exists. Returns a vote, and the index of the key that exists.
function Node:acquire(keys, token, milliseconds)
  for index, key in ipairs(keys) do
    if self:get(key) then return "taken", index end
  end
  for _, key in ipairs(keys) do self:put(key, token, milliseconds) end
  return "granted"
end

local function prolong(self, keys, milliseconds)
  local expires = self.clock.now + milliseconds
  for _, key in ipairs(keys) do
    local entry = self:get(key)
    if entry.expires and entry.expires < expires then entry.expires = expires end
  end
end

--- Prolongs all keys if they have the token. Returns a vote.
function Node:extend(keys, token, milliseconds)
  for index, key in ipairs(keys) do
    if not self:has(key, token) then return "taken", index end
  end
  prolong(self, keys, milliseconds)
  return "granted"
end

--- Sets the missing keys if all keys that exist have the token. Returns a vote.
function Node:heal(keys, token, milliseconds)
  for index, key in ipairs(keys) do
    local entry = self:get(key)
    if entry and not has(entry, token) then return "taken", index end
  end
  for _, key in ipairs(keys) do
    if not self:get(key) then self:put(key, token, milliseconds) end
  end
  prolong(self, keys, milliseconds)
  return "granted"
end

--- Replaces a token by another if all keys have it for longer than `floor` milliseconds. Returns a
--- vote.
function Node:attach(keys, handed, token, milliseconds, floor)
  for index, key in ipairs(keys) do
    local entry = self:get(key)
    if not has(entry, handed) or entry.expires and entry.expires - self.clock.now <= floor then
      return "taken", index
    end
  end
  for _, key in ipairs(keys) do self:put(key, token, milliseconds) end
  return "granted"
end

--- Deletes the keys that have the token, or keeps them until a time to come. Returns "granted" if
--- all had it.
function Node:release(keys, token, keep_until)
  local all = true
  local kept = keep_until and keep_until > self.clock.now
  for _, key in ipairs(keys) do
    if not self:has(key, token) then
      all = false
    elseif kept then
      self.keys[key].expires = keep_until
    else
      self.keys[key] = nil
    end
  end
  return all and "granted" or "taken"
end

--- Deletes a key if it has the token; "any" is every value. Returns a vote.
function Node:force(key, token)
  local entry = self:get(key)
  if not entry or token ~= "any" and not has(entry, token) then return "taken" end
  self.keys[key] = nil
  return "granted"
end

--- Returns a row of client:inspect().
function Node:inspect(key, token_max)
  local entry = self:get(key)
  local row = { node = self.name, state = "free" }
  if not entry then return row end
  row.ttl = entry.expires and math.floor(entry.expires - self.clock.now) or nil
  if entry.kind ~= "string" then
    row.state, row.error = "other", "it is a " .. entry.kind
  elseif #entry.value > token_max then
    row.state, row.error = "other", "it is a string that is too long for a token"
  else
    row.state, row.token, row.label = "held", entry.value, label.of(entry.value)
    local counter = self:get(key .. ":redlock-fence")
    row.fence = counter and math.floor(tonumber(counter.value) or 0) or nil
  end
  return row
end

return node
