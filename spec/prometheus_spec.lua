-- The text format of Prometheus, rendered from tables of the shape of client:stats().

local figures = require "spec.figures"
local metrics_text = require "spec.metrics_text"
local prometheus = require "redlock.prometheus"

local function client_of(stats)
  return { stats = function() return stats end }
end

local function render(...)
  return metrics_text.parse(prometheus.render(...))
end

describe("redlock.prometheus", function()
  it("page_has_type_and_help_of_each_family", function()
    local page = render(client_of(figures.of("a:1", "b:2", "c:3")))
    for _, name in ipairs(figures.FAMILIES) do
      assert.is_truthy(page.families[name], name .. " is missing")
      assert.is_true(#page.families[name].help > 10, name .. " has no help")
    end
    for name in pairs(page.families) do
      assert.is_truthy(figures.is_family(name), name .. " is not in spec/figures.lua")
    end
  end)

  it("workers_of_nginx_sum_each_gauge_as_a_value_of_a_moment", function()
    local file = assert(io.open("lua/redlock/nginx_metrics.lua"))
    local text = file:read("*a")
    file:close()
    local gauges = text:match("local OF_CLIENT = (%b{})") .. text:match("local OF_NODE = (%b{})")
    for name, family in pairs(render(client_of(figures.of("a:1"))).families) do
      local field = name:gsub("^redlock_", ""):gsub("^node_", "")
      -- The quorum is no sum.
      if family.type == "gauge" and field ~= "quorum" then
        assert.is_truthy(gauges:find(" " .. field .. " = true"), "lua/redlock/nginx_metrics.lua takes " .. field
          .. " for a counter: add it to OF_CLIENT or OF_NODE")
      end
    end
  end)

  it("page_has_each_number_of_stats", function()
    local last, missing = 1000, {}
    local function number(of, path)
      for name, value in pairs(of) do
        if type(value) == "number" then
          last = last + 1
          of[name], missing[last] = last, path .. "." .. name
        elseif type(value) == "table" and not value.buckets then
          number(value, path .. "." .. name)
        end
      end
    end
    local stats = figures.of("a:1")
    number(stats, "stats")
    for _, value in pairs(render(client_of(stats)).samples) do missing[value] = nil end
    local _, name = next(missing)
    assert.is_nil(name, "lua/redlock/prometheus.lua does not print it")
  end)

  it("counters_end_in_total_and_times_in_seconds", function()
    local page = render(client_of(figures.of("a:1")))
    for name, family in pairs(page.families) do
      assert.are.equal(family.type == "counter", name:find("_total$") ~= nil, name)
      assert.are.equal(family.type == "histogram", name:find("_seconds$") ~= nil, name)
      assert.is_truthy(name:find("^redlock_[a-z_]+$"), name)
    end
  end)

  it("samples_have_figures_of_stats", function()
    local stats = figures.of("a:1", "b:2")
    stats.operations.acquire.taken = 7
    stats.operations.auto_extend.ok = 12345678901
    stats.nodes[2].votes.late, stats.nodes[2].up, stats.nodes[1].quarantined = 5, false, true
    stats.nodes[1].outstanding, stats.held, stats.waiting, stats.attempts = 3, 4, 9, 11
    stats.lost.max_hold, stats.warnings.clock, stats.quorum = 2, 6, 2
    local page = render(client_of(stats))
    assert.are.equal(7, page.samples['redlock_operations_total{operation="acquire",outcome="taken"}'])
    assert.are.equal(12345678901, page.samples['redlock_operations_total{operation="auto_extend",outcome="ok"}'])
    assert.are.equal(5, page.samples['redlock_votes_total{node="b:2",vote="late"}'])
    assert.are.equal(1, page.samples['redlock_node_up{node="a:1"}'])
    assert.are.equal(0, page.samples['redlock_node_up{node="b:2"}'])
    assert.are.equal(1, page.samples['redlock_node_quarantined{node="a:1"}'])
    assert.are.equal(3, page.samples['redlock_node_outstanding{node="a:1"}'])
    assert.are.equal(4, page.samples.redlock_held)
    assert.are.equal(9, page.samples.redlock_waiting)
    assert.are.equal(11, page.samples.redlock_attempts_total)
    assert.are.equal(2, page.samples['redlock_lost_total{reason="max_hold"}'])
    assert.are.equal(6, page.samples['redlock_warnings_total{reason="clock"}'])
    assert.are.equal(2, page.samples.redlock_quorum)
  end)

  it("histogram_is_cumulative_and_ends_with_infinity", function()
    local stats = figures.of("a:1")
    stats.nodes[1].latency = figures.histogram({ 0.00005, 0.0025, 10 }, { 2, 3, 0 }, 4, 1.25)
    local text = prometheus.render(client_of(stats))
    local page = metrics_text.parse(text)
    assert.are.equal(2, page.samples['redlock_node_latency_seconds_bucket{node="a:1",le="5e-05"}'])
    assert.are.equal(5, page.samples['redlock_node_latency_seconds_bucket{node="a:1",le="0.0025"}'])
    assert.are.equal(5, page.samples['redlock_node_latency_seconds_bucket{node="a:1",le="10"}'])
    assert.are.equal(9, page.samples['redlock_node_latency_seconds_bucket{node="a:1",le="+Inf"}'])
    assert.are.equal(9, page.samples['redlock_node_latency_seconds_count{node="a:1"}'])
    assert.are.equal(1.25, page.samples['redlock_node_latency_seconds_sum{node="a:1"}'])
  end)

  it("bucket_of_infinity_is_added_if_stats_have_none", function()
    local stats = figures.of("a:1")
    stats.acquire_time.buckets[#stats.acquire_time.buckets] = nil
    stats.acquire_time.count = 8
    assert.are.equal(8, render(client_of(stats)).samples['redlock_acquire_seconds_bucket{le="+Inf"}'])
  end)

  it("single_client_has_no_label_and_several_have_numbers_or_names", function()
    local one, two = figures.of("a:1"), figures.of("a:1")
    one.held, two.held = 1, 2
    one, two = client_of(one), client_of(two)
    assert.are.equal(1, render(one).samples.redlock_held)
    local page = render(one, two)
    assert.are.equal(1, page.samples['redlock_held{client="1"}'])
    assert.are.equal(2, page.samples['redlock_held{client="2"}'])
    page = render { orders = one, ['a "b"'] = two }
    assert.are.equal(1, page.samples['redlock_held{client="orders"}'])
    assert.are.equal(2, page.samples['redlock_held{client="a \\"b\\""}'])
    assert.are.equal(1, render({ orders = one }).samples['redlock_held{client="orders"}'])
  end)

  it("label_is_escaped_and_is_UTF_8", function()
    for given, expected in pairs {
      ['unix:/a\\b"c\nd'] = 'unix:/a\\\\b\\"c\\nd',
      ["unix:/\195\164\226\130\172\240\159\152\128"] = "unix:/\195\164\226\130\172\240\159\152\128",
      ["unix:/\255x\195"] = "unix:/\239\191\189x\239\191\189",
      ["unix:/\237\160\128"] = "unix:/\239\191\189\239\191\189\239\191\189",
      ["unix:/\224\128\128"] = "unix:/\239\191\189\239\191\189\239\191\189",
      ["unix:/a\0\r\t\127"] = "unix:/a\239\191\189\239\191\189\239\191\189\239\191\189",
    } do
      local page = render(client_of(figures.of(given)))
      assert.are.equal(1, page.samples['redlock_node_up{node="' .. expected .. '"}'], given)
    end
  end)

  it("nodes_with_equal_addresses_have_series_of_their_own", function()
    local page = render(client_of(figures.of("a:1", "a:1", "a:1")))
    for _, name in ipairs { "a:1", "a:1#2", "a:1#3" } do
      assert.are.equal(1, page.samples['redlock_node_up{node="' .. name .. '"}'], name)
    end
  end)

  it("node_that_was_never_used_is_not_down", function()
    local stats = figures.of("a:1", "b:2", "c:3")
    for index, node in ipairs(stats.nodes) do
      node.up, node.connections, node.failures = false, 0, index == 2 and 1 or 0
    end
    local page = render(client_of(stats))
    assert.is_nil(page.samples['redlock_node_up{node="a:1"}'])
    assert.are.equal(0, page.samples['redlock_node_up{node="b:2"}'])
    assert.is_nil(page.samples['redlock_node_up{node="c:3"}'])
  end)

  it("number_has_all_its_digits_and_a_point", function()
    local stats = figures.of("a:1")
    stats.acquire_time.sum, stats.wait_time.sum, stats.attempts = 0.1, 1 / 3, 2 ^ 53
    local set = os.setlocale("de_DE.UTF-8", "numeric") -- where that locale is installed
    local text = prometheus.render(client_of(stats))
    if set then os.setlocale("C", "numeric") end
    assert.is_truthy(text:find("\nredlock_acquire_seconds_sum 0.1\n", 1, true), text)
    assert.is_truthy(text:find("\nredlock_wait_seconds_sum 0.33333333333333331\n", 1, true), text)
    assert.is_truthy(text:find("\nredlock_attempts_total 9007199254740992\n", 1, true), text)
  end)

  it("value_that_is_no_client_raises_at_the_caller", function()
    local client = client_of(figures.of("a:1"))
    for _, arguments in ipairs { {}, { 7 }, { "text" }, { {} }, { client, 7 }, { { a = client }, client },
      { { a = client, b = 1 } } } do
      local ok, message = pcall(function()
        return (prometheus.render((table.unpack or unpack)(arguments))) -- luacheck: ignore
      end)
      assert.is_false(ok)
      assert.is_truthy(message:find("prometheus_spec.lua:%d+: redlock: prometheus.render%(%): pass clients"), message)
    end
  end)

  it("figures_of_the_specs_have_the_shape_of_stats", function()
    -- Returns the names of all fields. The buckets of a histogram are fields of equal shape.
    local function shape(value, path, found)
      for name, part in pairs(value) do
        local field = path .. "." .. (type(name) == "number" and "n" or name)
        found[field] = type(part)
        if type(part) == "table" then shape(part, field, found) end
      end
      return found
    end
    local client = require("redlock").new { "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3" }
    assert.are.same(shape(client:stats(), "", {}), shape(figures.of("a:1", "b:2", "c:3"), "", {}))
    assert.are.equal(2, client:stats().quorum)
    local page = render(client)
    assert.is_nil(page.samples['redlock_node_up{node="127.0.0.1:1"}']) -- never used
    assert.are.equal(0, page.samples['redlock_operations_total{operation="acquire",outcome="ok"}'])
  end)

  it("parser_of_the_specs_rejects_what_Prometheus_rejects", function()
    local head = "# HELP a_total x\n# TYPE a_total counter\n"
    for _, text in ipairs {
      head .. "a_total 1", -- no newline at the end
      head .. "a_total{b=\"c} 1\n",
      head .. "a_total{b=\"\\x\"} 1\n",
      head .. "a_total 1\na_total 1\n", -- twice
      head .. "a_total 1,5\n",
      "a_total 1\n", -- no type
      "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
      "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
      "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_bucket{le=\"+Inf\"} 2\na_sum 1\na_count 1\n",
    } do
      assert.is_false((pcall(metrics_text.parse, text)), text)
    end
    assert.are.equal(1, metrics_text.parse(head .. "a_total 1\n").samples.a_total)
  end)
end)
