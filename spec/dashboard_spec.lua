-- The dashboard and the alerts of examples use only families and labels that are rendered.

local json = require "dkjson"

local figures = require "spec.figures"
local metrics_text = require "spec.metrics_text"
local queries = require "spec.queries"
local prometheus = require "redlock.prometheus"

-- Labels of Prometheus itself, of a histogram, and of several clients.
local OTHER_LABELS = { job = true, instance = true, le = true, client = true }

-- The page of nginx has every family.
local function rendered()
  local stats = figures.of("a:1", "b:2")
  stats.workers, stats.missing = 1, 0
  return metrics_text.parse(prometheus.render { stats = function() return stats end }).families
end

local function complain(query, families)
  local labels = {}
  for name in query:gmatch("redlock_[%w_]+") do
    local family = families[name]
    for _, suffix in ipairs { "_bucket", "_sum", "_count" } do
      local base = name:sub(1, -#suffix - 1)
      if not family and name:sub(-#suffix) == suffix and (families[base] or {}).type == "histogram" then
        family = families[base]
      end
    end
    if not family then return name .. " is not rendered" end
    if family.type == "counter" and not query:find("[%l]+%(%s*" .. name) then return name .. " has no rate()" end
    for label in pairs(family.labels) do labels[label] = true end
  end
  for list in query:gmatch("by %(([^)]*)%)") do
    for label in list:gmatch("[%l_]+") do
      if not labels[label] and not OTHER_LABELS[label] then return label .. " is no label of the families" end
    end
  end
  for label in query:gmatch("([%l_]+)=~?\"") do
    if not labels[label] and not OTHER_LABELS[label] then return label .. " is no label of the families" end
  end
  for list in query:gmatch("without %(([^)]*)%)") do
    if not labels[list] then return list .. " is no label of the families" end
  end
end

describe("examples for Prometheus", function()
  it("dashboard_queries_rendered_families_and_labels", function()
    local families, count = rendered(), 0
    for _, query in ipairs(queries.of_dashboard()) do
      assert.is_nil(complain(query, families), query)
      count = count + 1
    end
    assert.is_true(count >= 20, count .. " queries")
  end)

  it("dashboard_shows_each_family", function()
    local all = table.concat(queries.of_dashboard(), "\n")
    -- These are shown by the alerts, or only on the status page.
    local hidden = { redlock_workers = true, redlock_figures_missing = true }
    for name in pairs(rendered()) do
      assert.is_true(hidden[name] or all:find(name, 1, true) ~= nil, name .. " is in no panel")
    end
  end)

  it("dashboard_has_distinct_panels_that_do_not_overlap", function()
    local dashboard = queries.read_dashboard()
    local ids, places = {}, {}
    for _, panel in ipairs(dashboard.panels) do
      assert.is_nil(ids[panel.id])
      ids[panel.id] = true
      assert.is_true(panel.type == "row" or #panel.description > 5, panel.title .. " has no description")
      local at = panel.gridPos
      for x = at.x, at.x + at.w - 1 do
        for y = at.y, at.y + at.h - 1 do
          assert.is_nil(places[x .. "," .. y], panel.title .. " overlaps another panel")
          places[x .. "," .. y] = true
        end
      end
    end
    local text = json.encode(dashboard)
    assert.is_nil(text:find("https?://"), "the dashboard refers to a server")
  end)

  it("alerts_query_rendered_families_and_labels", function()
    local families, count = rendered(), 0
    for _, query in ipairs(queries.of_rules()) do
      assert.is_nil(complain(query, families), query)
      count = count + 1
    end
    assert.is_true(count >= 10, count .. " alerts")
  end)

  it("wrong_queries_are_detected", function()
    local families = rendered()
    for query, expected in pairs {
      ['redlock_helt'] = "redlock_helt is not rendered",
      ['redlock_held_bucket'] = "redlock_held_bucket is not rendered",
      ['redlock_attempts_total'] = "has no rate",
      ['rate(redlock_votes_total{kind="x"}[5m])'] = "kind is no label",
      ['sum by (outcome) (redlock_held)'] = "outcome is no label",
      ['sum without (outcome) (redlock_held)'] = "outcome is no label",
    } do
      assert.is_truthy((complain(query, families) or ""):find(expected, 1, true), query)
    end
  end)
end)
