--- Options of the fake: defaults, levels, and what follows from them (rl_options.c, rl_validity.c).
---
--- redlock/options.lua has checked each value before.

local tables = require "redlock.fake_table"

local option = {}

local min, max, floor = math.min, math.max, math.floor
local RETRIES, NODE_TIMEOUT, GRANULARITY, GUARD_MAX_TTL = 3, 100, 2, 30000

local names = {}
for _, row in ipairs(tables.options.lock) do names[#names + 1] = row.name end

--- Returns the defaults.
function option.defaults()
  local defaults = { lock_delay = 0, extend_every = 0, max_hold = 0, hold_at_least = 0 }
  for _, row in ipairs(tables.options.lock) do
    if row.default then defaults[row.name] = row.default end
  end
  return defaults
end

--- Returns the milliseconds that a lease is shorter than its ttl.
function option.drift(ttl, factor)
  return ttl * factor + GRANULARITY
end

-- Returns the least ttl of which 1 ms is left without its drift.
local function least_ttl(factor)
  local ttl = floor((1 + GRANULARITY) / (1 - factor))
  return ttl - option.drift(ttl, factor) < 1 and ttl + 1 or ttl
end

--- Returns nil, or why a ttl is too short to be that of an extend.
function option.too_short(ttl, factor)
  if ttl >= least_ttl(factor) then return nil end
  return (ttl < 4 and ("ttl is %d ms, and"):format(ttl) or "ttl") .. option.TOO_SHORT
end

--- Returns for how long the keys must live after the grant so that they last for hold_at_least; 0
--- without it.
function option.hold(options)
  if options.hold_at_least == 0 then return 0 end
  return (options.hold_at_least + GRANULARITY) / (1 - options.drift_factor) + options.lock_delay
end

-- Returns nil, or why the options cannot be used. `own` are those of the lowest level, which may be
-- the client's.
local function complaint(options, own, of_client)
  if option.too_short(options.ttl, options.drift_factor) then
    return ("option 'ttl' must be at least %.14g ms, got %.14g: at least 1 ms must be left after the allowance for "
      .. "clock drift, which is ttl x %.14g + 2 ms"):format(least_ttl(options.drift_factor), options.ttl,
      options.drift_factor)
  end
  if not of_client and not options.auto_extend and ((own.extend_every or 0) > 0 or (own.max_hold or 0) > 0) then
    return "options 'extend_every' and 'max_hold' need option 'auto_extend'"
  end
end

--- Returns the options of a level, which override those of the level above; or nil and a message.
function option.resolve(above, given, of_client)
  if given == nil then return above end
  local options, own = {}, {}
  for name, value in pairs(above) do options[name] = value end
  for _, name in ipairs(names) do own[name] = given[name] end
  if type(own.auto_extend) == "table" then
    own.extend_every = own.auto_extend.every or own.extend_every
    own.max_hold = own.auto_extend.max_hold or own.max_hold
    own.auto_extend = true
  end
  if given.on_lost ~= nil then own.notify_lost = true end
  if own.wait ~= nil and own.retry_count == nil then options.retry_count = nil end
  for name, value in pairs(own) do options[name] = value end
  local wrong = complaint(options, own, of_client)
  if wrong then return nil, wrong end
  return options
end

--- Returns how long an acquire tries: 0 = one attempt.
function option.budget(options)
  if options.wait == 0 then return 0 end
  local retries = options.retry_count
  if retries == nil then
    if options.wait then return options.wait end
    retries = RETRIES
  end
  local budget = retries * max(options.retry_delay, 1)
  return options.wait and min(budget, options.wait) or budget
end

--- Returns the time limit of one attempt.
function option.node_timeout(options, ttl)
  return options.node_timeout or min(NODE_TIMEOUT, ttl / 10)
end

--- Returns the time from a confirmed extend to the next automatic one.
function option.every(options, ttl)
  local every, valid = ttl / 3, ttl - option.drift(ttl, options.drift_factor)
  if options.extend_every > 0 then every = max(options.extend_every, min(every, 10)) end
  return min(every, valid - valid / 3)
end

--- Returns nil, or why keys of a lock may live too long for a guard with the longest ttl.
function option.too_long(options, longest)
  return options.ttl + options.lock_delay > longest and option.TOO_LONG
    or option.hold(options) > longest and option.TOO_LONG_TO_HOLD or nil
end

--- Reads the guard of a client. Returns its longest ttl, or nil; or false and a message.
function option.guard(given, options)
  local guard = given and given.guard
  if not guard then return nil end
  local own = type(guard) == "table" and guard.max_ttl or nil
  local longest = own or GUARD_MAX_TTL
  local wrong, default = option.too_long(options, longest), own and "" or " (the default)"
  if not wrong then return longest end
  if wrong == option.TOO_LONG_TO_HOLD then
    return false, ("%s: hold_at_least %d ms, lock_delay %d ms, max_ttl %d ms%s"):format(wrong, options.hold_at_least,
      options.lock_delay, longest, default)
  end
  return false, ("%s: ttl %d ms%s, lock_delay %d ms, max_ttl %d ms%s"):format(option.TOO_LONG, options.ttl,
    options.ttl == option.defaults().ttl and " (the default)" or "", options.lock_delay, longest, default)
end

--- Returns true if the options are those of a semaphore.
function option.has_permits(options)
  return (options.permits or 0) > 0
end

option.SEVERAL = "permits: a lock with several resources is no semaphore; make a lock with permits for each resource"
option.SUPPLIED = "permits: an acquire of a semaphore supplies no token"
option.TOO_SHORT = " must be at least 1 ms more than the drift allowance, which is ttl x drift_factor + 2 ms: "
  .. "at least 4 ms with the default drift_factor"
option.TOO_LONG = "ttl and lock_delay together are more than the guard's max_ttl"
option.TOO_LONG_TO_HOLD = "hold_at_least, its drift and lock_delay together are more than the guard's max_ttl"

--- Returns whole milliseconds, rounded down.
function option.whole(milliseconds)
  return max(floor(milliseconds), 0)
end

return option
