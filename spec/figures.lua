--- Tables of the shape of client:stats() (lua/redlock/types.lua), and the families that are
--- rendered from them.

local figures = {}

--- Every family of redlock.prometheus for one client outside of nginx.
figures.FAMILIES = {
  "redlock_operations_total", "redlock_attempts_total", "redlock_acquire_seconds", "redlock_wait_seconds",
  "redlock_held", "redlock_waiting", "redlock_lost_total", "redlock_warnings_total", "redlock_quorum",
  "redlock_node_up", "redlock_node_quarantined", "redlock_node_outstanding", "redlock_votes_total",
  "redlock_node_latency_seconds", "redlock_node_connections_total", "redlock_node_failures_total",
  "redlock_node_heals_total", "redlock_node_quarantines_total",
}

--- Returns true if a page outside of nginx may have the family.
function figures.is_family(name)
  for _, known in ipairs(figures.FAMILIES) do
    if name == known then return true end
  end
  return false
end

--- Returns a histogram with so many durations in each bucket, and `beyond` above the last one.
function figures.histogram(bounds, counts, beyond, sum)
  local buckets, total = {}, 0
  for index, bound in ipairs(bounds) do
    total = total + counts[index]
    buckets[index] = { le = bound, count = total }
  end
  buckets[#buckets + 1] = { le = math.huge, count = total + beyond }
  return { count = total + beyond, sum = sum, buckets = buckets }
end

local function empty()
  return figures.histogram({ 0.0001, 0.001, 0.01, 0.1, 1 }, { 0, 0, 0, 0, 0 }, 0, 0)
end

local function outcomes()
  return { ok = 0, taken = 0, unavailable = 0, expired = 0, lost = 0, held = 0, not_held = 0, closed = 0,
    cancelled = 0, error = 0 }
end

--- Returns the figures of a client that is connected to these nodes, and has done nothing.
function figures.of(...)
  local nodes = {}
  for index, name in ipairs { ... } do
    nodes[index] = {
      node = name, up = true, quarantined = false,
      votes = { granted = 0, taken = 0, error = 0, quarantined = 0, unknown = 0, late = 0 },
      latency = empty(), connections = 1, failures = 0, heals = 0, quarantines = 0, outstanding = 0,
    }
  end
  return {
    operations = { acquire = outcomes(), extend = outcomes(), auto_extend = outcomes(), release = outcomes() },
    attempts = 0, nodes = nodes, quorum = math.floor(#nodes / 2) + 1, acquire_time = empty(), wait_time = empty(),
    held = 0, waiting = 0, lost = { expired = 0, lost = 0, max_hold = 0 }, warnings = { unavailable = 0, clock = 0 },
  }
end

--- Returns a copy with copies of all inner tables.
function figures.copy(value)
  if type(value) ~= "table" then return value end
  local made = {}
  for name, part in pairs(value) do made[name] = figures.copy(part) end
  return made
end

return figures
