--- Leases of the fake: what a granted lock is, its extends, its losses and its end.

local option = require "redlock.fake_option"
local round = require "redlock.fake_round"

local lease = {}

local max, min = math.max, math.min

-- ------------------------------------------------------------------------------------------ state

--- Returns the milliseconds of a lease that are left, with a fraction.
function lease.left(self)
  if not self or self.over then return 0 end
  return max(self.deadline - self.client.world.clock.now, 0)
end

--- Returns true if a lease has a whole millisecond left.
function lease.lasts(self)
  return lease.left(self) >= 1
end

local function valid(self, ttl)
  return ttl - option.drift(ttl, self.options.drift_factor)
end

local function is_capped(self)
  return self.options.auto_extend and self.hold_until ~= nil and self.keys_end + 1 > self.hold_until
end

--- Returns how many keys may vanish before a second holder is possible.
function lease.margin(self)
  local known = 0
  for index = 1, #self.client.nodes do known = known + (self.known[index] and 1 or 0) end
  return max(known + self.client.quorum - #self.client.nodes - 1, -1)
end

-- ----------------------------------------------------------------------------------------- losses

local warnings = { unavailable = true, clock = true }

local function report_one(lock, reason, since)
  if not lock.reports or lock.loss == reason or warnings[lock.loss] and warnings[reason] then return end
  lock.loss, lock.loss_since = reason, since
  lock:tell(reason)
end

local function report(self, reason, since)
  local shares = {}
  for index, lock in ipairs(self.shares) do shares[index] = lock end
  for _, lock in ipairs(shares) do report_one(lock, reason, since) end
end

-- Warns once, until an extend succeeds.
local function warn(self, reason, since)
  report(self, reason, since)
  if not self.warned then self.client:count_warning(reason, self.resources[1]) end
  self.warned = true
end

local function report_end(self)
  if self.ended then return end
  self.ended = true
  local reason = is_capped(self) and "max_hold" or "expired"
  report(self, reason, self.deadline)
  self.client:count_loss(reason, self.resources[1])
end

--- Returns why the last lease of a lock was lost, and when; or nil.
function lease.loss_of(lock)
  local own = lock.lease
  if lock.loss and (lease.lasts(own) or not warnings[lock.loss]) then return lock.loss, lock.loss_since end
  if lock.lost then return "lost", lock.lost.since end
  if not own or lease.lasts(own) then return nil end
  return is_capped(own) and "max_hold" or "expired", own.deadline
end

-- ----------------------------------------------------------------------------------------- timers

local function watched(self)
  if self.options.auto_extend then return true end
  for _, lock in ipairs(self.shares) do
    if lock.reports then return true end
  end
end

local tick -- below

-- Extends a lease to a time in the future, as often as tick() would do until then. Nothing may have
-- changed since an extend that all nodes confirmed. Returns false if it is not worth while.
local function leap(self, due, horizon)
  local client, period = self.client, math.ceil(option.every(self.options, self.ttl))
  local count = math.floor((horizon - due) / period)
  if self.steady ~= client.world.version or self.hold_until or self.busy or count < 4 then return false end
  local last = due + (count - 1) * period
  for _, node in ipairs(client.nodes) do
    for _, key in ipairs(self.keys) do node.keys[key].expires = last + self.ttl + self.options.lock_delay end
  end
  self.deadline, self.keys_end = last + valid(self, self.ttl), last + self.ttl
  client:count_extends(count)
  lease.schedule(self)
  return true
end

-- Sets the timer of the next automatic extend, or of the end of the lease.
function lease.schedule(self)
  local clock = self.client.world.clock
  clock:cancel(self.timer)
  self.timer = nil
  if self.over or self.ended or not watched(self) then return end
  local due = self.deadline
  if self.options.auto_extend and not is_capped(self) then
    local next_due = self.deadline - valid(self, self.ttl) + option.every(self.options, self.ttl)
    if self.failed and next_due <= clock.now then next_due = clock.now + max(lease.left(self) / 4, 5) end
    due = min(due, max(next_due, clock.now))
  end
  local repeats = self.steady and function(from, horizon) return leap(self, from, horizon) end or nil
  self.timer = clock:at(due, function() tick(self) end, repeats)
end

-- ---------------------------------------------------------------------------------------- the end

--- Deletes the keys of a token on all nodes, without a report. `only`: only on these indices.
--- `keep_until`: keeps them until that time.
function lease.clean(client, resources, keys, token, only, keep_until)
  local world = client.world
  local refused = world:outcome(resources) == "unavailable"
  for index, node in ipairs(client.nodes) do
    if not only or only[index] then
      local kind = refused and "error" or node:call(function(at) at:release(keys, token, keep_until) end,
        function() end)
      if kind == "error" then
        world.leftovers[#world.leftovers + 1] = { node = node, resources = resources, keys = keys, token = token,
          keep_until = keep_until }
      end
    end
  end
end

--- Releases the keys of a lease on all nodes, without a report.
function lease.drop(self)
  lease.clean(self.client, self.resources, self.keys, self.token, nil, self.keep_until)
end

--- An acquire that counts on the lease asks for hold_at_least.
function lease.hold(self, options)
  local hold = option.hold(options)
  if hold == 0 then return end
  self.keep_until = max(self.keep_until or 0, self.client.world.clock.now + hold)
end

--- Returns true if a release must keep the keys.
function lease.keeps(self)
  return self.keep_until ~= nil and self.keep_until > self.client.world.clock.now
end

--- Ends a lease for all locks that share it. Keeps its keys.
function lease.stop(self)
  local client = self.client
  if not self.over and not self.lost and not self.ended and not lease.lasts(self) then
    self.ended = true -- Without a report: its loss counts all the same.
    client:count_loss(is_capped(self) and "max_hold" or "expired", self.resources[1])
  end
  self.over = true
  client.world.clock:cancel(self.timer)
  client.leases[self] = nil
  for index = #client.owned, 1, -1 do
    if client.owned[index] == self and not self.lost then table.remove(client.owned, index) end
  end
end

local function disown(self)
  for index = #self.client.owned, 1, -1 do
    if self.client.owned[index] == self then table.remove(self.client.owned, index) end
  end
end

--- Removes a lock from those that share the lease.
function lease.leave(self, lock)
  for index = #self.shares, 1, -1 do
    if self.shares[index] == lock then table.remove(self.shares, index) end
  end
  lock.lease = nil
  if not self.shares[1] then disown(self) end
end

--- So many nodes deny the lease that it is over.
function lease.lose(self, denied)
  local client = self.client
  local lost = { since = client.world.clock.now, denied = denied, lease = self }
  self.lost = true
  lease.stop(self)
  for _, lock in ipairs(self.shares) do lock.lost, lock.lease = lost, nil end
  lease.drop(self)
  report(self, "lost", lost.since)
  client:count_loss("lost", self.resources[1])
  client.world:change()
end

-- ---------------------------------------------------------------------------------------- extends

local function key_life(self, ttl)
  return ttl + self.options.lock_delay
end

-- Sets the keys again on nodes that have lost them.
local function heal(self, asked, ttl)
  local life = key_life(self, max(ttl, self.keys_end - self.client.world.clock.now))
  for index, vote in ipairs(asked.votes) do
    if vote.vote == "taken" then
      local kind, healed = self.client.nodes[index]:call(function(at) return at:heal(self.keys, self.token, life) end,
        function() end)
      if kind == "ok" and healed == "granted" then
        self.known[index] = true
        self.client:count_heal(index)
      end
    end
  end
end

local function confirm(self, asked, ttl)
  local deadline = asked.began + valid(self, ttl)
  if deadline >= self.deadline then
    self.known = {}
    for index, vote in ipairs(asked.votes) do self.known[index] = vote.vote == "granted" or nil end
  end
  self.deadline = max(self.deadline, deadline)
  self.keys_end = max(self.keys_end, asked.began + ttl)
  self.failed, self.warned, self.ended, self.steady = false, false, nil, nil
  heal(self, asked, ttl)
  for _, lock in ipairs(self.shares) do lock.loss = nil end
end

--- Returns the names of the nodes that deny a lease.
function lease.deniers(asked)
  local names = {}
  for _, vote in ipairs(asked.votes) do
    if vote.vote == "taken" then names[#names + 1] = vote.node end
  end
  return names
end

--- Extends a lease. Calls ended(round, code) at the end.
function lease.extend(self, ttl, timeout, ended)
  local life = key_life(self, ttl)
  local clock = self.client.world.clock
  clock:cancel(self.timer)
  return round.start(self.client, self.resources, {
    ask = function(node) return node:extend(self.keys, self.token, life) end,
    decide = round.of_extend,
    timeout = timeout,
    ended = function(asked, code)
      if not lease.lasts(self) then
        code = self.lost and "lost" or "expired"
      elseif code == "ok" then
        confirm(self, asked, ttl)
      elseif code == "lost" then
        lease.lose(self, lease.deniers(asked))
      else
        self.failed = true
      end
      lease.schedule(self)
      ended(asked, code)
    end,
    late = function(index, vote)
      if not self.over then self.known[index] = vote == "granted" or nil end
    end,
  })
end

--- Returns the ttl of an extend that the program did not ask for: it ends at max_hold.
function lease.capped(self, ttl)
  if not self.hold_until then return ttl end
  return min(ttl, option.whole(self.hold_until - self.client.world.clock.now))
end

-- Extends the lease automatically, or reports its end. Nodes that hang give no vote to it.
tick = function(self)
  self.timer = nil
  if not lease.lasts(self) then return report_end(self) end
  if self.busy then return end -- The end of the program's own extend sets the timer.
  lease.extend(self, lease.capped(self, self.ttl), 0, function(asked, code)
    self.client:count("auto_extend", code, {})
    self.steady = asked.granted == #self.client.nodes and self.client.world.version or nil
    lease.schedule(self)
    if code == "unavailable" then
      warn(self, "unavailable", self.client.world.clock.now)
    elseif code == "expired" then
      report_end(self)
    end
  end)
end

--- Lets a lease with automatic extends ask the nodes now.
function lease.poke(self)
  if not self.options.auto_extend or self.over or self.busy then return end
  self.client.world.clock:cancel(self.timer)
  tick(self)
end

-- ------------------------------------------------------------------------------------------ grant

local WEEK = 7 * 86400000

-- Returns a fencing token above those of all nodes that granted the lock, and stores it there.
local function draw_fence(client, keys, asked)
  local fence = math.floor(client.world.clock.now * 1000)
  local function each(fn)
    for index, vote in ipairs(asked.votes) do
      local granted = vote.vote == "granted" and keys or {}
      for _, key in ipairs(granted) do fn(client.nodes[index], key .. ":redlock-fence") end
    end
  end
  each(function(node, key)
    local entry = node:get(key)
    fence = max(fence, entry and tonumber(entry.value) or 0)
  end)
  fence = fence + 1
  each(function(node, key) node:put(key, ("%.0f"):format(fence), WEEK) end)
  return math.floor(fence)
end

--- Returns the lease of a granted acquire. `from` has token, keys, resources, options, owner,
--- began, fence, slot and keep_until.
function lease.new(client, lock, from, asked)
  local options = from.options
  local self = {
    client = client, token = from.token, keys = from.keys, resources = from.resources, options = options,
    owner = from.owner, ttl = options.ttl, keys_end = from.began + options.ttl, known = {}, shares = { lock },
    slot = from.slot, keep_until = from.keep_until,
    hold_until = options.auto_extend and options.max_hold > 0 and from.began + options.max_hold or nil,
  }
  self.deadline = from.began + valid(self, options.ttl)
  if not lease.lasts(self) then return nil end
  for index, vote in ipairs(asked.votes) do self.known[index] = vote.vote == "granted" or nil end
  self.fence = from.fence or options.fence and draw_fence(client, self.keys, asked) or nil
  lease.hold(self, options)
  client.leases[self] = true
  if self.owner then client.owned[#client.owned + 1] = self end
  lease.schedule(self)
  return self
end

return lease
