--- The queries of examples/grafana/redlock.json and of examples/prometheus/redlock.rules.yml.

local json = require "dkjson"

local queries = {}

queries.RULES = "examples/prometheus/redlock.rules.yml"
queries.DASHBOARD = "examples/grafana/redlock.json"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

function queries.read_dashboard()
  return assert(json.decode(read(queries.DASHBOARD)))
end

--- Returns the queries of all panels and variables. Grafana's intervals are replaced.
function queries.of_dashboard()
  local dashboard, found = queries.read_dashboard(), {}
  local function add(query)
    found[#found + 1] = (query:gsub("%$__%l+_?%l*", "5m"))
  end
  for _, panel in ipairs(dashboard.panels) do
    for _, target in ipairs(panel.targets or {}) do add(target.expr) end
  end
  for _, variable in ipairs(dashboard.templating.list) do
    if variable.type == "query" then add(variable.query.query:match("^label_values%((.*), %l+%)$")) end
  end
  return found
end

--- Returns the expressions of all alerts. An expression may go on in lines of deeper indentation.
function queries.of_rules()
  local found, inside = {}, false
  for line in (read(queries.RULES)):gmatch("[^\n]+") do
    local first = line:match("^        expr: (.*)")
    inside = first ~= nil or inside and line:find("^          ") ~= nil
    if first then
      found[#found + 1] = first
    elseif inside then
      found[#found] = found[#found] .. line
    end
  end
  return found
end

return queries
