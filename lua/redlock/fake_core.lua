--- Replaces redlock.core in the fake.
---
--- client.lua, lock.lua, section.lua, options.lua and loss.lua run on it unchanged, so that
--- options, mistakes and results are those of the library.

local clients = require "redlock.fake_client"
local label = require "redlock.fake_label"
local lease = require "redlock.fake_lease"
local locks = require "redlock.fake_lock"
local message = require "redlock.fake_message"
local object = require "redlock.fake_object"
local operation = require "redlock.fake_operation"
local option = require "redlock.fake_option"
local tables = require "redlock.fake_table"

local core = {
  KIND = "table", -- type of clients and locks; those of the library are userdata
  VERSION = tables.VERSION,
  TOKEN_MAX = tables.TOKEN_MAX,
  RESOURCES_MAX = tables.RESOURCES_MAX,
  OWNER_NAME_MAX = tables.OWNER_NAME_MAX,
  options = tables.options,
  operations = tables.operations,
  codes = tables.codes,
  label_complaint = label.complaint,
  client_methods = object.client_methods,
  lock_methods = object.lock_methods,
  client = clients.client,
  add = clients.add,
  join = clients.join,
  lock = locks.new,
  attach = locks.attach,
  dispatch_by = locks.dispatch_by,
}

local floor, huge = math.floor, math.huge
local running = coroutine.running
local sentences = tables.sentences
local records, INSIDE, WRAPPED = object.records, object.INSIDE, object.WRAPPED
local check_lock, failure, misuse = object.check_lock, object.failure, object.misuse

-- Returns the owner of an acquire, or nil.
local function owner_of(self, given)
  local reentrant = self.reentrant
  if given and given.reentrant ~= nil then reentrant = given.reentrant end
  if not reentrant then return nil end
  return type(reentrant) == "string" and "name " .. reentrant or running() or "main"
end

-- A nested acquire without on_lost keeps the function of the outer one.
local function note_on_lost(self, fn, started)
  if self.result and self.result.at_once and started.over or fn == nil and self.depth > 0 then return end
  self.object[1][INSIDE].on_lost_of_call = fn
end

local function begin_acquire(self, given, of_loop, level)
  local options = self.options
  if given then
    options = locks.check_options(self.client, self.options, given, self.resources, level + 1)
    self.handed = locks.handed(self.handed, given)
  end
  local custom = given and given.token or self.token_given
  local on_lost, owner = given and given.on_lost, owner_of(self, given)
  self.token_given = nil
  if custom and option.has_permits(options) then
    misuse(level + 1, "'%s': %s", message.resources(self.resources), option.SUPPLIED)
  end
  local started = operation.acquire(self, options, owner, custom, of_loop)
  note_on_lost(self, on_lost, started)
  return started
end

local NO_GUARD = "the client has no guard: turn on its setting guard"

local function rows_of(self, asked, rows)
  for index, node in ipairs(self.client.nodes) do
    local vote = asked.votes[index]
    if vote.vote ~= "granted" then
      rows[index] = { node = node.name, state = "unknown", error = vote.error or "no reply" }
    end
  end
  self.rows = rows
end

local starters = {}

function starters.acquire(self, given, of_loop, level)
  local started = begin_acquire(self, given, of_loop, level + 1)
  return started
end

function starters.extend(self, ttl, of_loop, level)
  local guard = self.client.guard
  local wrong = ttl and option.too_short(ttl, self.options.drift_factor)
    or guard and (ttl or 0) + self.options.lock_delay > guard and option.TOO_LONG
  if wrong then misuse(level + 1, "'%s': %s", message.resources(self.resources), wrong) end
  return operation.extend(self, ttl, of_loop)
end

function starters.release(self, _, of_loop)
  return operation.release(self, of_loop and "loop" or nil)
end

function starters.inspect(self)
  local key, rows = operation.keys_of(self)[1], {}
  return operation.question(self, "inspect", function(node, index)
    rows[index] = node:inspect(key, tables.TOKEN_MAX)
    return "granted"
  end, function(asked, code)
    rows_of(self, asked, rows)
    return code
  end)
end

function starters.force_release(self, token)
  local key = operation.keys_of(self)[1]
  local asked_by = operation.question(self, "force_release", function(node) return node:force(key, token) end,
    function(asked, code)
      if code == "ok" and asked.granted == 0 then return "not_held" end
      return code
    end)
  self.client.world:change()
  return asked_by
end

function starters.doctor(self)
  return operation.question(self, "doctor", function() return "granted" end, function(asked, code)
    self.findings = {}
    for index, node in ipairs(self.client.nodes) do
      local vote = asked.votes[index]
      if vote.vote ~= "granted" then
        self.findings[#self.findings + 1] = { severity = "error", name = "down", node = node.name,
          message = ("%s did not answer: %s; check that the server is running and reachable")
            :format(node.name, vote.error or "no reply") }
      end
    end
    return code
  end)
end

function starters.bootstrap(self, _, _, level)
  if not self.client.guard then misuse(level + 1, "bootstrap: %s", NO_GUARD) end
  return operation.question(self, "bootstrap", function() return "granted" end, function(_, code) return code end)
end

local names, methods_of = {}, {}
for name, row in pairs(tables.operations) do
  names[row.code] = name
  methods_of[row.code] = row.of .. ":" .. name .. "()"
