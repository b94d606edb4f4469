--- Sums the figures of all workers of nginx in a shared dictionary.
---
--- 1. Once a second, in a step of the client's clock, each worker adds the growth of its counters
---    to counters of the dictionary. So the counters of ended workers remain.
--- 2. The values of a moment (gauges) are one entry for each worker, and the names of locks another
---    one. The worker writes them in each publication and deletes them at its end; the entries of a
---    killed worker expire.
--- 3. Any worker makes the sum: counters from the dictionary, gauges from the entries.
---
--- Nothing here waits or has a timer. A client has an entry for each counter, and WORKERS at most
--- for its workers. The number of a worker is that of its entry.

local prometheus = require "redlock.prometheus"

local ngx = ngx
local concat, gmatch, sort = table.concat, string.gmatch, table.sort
local ipairs, pairs, setmetatable, tonumber = ipairs, pairs, setmetatable, tonumber
local tostring, type = tostring, type

local WORKERS = 512 -- workers whose gauges are counted, those of reloads included
local GAUGE_LIFE = 5 -- seconds from a publication until the gauges of a killed worker vanish
local LOCKS = 50 -- locks that each worker names
local NAME_SIZE = 80 -- bytes of a name; the rest is cut off
local LOG_PAUSE = 60 -- seconds between two log lines about a full dictionary
local NO_ROOM = "no memory" -- of lua-nginx-module

-- Fields whose value is of a moment; all other numbers are counters.
local OF_CLIENT = { held = true, waiting = true }
local OF_NODE = { up = true, quarantined = true, outstanding = true }
local NONE = {}

-- ------------------------------------------------------------------------------------- the figures

-- Calls gauge(table, field, path) for the fields of `part` in `gauges`, and counter(...) for all
-- other numbers, also of inner tables. Bounds of buckets are part of the path.
local function visit(part, path, gauges, counter, gauge)
  for name, value in pairs(part) do
    if gauges[name] then
      gauge(part, name, path .. name)
    elseif type(value) == "table" then
      if name ~= "nodes" then visit(value, path .. (value.le or name) .. ".", NONE, counter, gauge) end
    elseif type(value) == "number" and name ~= "le" and name ~= "quorum" then
      counter(part, name, path .. name)
    end
  end
end

-- Visits all figures of stats. The path of a node has its address, so that a reload may change the
-- order of the nodes.
local function each(stats, counter, gauge)
  visit(stats, "", OF_CLIENT, counter, gauge)
  for index, name in ipairs(prometheus.node_names(stats.nodes)) do
    visit(stats.nodes[index], name:gsub("%c", "?") .. ".", OF_NODE, counter, gauge)
  end
end

-- ------------------------------------------------------------------------------------- publication

local Figures = {}
Figures.__index = Figures

-- Adds to a counter of the dictionary. Evicts nothing. Returns true, or nil and a message.
local function add(dict, key, growth)
  local value, err = dict:incr(key, growth)
  if value then return true end
  if err ~= "not found" then return nil, err end
  value, err = dict:safe_add(key, growth)
  if value or err ~= "exists" then return value, err end
  return dict:incr(key, growth) -- Another worker was faster.
end

-- Names the entries of this process. A worker starts with the entry of the master if init_by_lua
-- has used the pages.
local function identify(self)
  local id = ngx.worker.pid() .. " " .. tostring(self)
  if self.id ~= id then self.id, self.number = id, nil end
end

-- Writes the gauges to the entry of this worker, or to a free one if the entry has expired and
-- another worker has it. Returns true, or nil and a message.
local function write_gauges(self, text)
  identify(self)
  local dict, entry = self.dict, self.id .. "\n" .. text
  if self.number then
    local key = self.prefix .. "worker " .. self.number
    local found = dict:get(key)
    if found and found:match("^[^\n]*") == self.id then return dict:safe_set(key, entry, GAUGE_LIFE) end
  end
  for number = 1, WORKERS do
    local ok, err = dict:safe_add(self.prefix .. "worker " .. number, entry, GAUGE_LIFE)
    if ok then
      self.number = number
      return true
    elseif err ~= "exists" then
      return nil, err
    end
  end
  return nil, "there are more than " .. WORKERS .. " workers"
end

-- Writes the names of locks: a line for each, with the rest of the lease in milliseconds if the
-- lock is held.
local function write_locks(self, locks)
  local key = self.prefix .. "locks " .. (self.number or 0)
  if #locks == 0 or not self.number then
    self.dict:delete(key)
    return true
  end
  local lines = {}
  for index, lock in ipairs(locks) do
    local name = prometheus.clean(lock.resource:sub(1, NAME_SIZE)):gsub("%c", " ")
    if #lock.resource > NAME_SIZE then name = name .. "..." end
    if lock.more > 0 then name = name .. " and " .. lock.more .. " more" end
    lines[index] = (lock.remaining or "") .. "\t" .. name .. "\n"
  end
  return self.dict:safe_set(key, concat(lines), GAUGE_LIFE)
