--- The pages and examples for Prometheus, as promtool reads them.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local prometheus = require "redlock.prometheus"
local queries = require "spec.queries"
local redlock = require "redlock"
local server = require "spec.nginx.server"

local function promtool(arguments)
  local pipe = io.popen("promtool " .. arguments .. ' 2>&1; echo "status $?"')
  local output = pipe:read("*a")
  pipe:close()
  return output:match("status (%d+)%s*$") == "0", output
end

local function check_page(text)
  local path = helper.directory .. "/page"
  helper.write_file(path, text)
  local good, output = promtool("check metrics <" .. path)
  assert.is_true(good, output)
end

describe("promtool", function()
  local farm

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  it("page_of_a_client_is_accepted", function()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    assert(client:acquire("name")):release()
    check_page(prometheus.render(client))
    check_page(prometheus.render(client, client))
    client:close()
  end)

  it("page_of_nginx_is_accepted", function()
    local nginx = server.start {
      addresses = farm.addresses, http = "lua_shared_dict figures 1m;",
      init = [[
        client = require("resty.redlock").new(addresses, PATIENT)
        pages = require("redlock.nginx_pages").new("figures", client)
      ]],
      server = [[ location /metrics { content_by_lua_block {
        assert(client:acquire("name")):release()
        pages:metrics()
      } } ]],
    }
    local status, body = nginx:get("/metrics")
    nginx:stop()
    assert.are.equal(200, status)
    check_page(body)
  end)

  it("page_with_a_wrong_name_is_refused", function()
    local path = helper.directory .. "/wrong"
    helper.write_file(path, "# HELP redlock_things x\n# TYPE redlock_things counter\nredlock_things 1\n")
    assert.is_false((promtool("check metrics <" .. path)))
  end)

  it("alerts_are_accepted_and_raised_by_their_figures", function()
    local good, output = promtool("check rules " .. queries.RULES)
    assert.is_true(good, output)
    good, output = promtool("test rules spec/check/rules_test.yml")
    assert.is_true(good, output)
  end)

  it("each_alert_has_figures_that_raise_it", function()
    local file = assert(io.open("spec/check/rules_test.yml"))
    local tests = file:read("*a")
    file:close()
    for line in io.lines(queries.RULES) do
      local name = line:match("%- alert: (%w+)")
      assert.is_truthy(not name or tests:find("alertname: " .. name .. "\n", 1, true), name)
    end
  end)

  it("queries_of_the_dashboard_are_accepted", function()
    local lines = { "groups:", "- name: dashboard", "  rules:" }
    for index, query in ipairs(queries.of_dashboard()) do
      lines[#lines + 1] = ("  - record: query:%d\n    expr: >-\n      %s"):format(index, query)
    end
    local path = helper.directory .. "/queries.yml"
    helper.write_file(path, table.concat(lines, "\n") .. "\n")
    local good, output = promtool("check rules " .. path)
    assert.is_true(good, output)
    assert.is_truthy(output:find(#queries.of_dashboard() .. " rules found", 1, true), output)
  end)
end)