end

local function check_idle(self, level)
  local busy = self.operation
  if not busy or busy.abandoned then return end
  misuse(level + 1, "'%s' has an operation in flight, and a lock has one at a time", message.resources(self.resources))
end

-- Waits for the end of an operation. An error of a coroutine of spawn() that goes on meanwhile
-- cancels it.
local function wait_for(self, started)
  local clock = self.client.world.clock
  if started.over or clock:thread() then return clock:wait(started) end
  local ok, err = pcall(clock.wait, clock, started)
  if ok then return end
  operation.cancel(self, "cancelled")
  error(err, 0)
end

--- (lock, code of an operation, argument) -> results of the method: starts it, and waits for its
--- end.
function core.run(of, number, argument)
  local self = check_lock(of, WRAPPED, methods_of[number])
  check_idle(self, WRAPPED)
  local started = starters[names[number]](self, argument, false, WRAPPED)
  wait_for(self, started)
  local value, text, code = operation.outcome(self)
  return value, text, code
end

local function shown(value)
  if type(value) ~= "number" then return object.noun(value) end
  return value ~= value and "nan" or ("%.14g"):format(value)
end

-- Checks the ttl of lock:start("extend"), which lock.lua passes on as it is.
local function check_started_ttl(ttl, level)
  local most = tables.options.lock[1].high
  if type(ttl) ~= "number" or ttl ~= ttl or ttl < 1 or floor(ttl) ~= ttl then
    misuse(level + 1, "lock:start(\"extend\"): ttl must be an integer >= 1 (milliseconds), got %s", shown(ttl))
  elseif ttl > most then
    misuse(level + 1, "lock:start(\"extend\"): ttl must be at most %.14g (milliseconds), got %s", most, shown(ttl))
  end
end

--- (lock, code of an operation, argument) -> true; or nil, message, code: starts it.
function core.start(of, number, argument)
  local self = check_lock(of, WRAPPED, "lock:start()")
  if names[number] == "extend" and argument ~= nil then check_started_ttl(argument, WRAPPED) end
  check_idle(self, WRAPPED)
  local started = starters[names[number]](self, argument, true, WRAPPED)
  if started.over and self.result.at_once then
    local value, text, code = operation.outcome(self)
    return value, text, code
  end
  return true
end

--- (lock) -> true; or nil, message, code: releases, and does not wait.
function core.release_send(of)
  local self = check_lock(of, WRAPPED, "lock:release()")
  check_idle(self, WRAPPED)
  local started = operation.release(self, "sent")
  if started.over and self.result.code then
    local value, text, code = operation.outcome(self)
    return value, text, code
  end
  return true
end

function core.detach(of)
  local self = check_lock(of, WRAPPED, "lock:detach()")
  check_idle(self, WRAPPED)
  local own, client = self.lease, self.client
  if self.operation then own = nil end
  if client.closed then return failure("closed") end
  if own and (own.shares[2] or self.depth > 0) and lease.lasts(own) then
    return failure("held", "its owner has acquired it more than once: release the other lock objects first")
  end
  if not lease.lasts(own) then
    if self.lost then return failure("lost") end
    return failure("not_held", "'" .. message.resources(self.resources) .. "': the lock is not held")
  end
  local text = "redlock1." .. client.world:new_token()
  client.world.handovers[text] = { resources = own.resources, prefix = client.prefix, count = #client.nodes,
    ttl = own.ttl, lock_delay = own.options.lock_delay, fence = own.fence, token = own.token, slot = own.slot,
    permits = own.options.permits, keep_until = own.keep_until }
  lease.leave(own, self)
  lease.stop(own)
  self.loss = nil
  return text
end

function core.give_token(of, token)
  records[of].token_given = token
end

function core.keys(of)
  local self = records[of]
  local rows, needed = self.rows, floor(#self.client.nodes / 2) + 1
  local found = { nodes = rows }
  for _, one in ipairs(rows) do
    local longer, same = 0, one.state == "held"
    for _, other in ipairs(rows) do
      local matches = same and other.state == "held" and other.token == one.token
      if matches and (other.ttl or huge) >= (one.ttl or huge) then longer = longer + 1 end
    end
    if longer >= needed and (not found.holder or (one.ttl or huge) > (found.ttl or huge)) then
      found.holder, found.label, found.ttl, found.fence = one.token, one.label, one.ttl, one.fence
    end
  end
  return found
end

function core.findings(of)
  return records[of].findings
end

--- (lock): drops a lock that no caller has seen.
function core.discard(of)
  operation.drop(records[of])
end

--- (lock) -> milliseconds of the lease that are left; or nil, message.
function core.left(of)
  local self = check_lock(of, WRAPPED, "lock:check()")
  local left = option.whole(lease.left(self.lease))
  if left >= 1 then return left end
  local name, reason = message.resources(self.resources), lease.loss_of(self)
  if not reason then return nil, ("redlock: '%s' is not held"):format(name) end
  return nil, ("redlock: '%s' is not held any more: %s (%s)"):format(name, sentences[reason], reason)
end

--- Returns the record of a lock, or nil.
function core.record_of_lock(of)
  local record = records[of]
  return getmetatable(record) == object.Lock and record or nil
end

return core
