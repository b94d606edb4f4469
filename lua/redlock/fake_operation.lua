--- Operations of the fake: acquire, extend, release and the questions of an operator.
---
--- An operation is in `lock.operation` until it is over. Its result stays in `lock.result`.

local label = require "redlock.fake_label"
local lease = require "redlock.fake_lease"
local message = require "redlock.fake_message"
local option = require "redlock.fake_option"
local round = require "redlock.fake_round"
local tables = require "redlock.fake_table"

local operation = {}

-- --------------------------------------------------------------------------------- begin and end

-- `of_loop`: the program started it, and takes its turns.
local function begin(lock, name, of_loop)
  local self = { name = name, lock = lock, over = false, of_loop = of_loop }
  lock.operation = self
  return self
end

-- Ends an operation. `more` has what its message needs.
local function finish(self, code, asked, more)
  local lock = self.lock
  local client = lock.client
  local result = { operation = self.name, code = code ~= "ok" and code or nil, resources = lock.resources,
    needed = client.quorum }
  if asked then
    lock.votes = asked.votes
    result.votes, result.granted, result.taken, result.failed = asked.votes, asked.granted, asked.taken, asked.failed
    result.asked = asked.asked
  end
  for name, value in pairs(more or {}) do result[name] = value end
  self.over = true
  client.world:forget_waiter(self)
  if lock.operation == self then lock.operation = nil end
  lock.result = result
  client:count(self.name, code, self)
  client.world.clock:wake(self.thread)
  if self.of_loop then client.ended[#client.ended + 1] = lock end
end

-- Stands for a round where no node was asked.
local function no_round(lock)
  local votes = lock.votes
  if not votes then
    votes = {}
    for index, node in ipairs(lock.client.nodes) do votes[index] = { node = node.name, vote = "unknown" } end
  end
  return { votes = votes, granted = 0, taken = 0, failed = 0 }
end

-- Does the first step of an operation now; in the next turn of the clock if a loop carries it on.
local function go(self, step)
  if not self.of_loop then return step() end
  local clock = self.lock.client.world.clock
  self.first = clock:at(clock.now, step)
end

-- Ends an operation at once, without a question to the nodes.
local function refuse(lock, name, code, more)
  local self = begin(lock, name)
  local reasons = no_round(lock)
  reasons.at_once = true
  for key, value in pairs(more or {}) do reasons[key] = value end
  finish(self, code, nil, reasons)
  return self
end

--- Returns the results of a lock's last operation: value; or nil, message, code.
function operation.outcome(lock)
  local result = lock.result
  local name = result.operation
  if not result.code and (name == "acquire" or name == "extend") then
    local left = option.whole(lease.left(lock.lease))
    if left >= 1 then return left end
    local code = lock.lost and "lost" or "expired"
    return nil, message.of({ operation = name, code = code, resources = lock.resources, votes = no_round(lock).votes,
      denied = lock.lost and lock.lost.denied, took = lock.options.ttl, ttl = lock.options.ttl }), code
  elseif not result.code then
    return name == "force_release" and result.granted or true
  end
  if result.code == "not_held" and name ~= "force_release" then
    return nil, "'" .. message.resources(lock.resources) .. "': the lock is not held", "not_held"
  end
  return nil, message.of(result), result.code
end

-- -------------------------------------------------------------------------------- owners of leases

local function has_resource(of, resource)
  for _, other in ipairs(of.resources) do
    if other == resource then return true end
  end
end

-- Returns a lease of the owner that has one of the resources, and true if it has all of them.
local function find_owned(lock, owner)
  local found, all = nil, true
  for _, resource in ipairs(lock.resources) do
    local own
    for _, other in ipairs(lock.client.owned) do
      if other.owner == owner and has_resource(other, resource)
        and (other.slot ~= nil) == option.has_permits(lock.operation.options) then own = other end
    end
    if found and own ~= found or not own then all = false end
    found = found or own
  end
  return found, all
end

-- Returns nil, or why an acquire of what its owner holds is refused: code, sentence.
local function obstacle(own, all, options, custom)
  if not lease.lasts(own) then
    return own.lost and "lost" or "expired", "its owner's lease has expired or is lost: release it first"
  elseif custom then
    return "held", "its owner holds it already, with another token"
  elseif not all then
    return "held",
      "its owner already holds some of the resources and would wait for itself: acquire all resources at once"
  elseif (own.slot ~= nil) ~= option.has_permits(options) then
    return "held", "the lock object is held with other permits: make a lock object for the semaphore"
  elseif options.fence and not own.fence then
    return "held", "its owner already holds it without a fencing token: set fence in the first acquire"
  end
end

local function suffices(own, options)
  local asked = options.ttl - option.drift(options.ttl, options.drift_factor)
  return lease.left(own) >= asked - asked / 3
end

local function share(lock, own)
  if lock.lease == own then
    lock.depth = lock.depth + 1
    return
  end
  lock.lease, lock.lost, lock.loss, lock.depth = own, nil, nil, 0
  own.shares[#own.shares + 1] = lock
  lease.schedule(own)
end

local function unshare(lock, own)
  if lock.depth > 0 then lock.depth = lock.depth - 1 else lease.leave(own, lock) end
end

-- An acquire that has failed leaves nothing to release.
local function end_nesting(lock, own)
  if lock.lease == own or lock.depth > 0 then return unshare(lock, own) end
  lease.leave(own, lock)
  lock.lost, lock.loss = nil, nil
end

-- Lets the lock share the lease, and extends it first if little of it is left.
local function nest(self, own, options)
  local lock = self.lock
  share(lock, own)
  local ttl = lease.capped(own, options.ttl)
  if suffices(own, options) or own.busy or ttl < options.ttl then
    lease.hold(own, options)
    return finish(self, "ok")
  end
  own.busy, self.nests = true, own
  go(self, function()
    self.round = lease.extend(own, ttl, option.node_timeout(options, options.ttl), function(asked, code)
      own.busy, self.nests = false, nil
      lease.schedule(own)
      if code == "ok" then lease.hold(own, options) else end_nesting(lock, own) end
      asked.asked = "extend"
      finish(self, code, asked, { denied = code == "lost" and lease.deniers(asked) or nil })
    end)
  end)
end

-- Ends an acquire of what its owner holds. Returns true if the owner holds it.
local function try_to_nest(self)
  local lock = self.lock
  if self.owner == nil then return false end
  local own, all = lock.lease, true
  if not lease.lasts(own) then own, all = find_owned(lock, self.owner) end
  if not own then return false end
  local code, sentence = obstacle(own, all, self.options, self.custom or lock.handed)
  if code then
    self.of_loop = nil
    finish(self, code, nil, { refused = sentence, at_once = true })
  else
    nest(self, own, self.options)
  end
  return true
end

-- ---------------------------------------------------------------------------------------- acquire

local function keys_of(lock)
  local keys, slot = {}, lock.slot and "/" .. lock.slot or ""
  for index, resource in ipairs(lock.resources) do keys[index] = lock.client.prefix .. resource .. slot end
  return keys
end

-- Chooses the slot of a semaphore that the next attempt tries: one that is free on enough nodes.
-- Notes the permits of another client that uses another number.
local function choose_slot(self)
  local lock, options = self.lock, self.options
  if lock.handed then return end
  lock.slot, self.other = nil, nil
  if not option.has_permits(options) then return end
  local base = keys_of(lock)[1] .. "/"
  for slot = 1, options.permits do
    local free = 0
    for _, node in ipairs(lock.client.nodes) do
      local entry = node:get(base .. slot)
      local permits = entry and entry.kind == "string" and label.permits(entry.value)
      free = free + (entry and 0 or 1)
      if permits and permits ~= options.permits then self.other = permits end
    end
    if not lock.slot and free >= lock.client.quorum then lock.slot = slot end
  end
  lock.slot = lock.slot or 1
end

-- Returns the indices of the nodes that granted.
local function granted_by(asked)
  local set = {}
  for index, vote in ipairs(asked.votes) do set[index] = vote.vote == "granted" or nil end
  return set
end

local function without_grant(asked)
  local set = {}
  for index, vote in ipairs(asked.votes) do set[index] = vote.vote ~= "granted" or nil end
  return set
end

local function grant(self, token, asked)
  local lock, client = self.lock, self.lock.client
  local handed = lock.handed
  local own = lease.new(client, lock, { token = token, keys = keys_of(lock), resources = lock.resources,
    options = self.options, owner = self.owner, began = asked.began, fence = handed and handed.fence,
    slot = lock.slot, keep_until = handed and handed.keep_until }, asked)
  if not own then
    lease.clean(client, lock.resources, keys_of(lock), token)
    return finish(self, "expired", asked, { took = client.world.clock.now - asked.began, ttl = self.options.ttl })
  end
  if handed then lease.clean(client, lock.resources, keys_of(lock), handed.token, without_grant(asked)) end
  lock.handed = nil
  lock.lease, lock.lost, lock.loss, lock.depth, lock.unreleased = own, nil, nil, 0, nil
  self.granted = own
  finish(self, "ok", asked)
end

-- Returns the keys that may be in the way of the next attempt.
local function obstacles(self)
  local lock, keys = self.lock, {}
  if not option.has_permits(self.options) or lock.handed then return keys_of(lock) end
  for slot = 1, self.options.permits do keys[slot] = lock.client.prefix .. lock.resources[1] .. "/" .. slot end
  return keys
end

-- Returns when the first of the keys that are in the way expires, or nil.
local function next_expiry(self)
  local lock = self.lock
  local now, first = lock.client.world.clock.now, nil
  local keys = obstacles(self)
  for _, node in ipairs(lock.client.nodes) do
    for _, key in ipairs(keys) do
      local entry = node:get(key)
      local expires = entry and entry.expires
      if expires and expires > now and (not first or expires < first) then first = expires end
    end
  end
  return first
end

-- Returns the label of the holder, if a waiter with a label has one to name.
local function holder_of(self)
  local lock, own = self.lock, self.options.label
  if not self.waits or not own or own == "" or self.custom or self.owner then return nil end
  local counts = {}
  for _, node in ipairs(lock.client.nodes) do
    local entry = node:get(keys_of(lock)[1])
    local text = entry and entry.kind == "string" and label.of(entry.value)
    if text then
      counts[text] = (counts[text] or 0) + 1
      if counts[text] > #lock.client.nodes / 2 then return text end
    end
  end
end

local try -- below

-- Waits until something has changed, or for the last attempt.
local function wait(self)
  local world = self.lock.client.world
  local clock = world.clock
  self.waits, self.lock.client.has_waited = true, true
  world:add_waiter(self)
  clock:cancel(self.last)
  clock:cancel(self.expiry)
  self.last = clock:at(self.deadline, function() try(self) end)
  local expires = next_expiry(self)
  self.expiry = expires and expires < self.deadline and clock:at(expires, function() world:change() end) or nil
end

local function failed(self, code, asked, token)
  local lock, client = self.lock, self.lock.client
  lease.clean(client, lock.resources, keys_of(lock), token, self.custom and granted_by(asked) or nil)
  if lock.handed then
    lock.handed = nil
    if code == "taken" then return finish(self, "lost", asked, { denied = lease.deniers(asked) }) end
  end
  if client.world.clock.now >= self.deadline then
    local semaphore = option.has_permits(self.options)
    return finish(self, code, asked, { holder = code == "taken" and not semaphore and holder_of(self) or nil,
      permits = semaphore and self.options.permits or nil, other = self.other })
  end
  wait(self)
end

local function ask_for(self, token)
  local lock = self.lock
  local keys, handed = keys_of(lock), lock.handed
  local taken = lock.client.world:outcome(lock.resources) == "taken" and not handed
  local life = self.options.ttl + self.options.lock_delay
  return function(node)
    if taken then return "taken", 1 end
    if handed then return node:attach(keys, handed.token, token, life, handed.lock_delay) end
    return node:acquire(keys, token, life)
  end
end

try = function(self)
  local lock, client = self.lock, self.lock.client
  if self.over or self.round or try_to_nest(self) then return end
  choose_slot(self)
  local token = self.custom or label.token(client.world:new_token(), self.options)
  self.version, self.token, self.round = client.world.version, token, true
  client.attempts = client.attempts + 1
  local started = round.start(client, lock.resources, {
    ask = ask_for(self, token),
    decide = round.of_acquire,
    timeout = option.node_timeout(self.options, self.options.ttl),
    ended = function(asked, code)
      self.round = nil
      if code == "ok" then grant(self, token, asked) else failed(self, code, asked, token) end
    end,
    late = function(index, vote)
      local own = self.granted
      if own and not own.over then own.known[index] = vote == "granted" or nil end
    end,
  })
  if not started.over then self.round = started end
end

--- Lets a waiting acquire try again if something has changed since its last attempt.
function operation.retry(self)
  if not self.over and not self.round and self.version ~= self.lock.client.world.version then try(self) end
end

-- Ends an expired or lost lease for a lock, so that the lock can be acquired.
local function drop_lease(lock)
  local own, lost = lock.lease, lock.lost
  if lease.lasts(own) then return end
  if lost then lease.leave(lost.lease, lock) end
  if own then lease.leave(own, lock) end
  if own and not own.shares[1] then
    lease.stop(own)
    lease.drop(own)
  end
  lock.lost, lock.loss, lock.depth = nil, nil, 0
end

-- Ends a release that no caller waits for: with its result, if it has one already.
local function forget_release(lock, code)
  local self = lock.operation
  if not self or not self.abandoned then return end
  local decided = self.decided or { code }
  finish(self, decided[1], decided[2], decided[3])
end

local function held_by(lock, owner)
  local own = lock.lease
  if not lease.lasts(own) then return nil end
  if own.owner ~= owner then return "another owner holds it" end
  return owner == nil and tables.sentences.held or nil
end

--- Starts an acquire.
function operation.acquire(lock, options, owner, custom, of_loop)
  local client = lock.client
  forget_release(lock, "cancelled")
  if client.closed then return refuse(lock, "acquire", "closed") end
  local held = held_by(lock, owner)
  if held then return refuse(lock, "acquire", "held", { refused = held }) end
  drop_lease(lock)
  local self = begin(lock, "acquire", of_loop)
  local once = custom or lock.handed
  self.options, self.owner, self.custom = options, owner, custom
  self.began = client.world.clock.now
  self.deadline = self.began + (once and 0 or option.budget(options))
  lock.reports = options.notify_lost or options.auto_extend
  if not try_to_nest(self) then go(self, function() try(self) end) end
  return self
end

-- ----------------------------------------------------------------------------------------- extend

--- Starts an extend. `ttl` may be nil.
function operation.extend(lock, ttl, of_loop)
  local client, own = lock.client, lock.lease
  if client.closed then return refuse(lock, "extend", "closed") end
  if lock.lost then return refuse(lock, "extend", "lost", { denied = lock.lost.denied }) end
  if lock.operation and lock.operation.abandoned or not own then return refuse(lock, "extend", "not_held") end
  if not lease.lasts(own) then return refuse(lock, "extend", "expired") end
  local self = begin(lock, "extend", of_loop)
  ttl = ttl or own.ttl
  own.busy = true
  go(self, function()
    self.round = lease.extend(own, ttl, option.node_timeout(own.options, ttl), function(asked, code)
      own.busy = false
      lease.schedule(own)
      if not self.over then finish(self, code, asked, { denied = lease.deniers(asked) }) end
    end)
  end)
  return self
end

-- ---------------------------------------------------------------------------------------- release

-- Ends a release now; or in the next turn of the clock, if no caller waits for it or a loop does.
local function end_release(self, code, asked, more)
  if not self.abandoned and not self.of_loop then return finish(self, code, asked, more) end
  local clock = self.lock.client.world.clock
  self.decided = { code, asked, more }
  clock:at(clock.now, function()
    if not self.over then finish(self, code, asked, more) end
  end)
end

-- Returns the code of a release that must keep its keys on a majority.
local function code_of_hold(client, asked, lasts)
  local needed = math.floor(#client.nodes / 2) + 1
  if asked.granted >= needed then return "ok" end
  return #client.nodes - asked.taken >= needed and "unavailable" or lasts and "lost" or "expired"
end

-- `lasts`: the lease has not expired. `repeated`: an earlier release was not confirmed, and may
-- have deleted the keys.
local function release_keys(self, own, lasts, repeated)
  local lock, client = self.lock, self.lock.client
  round.start(client, own.resources, {
    ask = function(node) return node:release(own.keys, own.token, own.keep_until) end,
    decide = round.of_release,
    timeout = option.node_timeout(own.options, own.ttl),
    ended = function(asked, code)
      if lease.keeps(own) then
        code = code_of_hold(client, asked, lasts)
      elseif code == "lost" then
        code = repeated and "ok" or lasts and "lost" or "expired"
      end
      if code == "unavailable" then
        lock.unreleased = own
        lease.drop(own)
      end
      if not self.over then end_release(self, code, asked, { denied = lease.deniers(asked) }) end
    end,
  })
  client.world:change()
end

-- Releases a lock whose lease was lost.
local function refuse_lost(lock)
  local lost = lock.lost
  if lock.depth > 0 then
    lock.depth = lock.depth - 1
  else
    lock.lost, lock.loss = nil, nil
    lease.leave(lost.lease, lock)
  end
  return refuse(lock, "release", "lost", { denied = lost.denied })
end

local function release_lease(self, own)
  local lock = self.lock
  local lasts = lease.lasts(own)
  if lock.depth > 0 then
    lock.depth = lock.depth - 1
    return finish(self, lasts and "ok" or "expired") -- The next release is another one.
  end
  lock.loss = nil
  lease.leave(own, lock)
  if own.shares[1] then
    lease.schedule(own)
    return end_release(self, lasts and "ok" or "expired")
  end
  lease.stop(own)
  release_keys(self, own, lasts)
end

--- Starts a release. `how`: "sent" = its caller does not wait for it, "loop" = a loop carries it
--- on, "closing" = the client does.
function operation.release(lock, how)
  local abandoned = how == "sent"
  local earlier = lock.operation
  if earlier and earlier.abandoned then
    earlier.abandoned, earlier.of_loop = abandoned, how == "loop"
    local decided = earlier.decided
    if not abandoned and not earlier.of_loop and decided then finish(earlier, decided[1], decided[2], decided[3]) end
    return earlier
  end
  if lock.client.closed and how ~= "closing" then return refuse(lock, "release", "closed") end
  local own, again = lock.lease, lock.unreleased
  if not own and not lock.lost and not again then return refuse(lock, "release", "not_held") end
  if lock.lost then return refuse_lost(lock) end
  local self = begin(lock, "release", how == "loop")
  self.abandoned = abandoned
  if own then
    release_lease(self, own)
  else
    lock.unreleased = nil
    release_keys(self, again, true, true)
  end
  return self
end

--- Releases a lock for which no caller is left.
function operation.drop(lock)
  operation.cancel(lock, "cancelled")
  local own = lock.lease
  if not own then return end
  lock.depth, lock.reports = 0, false
  lease.leave(own, lock)
  if own.shares[1] then return lease.schedule(own) end
  lease.stop(own)
  lease.drop(own)
  lock.client.world:change()
end

-- ------------------------------------------------------------------------------------- questions

--- Asks all nodes: ask(node, index) returns a vote. Calls ended(round, code), which returns the
--- code of the operation.
function operation.question(lock, name, ask, ended)
  local client = lock.client
  local self = begin(lock, name)
  round.start(client, lock.resources, {
    ask = ask,
    decide = round.of_question,
    timeout = option.node_timeout(client.options, client.options.ttl),
    ended = function(asked, code)
      if not self.over then finish(self, ended(asked, code), asked) end
    end,
  })
  return self
end

-- ---------------------------------------------------------------------------------------- the end

--- Ends the operation in flight, if any, with a code. Releases what an acquire has taken.
function operation.cancel(lock, code)
  local self = lock.operation
  if not self then return end
  if self.abandoned then return forget_release(lock, code) end
  local asked, own = self.round, lock.lease
  if type(asked) == "table" then round.abandon(asked) end
  if own then
    own.busy = false
    lease.schedule(own)
  end
  if self.nests then
    unshare(lock, self.nests)
  elseif asked and self.name == "acquire" then
    lease.clean(lock.client, lock.resources, keys_of(lock), self.token, self.custom and granted_by(asked) or nil)
  end
  finish(self, code)
end

operation.finish = finish
operation.keys_of = keys_of

return operation
