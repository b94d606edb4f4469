--- The status page: figures of clients as HTML for people. It has no script and loads nothing.

local concat, sort = table.concat, table.sort
local ceil, huge, min = math.ceil, math.huge, math.min
local ipairs, pairs, tostring = ipairs, pairs, tostring

local LOCKS = 200 -- rows of locks

local HEAD = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>redlock</title>
<style>
:root { --text: #1b1f24; --soft: #57606a; --page: #ffffff; --line: #d0d7de; --good: #116329; --bad: #a40e26; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --soft: #9198a1; --page: #0d1117; --line: #3d444d; --good: #56d364; --bad: #ff7b72; }
}
body { margin: 0 auto; max-width: 72rem; padding: 1rem; color: var(--text); background: var(--page);
  font: 1rem/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 1rem 0 0.25rem; }
th, td { padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  white-space: nowrap; }
th:first-child, td:first-child, .nodes :nth-child(2), .locks :nth-child(2) { text-align: left; white-space: normal;
  overflow-wrap: anywhere; min-width: 9rem; }
th { color: var(--soft); font-weight: normal; }
dl { display: flex; flex-wrap: wrap; gap: 0 2rem; margin: 0; }
dt, footer { color: var(--soft); }
dd { margin: 0; font-size: 1.5rem; }
.good { color: var(--good); }
.bad { color: var(--bad); font-weight: bold; }
</style>
</head>
<body>
<h1>redlock</h1>
]]

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function escape(text)
  return (tostring(text):gsub("[&<>\"']", ENTITIES))
end

-- Returns the text of the duration that so much of all durations does not exceed, by its bucket.
local function quantile(histogram, part)
  if histogram.count == 0 then return "-" end
  local rank, last = ceil(part * histogram.count), 0
  for _, bucket in ipairs(histogram.buckets) do
    if bucket.count >= rank then
      if bucket.le == huge then return ("over %g ms"):format(last * 1000) end
      return ("%g ms"):format(bucket.le * 1000)
    end
    last = bucket.le
  end
  return "-"
end

local function mark(class, text)
  return '<span class="' .. class .. '">' .. escape(text) .. "</span>"
end

-- Returns the state of a node in HTML. `node` has the figures of all workers, `own` those of the
-- serving one, which knows the reason.
local function state_of(node, own)
  if node.quarantined then return mark("bad", "quarantined"), own.quarantine end
  if node.up == nil or not node.up and node.connections + node.failures == 0 then return "not used yet" end
  if node.up then return mark("good", "up") end
  return mark("bad", "down"), own.error
end

local function row(lines, tag, cells)
  local begin, finish = "<" .. tag .. ">", "</" .. tag .. ">"
  lines[#lines + 1] = "<tr>" .. begin .. concat(cells, finish .. begin) .. finish .. "</tr>"
end

local function begin_table(lines, class, caption, names)
  lines[#lines + 1] = '<div class="scroll"><table class="' .. class .. '"><caption>' .. caption .. "</caption>"
  row(lines, "th", names)
end

local function end_table(lines)
  lines[#lines + 1] = "</table></div>"
end

local function add_nodes(lines, client)
  begin_table(lines, "nodes", "Nodes", { "node", "state", "latency p50", "p99", "granted", "taken", "errors",
    "no answer", "outstanding", "connections", "failures" })
  for index, node in ipairs(client.stats.nodes) do
    local state, reason = state_of(node, client.nodes[index] or {})
    local votes = node.votes
    row(lines, "td", { escape(node.node), state .. (reason and "<br>" .. escape(reason) or ""),
      quantile(node.latency, 0.5), quantile(node.latency, 0.99), votes.granted, votes.taken, votes.error,
      votes.unknown, node.outstanding, node.connections, node.failures })
  end
  end_table(lines)
end

-- Adds the operations that have ended. A column is an outcome that occurred.
local function add_operations(lines, operations)
  local names, outcomes, seen = {}, {}, {}
  for name, counts in pairs(operations) do
    names[#names + 1] = name
    for outcome, count in pairs(counts) do
      if count > 0 and not seen[outcome] then
        seen[outcome] = true
        outcomes[#outcomes + 1] = outcome
      end
    end
  end
  if #outcomes == 0 then return end
  sort(names)
  sort(outcomes)
  local titles = { "operation" }
  for index, outcome in ipairs(outcomes) do titles[index + 1] = escape(outcome) end
  begin_table(lines, "operations", "Operations", titles)
  for _, name in ipairs(names) do
    local cells = { escape(name) }
    for index, outcome in ipairs(outcomes) do cells[index + 1] = operations[name][outcome] or 0 end
    row(lines, "td", cells)
  end
  end_table(lines)
end

-- Adds the names of locks that are held, and of those that requests wait for.
local function add_locks(lines, locks, total)
  if #locks == 0 then return end
  begin_table(lines, "locks", "Locks", { "name", "state", "rest of the lease" })
  for index = 1, min(#locks, LOCKS) do
    local lock = locks[index]
    row(lines, "td", { escape(lock.name), lock.remaining and "held" or "waiting",
      lock.remaining and ("%.1f s"):format(lock.remaining / 1000) or "" })
  end
  end_table(lines)
  local hidden = total - min(#locks, LOCKS)
  if hidden > 0 then lines[#lines + 1] = "<p>" .. hidden .. " more</p>" end
end

local function add_client(lines, client)
  local stats, up = client.stats, 0
  for _, node in ipairs(stats.nodes) do
    if node.up and not node.quarantined then up = up + 1 end
  end
  local lost = 0
  for _, count in pairs(stats.lost) do lost = lost + count end
  if client.name then lines[#lines + 1] = "<h2>" .. escape(client.name) .. "</h2>" end
  lines[#lines + 1] = "<dl>"
  for _, pair in ipairs { { "held locks", stats.held }, { "waiters", stats.waiting },
    { "nodes up", up .. " of " .. #stats.nodes }, { "quorum", stats.quorum }, { "lost leases", lost },
    { "acquire p50", quantile(stats.acquire_time, 0.5) }, { "acquire p99", quantile(stats.acquire_time, 0.99) },
    { "workers", stats.workers } } do
    lines[#lines + 1] = "<div><dt>" .. pair[1] .. "</dt><dd>" .. escape(pair[2]) .. "</dd></div>"
  end
  lines[#lines + 1] = "</dl>"
  add_nodes(lines, client)
  add_locks(lines, client.locks, stats.held + stats.waiting)
  add_operations(lines, stats.operations)
end

local status = {}

--- Returns the page. A client is { name, stats = figures of all workers, nodes =
--- client:nodes(), locks = Figures:locks() of nginx_metrics.lua }.
function status.render(clients, version)
  local lines = { HEAD }
  for _, client in ipairs(clients) do add_client(lines, client) end
  lines[#lines + 1] = "<footer><p>redlock " .. escape(version)
    .. ". Counters since the start of nginx; other workers are up to a second old.</p></footer></body></html>\n"
  return concat(lines, "\n")
end

return status
