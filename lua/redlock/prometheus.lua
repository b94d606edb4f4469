--- Renders the figures of clients in the text format of Prometheus, version 0.0.4.
---
---     local prometheus = require "redlock.prometheus"
---     print(prometheus.render(client))                       -- no label `client`
---     print(prometheus.render(one, other))                   -- client="1", client="2"
---     print(prometheus.render { orders = one, jobs = other }) -- client="jobs", client="orders"
---
--- A family has a line in FAMILIES below. docs/operating.md lists the families for operators.

local concat, sort = table.concat, table.sort
local ipairs, pairs, select, tonumber, tostring, type = ipairs, pairs, select, tonumber, tostring, type
local HUGE = math.huge

local prometheus = { CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8" }

-- ---------------------------------------------------------------------------------------- the text

local REPLACEMENT = "\239\191\189" -- U+FFFD in UTF-8

-- Returns the length of the UTF-8 character at `at`, or nil if the bytes are none.
local function character(text, at)
  local first, second = text:byte(at, at + 1)
  if first < 0x80 then return 1 end
  local length = first >= 0xC2 and first < 0xE0 and 2 or first >= 0xE0 and first < 0xF0 and 3
    or first >= 0xF0 and first < 0xF5 and 4
  if not length or not text:find("^" .. ("[\128-\191]"):rep(length - 1), at + 1) then return nil end
  if first == 0xE0 and second < 0xA0 or first == 0xF0 and second < 0x90 then return nil end -- overlong
  if first == 0xED and second > 0x9F or first == 0xF4 and second > 0x8F then return nil end -- no character
  return length
end

--- Returns the text with a replacement for control characters and for bytes that are no UTF-8,
--- which would make Prometheus reject the whole page.
function prometheus.clean(text)
  if not text:find("[%c\128-\255]") then return text end
  local parts, at = {}, 1
  while at <= #text do
    local length = character(text, at)
    local part = length and text:sub(at, at + length - 1)
    parts[#parts + 1] = part and (part == "\n" or not part:find("^%c")) and part or REPLACEMENT
    at = at + (length or 1)
  end
  return concat(parts)
end

local ESCAPED = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function label_value(value)
  return (prometheus.clean(tostring(value)):gsub('[\\"\n]', ESCAPED))
end

-- Returns the shortest text that reads as the same number, with a point whatever the locale.
local function number(value)
  if value ~= value then return "NaN" end
  if value == HUGE then return "+Inf" end
  if value == -HUGE then return "-Inf" end
  local text = ("%.15g"):format(value)
  if tonumber(text) ~= value then text = ("%.17g"):format(value) end
  return (text:gsub(",", "."))
end

-- Appends `name="value"` to labels that may be empty.
local function with(labels, name, value)
  return (labels == "" and "" or labels .. ",") .. name .. '="' .. label_value(value) .. '"'
end

local function braces(labels)
  return labels == "" and "" or "{" .. labels .. "}"
end

local function add_histogram(lines, name, labels, histogram)
  local last = 0
  for _, bucket in ipairs(histogram.buckets) do
    last = bucket.le
    lines[#lines + 1] = name .. "_bucket{" .. with(labels, "le", number(last)) .. "} " .. number(bucket.count)
  end
  if last ~= HUGE then
    lines[#lines + 1] = name .. "_bucket{" .. with(labels, "le", "+Inf") .. "} " .. number(histogram.count)
  end
  lines[#lines + 1] = name .. "_sum" .. braces(labels) .. " " .. number(histogram.sum)
  lines[#lines + 1] = name .. "_count" .. braces(labels) .. " " .. number(histogram.count)
end

-- ------------------------------------------------------------------------------------ the families

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  sort(names, function(one, other) return tostring(one) < tostring(other) end)
  return names
end

-- Adds a sample for each number of `map`, with its name as the label.
local function each_name(add, labels, label, map)
  for _, name in ipairs(sorted_names(map)) do add(with(labels, label, name), map[name]) end
end

-- Returns a function that adds a sample for each node. `value(node)` returns nil for no sample.
local function of_nodes(value)
  return function(stats, add, labels)
    for index, node in ipairs(stats.nodes) do add(with(labels, "node", stats.names[index]), value(node)) end
  end
end

local function field(name)
  return function(stats, add, labels) add(labels, stats[name]) end
end

local function field_of_nodes(name)
  return of_nodes(function(node) return node[name] end)
end

-- A client that was never used has no connections, which does not mean that nodes are down. The sum
-- of nginx's workers has nil then.
local function up(node)
  if node.up == nil or not node.up and node.connections == 0 and node.failures == 0 then return nil end
  return node.up and 1 or 0
end

-- Name, type, help, and a function that calls add(labels, value or histogram) for each sample.
local FAMILIES = {
  { "redlock_operations_total", "counter", "Operations that ended, by operation and outcome.",
    function(stats, add, labels)
      for _, operation in ipairs(sorted_names(stats.operations)) do
        each_name(add, with(labels, "operation", operation), "outcome", stats.operations[operation])
      end
    end },
  { "redlock_attempts_total", "counter", "Attempts of all acquires.", field "attempts" },
  { "redlock_acquire_seconds", "histogram", "Durations of acquires that succeeded, waiting included.",
    field "acquire_time" },
  { "redlock_wait_seconds", "histogram", "Durations of acquires that had to wait, with any outcome.",
    field "wait_time" },
  { "redlock_held", "gauge", "Locks that are held.", field "held" },
  { "redlock_waiting", "gauge", "Acquires that wait for a lock.", field "waiting" },
  { "redlock_lost_total", "counter", "Leases that ended without a release, by reason.",
    function(stats, add, labels) each_name(add, labels, "reason", stats.lost) end },
  { "redlock_warnings_total", "counter", "Warnings that a lease may be lost, by reason.",
    function(stats, add, labels) each_name(add, labels, "reason", stats.warnings) end },
  { "redlock_quorum", "gauge", "Votes that an acquire needs.", field "quorum" },
  { "redlock_node_up", "gauge", "1 if the client is connected to the node, 0 if not. Absent before the first use.",
    of_nodes(up) },
  { "redlock_node_quarantined", "gauge", "1 if the guard excludes the node.",
    of_nodes(function(node) return node.quarantined and 1 or 0 end) },
  { "redlock_node_outstanding", "gauge", "Commands whose reply is outstanding.", field_of_nodes "outstanding" },
  { "redlock_votes_total", "counter", "Votes of each node, by kind.",
    function(stats, add, labels)
      for index, node in ipairs(stats.nodes) do
        each_name(add, with(labels, "node", stats.names[index]), "vote", node.votes)
      end
    end },
  { "redlock_node_latency_seconds", "histogram", "Times from a command to its reply.", field_of_nodes "latency" },
  { "redlock_node_connections_total", "counter", "Connections that were made to the node.",
    field_of_nodes "connections" },
  { "redlock_node_failures_total", "counter", "Connections that ended or could not be made.",
    field_of_nodes "failures" },
  { "redlock_node_heals_total", "counter", "Keys that the node had lost and got again.", field_of_nodes "heals" },
  { "redlock_node_quarantines_total", "counter", "Times that the guard began to exclude the node.",
    field_of_nodes "quarantines" },
  { "redlock_workers", "gauge", "Workers of nginx whose gauges are in the sums.", field "workers" },
  { "redlock_figures_missing", "gauge", "Figures of this worker that did not fit in.", field "missing" },
}

-- ------------------------------------------------------------------------------------- the clients

--- Returns a name for each node. Two nodes of one server, with different databases, have the same
--- address, and Prometheus rejects a page with equal series.
function prometheus.node_names(nodes)
  local names, seen = {}, {}
  for index, node in ipairs(nodes) do
    local name, count = node.node, 1
    while seen[name] do
      count = count + 1
      name = node.node .. "#" .. count
    end
    seen[name], names[index] = true, name
  end
  return names
end

local function is_client(value)
  if type(value) ~= "table" and type(value) ~= "userdata" then return false end
  return type(value.stats) == "function"
end

-- Returns the clients and the labels of each: from a list, or from a table of names.
local function read_clients(first, ...)
  local clients, labels, more = {}, {}, select("#", ...)
  if type(first) == "table" and not is_client(first) then
    for _, name in ipairs(sorted_names(first)) do
      clients[#clients + 1], labels[#labels + 1] = first[name], with("", "client", name)
    end
    if more > 0 then return {} end
  else
    clients = { first, ... }
    for index = 1, more + 1 do labels[index] = more > 0 and with("", "client", index) or "" end
  end
  for index = 1, #labels do
    if not is_client(clients[index]) then return {} end
  end
  return clients, labels
end

--- Returns the text of all figures. With several clients each sample has the label `client`: the
--- number of the client, or its name in a table `{ name = client, ... }`.
function prometheus.render(...)
  local clients, labels = read_clients(...)
  if #clients == 0 then
    error("redlock: prometheus.render(): pass clients, or a table of clients by name", 2)
  end
  local all = {}
  for index, client in ipairs(clients) do
    all[index] = client:stats()
    all[index].names = prometheus.node_names(all[index].nodes)
  end
  local lines = {}
  for _, family in ipairs(FAMILIES) do
    local name, kind, help, collect = family[1], family[2], family[3], family[4]
    local head = #lines
    lines[head + 1] = "# HELP " .. name .. " " .. help
    lines[head + 2] = "# TYPE " .. name .. " " .. kind
    local function add(sample, value)
      if value == nil then return end
      if kind == "histogram" then return add_histogram(lines, name, sample, value) end
      lines[#lines + 1] = name .. braces(sample) .. " " .. number(value)
    end
    for index, stats in ipairs(all) do collect(stats, add, labels[index]) end
    if #lines == head + 2 then lines[head + 2], lines[head + 1] = nil, nil end
  end
  lines[#lines + 1] = ""
  return concat(lines, "\n")
end

return prometheus
