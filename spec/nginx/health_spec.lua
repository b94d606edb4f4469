--- The pages /health and /status of nginx, and the page of nginx-lua-prometheus.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local metrics_text = require "spec.metrics_text"
local server = require "spec.nginx.server"

local INIT = [[
  pages_of = require("redlock.nginx_pages").new
  client = require("resty.redlock").new(addresses, { node_timeout = 2000 })
  pages = pages_of("figures", client)
]]

local LOCATIONS = [[
  location = /metrics { content_by_lua_block { pages:metrics() } }
  location = /health { content_by_lua_block { pages:health() } }
  location = /status { content_by_lua_block { pages:status() } }
  location = /use { content_by_lua_block { assert(client:acquire("name")):release() ngx.print("ok") } }
]]

describe("pages for monitoring", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)
  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local function start(given)
    given = given or {}
    given.addresses = given.addresses or farm.addresses
    given.http = "lua_shared_dict figures 1m;" .. (given.http or "")
    given.init = given.init or INIT
    given.server = LOCATIONS .. (given.server or "")
    nginx = server.start(given)
  end

  -- Returns true if the page answers so within a while: answers are a second old at most.
  local function eventually_answers(status, pattern)
    local seen, body
    local ok = pcall(helper.eventually, function()
      seen, body = nginx:get("/health")
      return seen == status and body:find(pattern)
    end, "the answer", 30)
    assert.is_true(ok, tostring(seen) .. " " .. tostring(body))
  end

  describe("health", function()
    it("names_of_mixed_types_are_a_mistake", function()
      start { init = [[
        local new = require("resty.redlock").new
        local one, two = new(addresses, { node_timeout = 2000 }), new(addresses, { node_timeout = 2001 })
        local pages_of = require("redlock.nginx_pages").new
        wrong = {}
        for index, clients in ipairs { { one, b = two }, { [true] = one } } do
          wrong[index] = select(2, pcall(pages_of, "figures", clients))
        end
      ]], server = [[ location = /wrong { content_by_lua_block { ngx.print(table.concat(wrong, "\n")) } } ]] }
      local _, body = nginx:get("/wrong")
      local expected = "redlock: redlock.nginx_pages.new(): pass a client, or a table of clients by name"
      assert.are.equal(expected .. "\n" .. expected, body)
    end)

    it("list_of_clients_has_numbers_for_names", function()
      start { init = [[
        local new = require("resty.redlock").new
        local other = new(addresses, { node_timeout = 2000, prefix = "other:" })
        pages = require("redlock.nginx_pages").new("figures", { new(addresses, { node_timeout = 2000 }), other })
      ]], server = "" }
      local status, body = nginx:get("/health")
      assert.are.equal(200, status, body)
      assert.is_truthy(body:find('"clients":[{"client":"1","status":"up"', 1, true), body)
      assert.is_truthy(body:find('{"client":"2","status":"up"', 1, true), body)
      assert.are.equal("", nginx:complaints())
    end)

    it("first_request_finds_quorum_without_any_lock", function()
      start()
      local status, body = nginx:get("/health")
      assert.are.equal(200, status, body)
      assert.is_truthy(body:find('^{"status":"up","votes":%d,"quorum":2,"nodes":%[{"node":"127%.0%.0%.1:%d+",'), body)
      for _, node in ipairs(farm) do assert.are.equal(0, node:keys_left()) end
    end)

    it("quorum_decides_the_answer", function()
      start()
      farm[3]:kill()
      eventually_answers(200, '^{"status":"up","votes":2,"quorum":2.*"votes":false,"reason":".*refused')
      farm[2]:kill()
      eventually_answers(503, '^{"status":"down","votes":1,"quorum":2')
      farm[2]:restart()
      eventually_answers(200, '"status":"up"')
    end)

    it("hanging_majority_is_no_quorum", function()
      start()
      eventually_answers(200, '"votes":3')
      farm[1]:stop()
      farm[2]:stop()
      eventually_answers(503, '"votes":1,"quorum":2')
      farm[1]:continue()
      farm[2]:continue()
      eventually_answers(200, '"status":"up"')
    end)

    it("quorum_of_the_client_decides", function()
      start { init = INIT:gsub("node_timeout", "quorum = 3, node_timeout") }
      eventually_answers(200, '"votes":3,"quorum":3')
      farm[3]:kill()
      eventually_answers(503, '"votes":2,"quorum":3')
    end)

    it("node_that_refuses_the_user_does_not_vote", function()
      start { init = INIT:gsub("addresses",
        "{ addresses[1], addresses[2], 'redis://user:secret-1@' .. addresses[3] }") }
      eventually_answers(200, '"votes":2.*"reason":".*WRONGPASS')
      local _, body = nginx:get("/health")
      assert.is_nil(body:find("secret", 1, true), body)
    end)

    it("node_that_refuses_the_command_does_not_vote", function()
      for _, node in ipairs(farm) do
        node:command("ACL", "SETUSER", "alice", "on", ">secret-1", "~order:*", "+@all")
      end
      start { init = INIT:gsub("node_timeout", "username = 'alice', password = 'secret-1', node_timeout"),
        http = "lua_shared_dict others 1m;", server = [[ location = /allowed { content_by_lua_block {
          allowed = allowed or pages_of("others", require("resty.redlock").new(addresses,
            { username = "alice", password = "secret-1", node_timeout = 20000 }), { health_resource = "order:health" })
          allowed:health()
        } } ]] }
      eventually_answers(503, '"votes":0.*"reason":"NOPERM')
      assert.are.equal(200, (nginx:get("/allowed")))
    end)

    it("quarantined_node_does_not_vote", function()
      start { init = INIT:gsub("node_timeout", "guard = true, node_timeout"), server = [[
        location = /bootstrap { content_by_lua_block { ngx.print(tostring(client:bootstrap())) } } ]] }
      eventually_answers(503, '"votes":0,"quorum":2')
      assert.are.equal("true", select(2, nginx:get("/bootstrap")))
      eventually_answers(200, '"votes":3')
    end)

    it("replica_does_not_vote", function()
      start()
      farm[3]:command("REPLICAOF", "127.0.0.1", farm[2].port)
      helper.eventually(function()
        nginx:get("/use")
        return select(2, nginx:get("/health")):find('"votes":2.*"votes":false,"reason":"[^"]*replica')
      end, "the refusal of the replica", 30)
      for _ = 1, 4 do -- It answers the question, but accepts no write.
        helper.pass(1.05) -- until the next answer
        assert.is_nil(select(2, nginx:get("/health")):find('"votes":3', 1, true))
      end
      farm[3]:command("REPLICAOF", "NO", "ONE")
      helper.eventually(function()
        nginx:get("/use")
        return select(2, nginx:get("/health")):find('"votes":3', 1, true)
      end, "the node to be a master", 30)
    end)

    it("flood_of_requests_asks_once_a_second", function()
      start()
      eventually_answers(200, '"votes":3')
      helper.pass(1.1) -- The answer is no longer fresh.
      farm[1]:command("CONFIG", "RESETSTAT")
      local began = helper.now()
      local requests = {}
      for index = 1, 100 do requests[index] = nginx:request("/health") end
      for _, request in ipairs(requests) do assert.are.equal(200, (request:finish())) end
      local seconds, calls = helper.now() - began, 0
      for name, count in farm[1]:command("INFO", "commandstats"):gmatch("cmdstat_(%S+):calls=(%d+)") do
        if name ~= "info" and not name:find("^config") then calls = calls + tonumber(count) end
      end
      assert.is_true(calls <= 10 * (seconds + 2), calls .. " commands in " .. seconds .. " s")
    end)

    it("each_named_client_must_have_a_quorum", function()
      start { init = [[
        local new = require("resty.redlock").new
        client = new(addresses, PATIENT)
        other = new({ "127.0.0.1:]] .. helper.free_port() .. [[" }, { prefix = 'a"b', node_timeout = 200 })
        pages = require("redlock.nginx_pages").new("figures", { good = client, ['b"ad\n'] = other })
      ]] }
      local status, body = nginx:get("/health")
      assert.are.equal(503, status)
      local expected = '{"status":"down","clients":[{"client":"b\\"ad\\u000a","status":"down","votes":0,'
      assert.is_truthy(body:find(expected, 1, true), body)
      assert.is_truthy(body:find('{"client":"good","status":"up"', 1, true), body)
    end)
  end)

  describe("new", function()
    local function refusal(text)
      start { init = [[ new = require("resty.redlock").new client = new(addresses) ]], server = [[
        location = /new { content_by_lua_block {
          local ok, message = pcall(function()
            local pages = require("redlock.nginx_pages").new(]] .. text .. [[)
            return pages
          end)
          ngx.print(ok and "made" or message)
        } } ]] }
      return select(2, nginx:get("/new"))
    end

    for text, expected in pairs {
      ['"missing", client'] = "there is no lua_shared_dict 'missing'; add it to the block http",
      ["nil, client"] = "there is no lua_shared_dict 'nil'",
      ['"figures", {}'] = "pass a client",
      ['"figures"'] = "pass a client",
      ['"figures", { a = 1 }'] = "needs clients of redlock.new%(%) inside nginx",
      ['"figures", require("redlock.nginx_blocking").new(addresses)'] = "needs clients of redlock.new%(%) inside nginx",
      ['"figures", { a = client, b = new(addresses) }'] = "have the same nodes and options, and share their figures",
    } do
      it("misuse_is_refused_at_the_caller: " .. text, function()
        local message = refusal(text)
        assert.is_truthy(message:find(expected), message)
        assert.is_truthy(message:find("^content_by_lua%([^)]*%):%d+: redlock: "), message)
      end)
    end

    for text, expected in pairs {
      ['"figures", client, 7'] = "options must be a table",
      ['"figures", client, { resource = "a" }'] = "unknown option 'resource'",
      ['"figures", client, { health_resource = 7 }'] = "option 'health_resource' must be a string, got a number",
    } do
      it("wrong_option_is_refused_at_the_caller: " .. text, function()
        local message = refusal(text)
        assert.is_truthy(message:find("^content_by_lua%([^)]*%):%d+: redlock: " .. expected), message)
      end)
    end

    it("second_client_of_one_name_in_a_dictionary_is_refused", function()
      local message = refusal('"figures", client) pages = require("redlock.nginx_pages").new("figures", '
        .. 'new(addresses, { prefix = "a" })')
      assert.is_truthy(message:find("'figures' has figures of a client '' already; give the clients names"), message)
    end)

    it("second_pages_of_a_client_are_refused", function()
      local message = refusal('"figures", client) pages = require("redlock.nginx_pages").new("figures", client')
      assert.is_truthy(message:find("has pages already"), message)
    end)
  end)

  describe("status", function()
    it("page_has_nodes_and_reason_of_a_failed_node", function()
      start()
      nginx:get("/use")
      farm[3]:kill()
      helper.eventually(function()
        nginx:get("/use")
        local status, body = nginx:get("/status")
        assert.are.equal(200, status)
        return body:find("refused", 1, true)
      end, "the reason")
      local _, body = nginx:get("/status")
      for _, node in ipairs(farm) do assert.is_truthy(body:find("<td>" .. node.address .. "</td>", 1, true), body) end
      for reference in body:gmatch("[%l-]+=[\"'](https?:[^\"']*)") do error("the page loads " .. reference) end
      assert.is_nil(body:find("<script", 1, true))
    end)
  end)

  describe("names of locks", function()
    local SERVER = [[
      location = /hold { content_by_lua_block {
        local lock, message = client:acquire(ngx.unescape_uri(ngx.var.arg_name), { ttl = 60000, wait = 60000 })
        if not lock then return ngx.print(message) end
        while not go do ngx.sleep(0.01) end
        lock:release()
        ngx.print("released")
      } }
      location = /go { content_by_lua_block { go = true } } ]]

    it("page_names_held_locks_and_waiters_of_all_requests", function()
      start { init = INIT .. "go = false", server = SERVER }
      local name = "<i>report</i>%09%0A%FF" .. ("x"):rep(100)
      local holder = nginx:request("/hold?name=" .. name)
      helper.eventually(function()
        return select(2, nginx:get("/status")):find("<td>held</td>", 1, true)
      end, "the holder")
      local waiter = nginx:request("/hold?name=" .. name)
      local body = helper.eventually(function()
        local _, text = nginx:get("/status")
        return text:find("<td>waiting</td>", 1, true) and text
      end, "the waiter")
      local shown = "<td>&lt;i&gt;report&lt;/i&gt;\239\191\189 \239\191\189" .. ("x"):rep(64) .. "...</td>"
      assert.is_truthy(body:find(shown .. "<td>held</td><td>", 1, true), body)
      assert.is_truthy(body:find("<td>held</td><td>%d+%.%d s</td>"), body)
      assert.is_truthy(body:find(shown .. "<td>waiting</td><td></td>", 1, true), body)
      nginx:get("/go")
      assert.are.equal("released", select(2, holder:finish()))
      assert.are.equal("released", select(2, waiter:finish()))
      assert.is_nil(select(2, nginx:get("/status")):find("report", 1, true))
      assert.are.equal("", nginx:complaints())
    end)

    it("page_shows_two_hundred_of_many_locks", function()
      start { init = INIT, server = [[ location = /many { content_by_lua_block {
        for index = 1, 300 do
          kept[index] = assert(client:acquire({ "many:" .. index, "other" .. index },
            { ttl = 60000, owner = "worker" }))
        end
      } } ]] }
      nginx:get("/many")
      local _, body = nginx:get("/status")
      local _, rows = body:gsub("<td>many:%d+ and 1 more</td><td>held</td>", "")
      assert.are.equal(50, rows) -- of one worker
      assert.is_truthy(body:find("<p>250 more</p>", 1, true), body)
    end)
  end)

  it("no_page_has_a_password", function()
    farm[1]:command("ACL", "SETUSER", "alice", "on", ">secret-1", "~*", "+@all")
    start { init = INIT:gsub("addresses", "{ 'redis://alice:secret-1@' .. addresses[1], addresses[2], "
      .. "{ host = '127.0.0.1', port = tonumber(addresses[3]:match('%%d+$')), "
      .. "username = 'alice', password = 'secret-2' } }") }
    helper.eventually(function()
      nginx:get("/use")
      return select(2, nginx:get("/health")):find("WRONGPASS")
    end, "the third node")
    for _, path in ipairs { "/metrics", "/health", "/status" } do
      local _, body = nginx:get(path)
      assert.is_truthy(body:find(farm.addresses[1], 1, true), body)
      assert.is_nil(body:find("secret", 1, true), body)
      assert.is_nil(body:find("alice", 1, true), body)
    end
  end)

  describe("page of nginx-lua-prometheus", function()
    -- REDLOCK_NGINX_LUA_PROMETHEUS is a directory with the real module, which Debian lacks
    -- (github.com/knyar/nginx-lua-prometheus). Otherwise spec/nginx/prometheus_double.lua stands
    -- for it.
    local real = os.getenv("REDLOCK_NGINX_LUA_PROMETHEUS")
    local path = real and "package.path = '" .. real .. "/?.lua;' .. package.path" or ""
    local module = real and "prometheus" or "spec.nginx.prometheus_double"

    it("page_has_figures_of_both", function()
      start {
        workers = 2,
        http = "lua_shared_dict prometheus_metrics 1m;",
        init_worker = path .. [[
          prometheus = require("]] .. module .. [[").init("prometheus_metrics")
          requests = prometheus:counter("requests_total", "Requests", { "host" })
          pages:join(prometheus)
          twice = { pcall(pages.join, pages, prometheus) }
        ]],
        server = [[
          location = /twice { content_by_lua_block { ngx.print(tostring(twice[1]), " ", twice[2]) } }
          location = /both { content_by_lua_block { requests:inc(1, { "a" }) prometheus:collect() } }
          location = /data { content_by_lua_block { ngx.print(table.concat(prometheus:metric_data())) } }
        ]],
      }
      local _, twice = nginx:get("/twice")
      assert.is_truthy(twice:find("^false .*the object has figures already"), twice)
      nginx:get("/use")
      for _, page in ipairs { "/both", "/data" } do
        local status, body = nginx:get(page)
        assert.are.equal(200, status)
        local parsed = metrics_text.parse(body)
        assert.is_truthy(parsed.families.redlock_operations_total, body)
        helper.eventually(function()
          local _, text = nginx:get(page)
          return (metrics_text.parse(text).samples['requests_total{host="a"}'] or 0) >= 1
        end, "the figure of the other library")
      end
      assert.are.equal("", nginx:complaints())
    end)
  end)
end)