end

local function log_failure(self, count, err)
  if ngx.now() < self.log_at then return end
  self.log_at = ngx.now() + LOG_PAUSE
  if err == NO_ROOM then err = "it is full: give lua_shared_dict more memory" end
  ngx.log(ngx.ERR, "redlock: ", count, " figures of this worker are missing in lua_shared_dict ", self.dict_name, ": ",
    err)
end

--- Adds the growth of the counters since the last call, and writes the gauges and the names of
--- locks. Growth that the dictionary has no room for is added by a later call.
function Figures:publish(stats, locks)
  local dict, prefix, added = self.dict, self.prefix, self.added
  local lines, missing, failure = {}, 0, nil
  local function note(ok, err)
    if ok then return true end
    missing, failure = missing + 1, err
  end
  each(stats, function(part, name, path)
    local value = part[name]
    local growth = value - (added[path] or 0)
    if growth ~= 0 and note(add(dict, prefix .. path, growth)) then added[path] = value end
  end, function(part, name, path)
    local value = part[name]
    if name == "up" and not value and part.connections + part.failures == 0 then return end -- never used
    lines[#lines + 1] = path .. "\t" .. (value == true and 1 or value or 0)
  end)
  note(write_gauges(self, concat(lines, "\n")))
  note(write_locks(self, locks))
  self.missing = missing
  if failure then log_failure(self, missing, failure) end
end

--- Removes the gauges and the names of locks of this worker.
function Figures:leave()
  local key = self.number and self.prefix .. "worker " .. self.number
  local found = key and self.dict:get(key)
  if found and found:match("^[^\n]*") == self.id then
    self.dict:delete(self.prefix .. "locks " .. self.number)
    self.dict:delete(key)
  end
  self.number = nil
end

-- --------------------------------------------------------------------------------------------- sum

-- Returns the sums of the gauges of all workers by path, and the number of these workers.
local function read_gauges(self)
  local sums, workers = {}, 0
  for number = 1, WORKERS do
    local entry = self.dict:get(self.prefix .. "worker " .. number)
    if entry then
      workers = workers + 1
      for path, value in gmatch(entry, "\n([^\t\n]*)\t([^\n]*)") do
        sums[path] = (sums[path] or 0) + tonumber(value)
      end
    end
  end
  return sums, workers
end

-- Another worker may have added to some buckets only.
local function put_in_order(histogram)
  local last = 0
  for _, bucket in ipairs(histogram.buckets) do
    if bucket.count < last then bucket.count = last end
    last = bucket.count
  end
  histogram.count = last
end

--- Replaces the figures of this worker in `stats` by those of all workers. `up` is true if a worker
--- is connected to the node, and nil if no living worker has used it.
function Figures:sum(stats)
  local dict, prefix = self.dict, self.prefix
  local gauges, workers = read_gauges(self)
  each(stats, function(part, name, path)
    part[name] = tonumber(dict:get(prefix .. path)) or 0
  end, function(part, name, path)
    if workers == 0 then return end -- The dictionary had no room for them.
    local value = gauges[path]
    if name == "up" then
      part.up = value and value > 0 -- nil if it is unknown
    elseif name == "quarantined" then
      part.quarantined = (value or 0) > 0
    else
      part[name] = value or 0
    end
  end)
  put_in_order(stats.acquire_time)
  put_in_order(stats.wait_time)
  for _, node in ipairs(stats.nodes) do put_in_order(node.latency) end
  stats.workers, stats.missing = workers, self.missing
  return stats
end

--- Returns up to LOCKS locks of each worker as { name, remaining }: the rest of the lease in
--- milliseconds, nil for a waiter. Held ones come first.
function Figures:locks()
  local locks = {}
  for number = 1, WORKERS do
    local entry = self.dict:get(self.prefix .. "locks " .. number)
    for remaining, name in gmatch(entry or "", "([^\t\n]*)\t([^\n]*)\n") do
      locks[#locks + 1] = { name = name, remaining = tonumber(remaining) }
    end
  end
  sort(locks, function(one, other)
    if (one.remaining == nil) ~= (other.remaining == nil) then return one.remaining ~= nil end
    return one.name < other.name
  end)
  return locks
end

local metrics = { LOCKS = LOCKS }

--- Returns the figures of the client `name` of this worker in ngx.shared[dict_name].
function metrics.new(dict_name, name)
  local self = { dict = ngx.shared[dict_name], dict_name = dict_name, prefix = "redlock:" .. name .. ":" }
  self.added = {} -- by path: what the dictionary has of this worker
  self.log_at, self.missing = 0, 0
  return setmetatable(self, Figures)
end

return metrics
