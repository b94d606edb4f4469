--- Clients in nginx: many of them, short-lived ones, closed ones; states that last for one request.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

describe("clients in nginx", function()
  local farm, nginx

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
  end)

  after_each(function()
    if nginx then nginx:stop() end
    nginx = nil
  end)

  local function start(given)
    given.addresses = farm.addresses
    nginx = server.start(given)
  end

  local function connections()
    local count = 0
    for _, node in ipairs(farm) do
      local _, found = node:command("CLIENT", "LIST"):gsub(" name=redlock ", "") -- not lib-name
      count = count + found
    end
    return count
  end

  local function descriptors()
    local pipe = io.popen("ls /proc/" .. nginx:workers()[1] .. "/fd | wc -l")
    local count = tonumber(pipe:read("*a"))
    pipe:close()
    return count
  end

  it("worker_serves_many_clients", function()
    start {
      init = [[
        clients = {}
        for index = 1, 20 do
          clients[index] = require("redlock").new(addresses, { prefix = index .. ":", node_timeout = 30000 })
        end
      ]],
      server = [[location / { content_by_lua_block {
        for index = 1, 20 do
          local lock = assert(clients[index]:acquire("name"))
          assert(lock:release())
        end
        ngx.print("ok")
      } }]],
    }
    for _ = 1, 5 do assert.are.equal("ok", select(2, nginx:get("/"))) end
    helper.eventually(function() return connections() == 60 end, "all connections")
    assert.are.equal("", nginx:complaints())
  end)

  it("clients_made_for_each_request_share_their_connections", function()
    start { server = [[location / { content_by_lua_block {
      local client = require("redlock").new(addresses, PATIENT)
      collectgarbage("stop") -- As if nobody had come to it yet.
      local lock = assert(client:acquire("name:" .. ngx.var.connection))
      ngx.print(tostring(lock:release()))
      if ngx.var.arg_close then ngx.print(tostring(client:close()), select(3, client:acquire("late"))) end
    } }]] }
    for _ = 1, 10 do
      local requests = {}
      for index = 1, 40 do requests[index] = nginx:request("/") end
      for index = 1, 40 do assert.are.equal("true", select(2, requests[index]:finish())) end
    end
    for _ = 1, 50 do assert.are.equal("truetrueclosed", select(2, nginx:get("/?close=1"))) end
    -- A second one to each node is for requests that wait.
    assert.is_true(connections() <= 6, connections() .. " connections")
    assert.are.equal("", nginx:complaints())
  end)

  it("closed_client_releases_its_own_locks_and_not_those_of_clients_beside_it", function()
    start { server = [[location / { content_by_lua_block {
      local one, other = require("redlock").new(addresses, PATIENT), require("redlock").new(addresses, PATIENT)
      local mine, theirs, idle = assert(one:acquire("mine")), assert(other:acquire("theirs")), one:new_lock("idle")
      local waiting = ngx.thread.spawn(function() return select(3, one:acquire("theirs", { wait = 60000 })) end)
      ngx.say(tostring(one:close()), " ", tostring(one:close()), " ", select(2, ngx.thread.wait(waiting)))
      ngx.say(tostring(mine:is_held()), " ", tostring(theirs:is_held()))
      for _, answer in ipairs { { idle:acquire() }, { mine:release() }, { one:acquire("x") }, { one:inspect("x") },
        { one:attach("text") }, { one:doctor() } } do ngx.print(answer[3], " ") end
      ngx.say(tostring(theirs:extend() ~= nil), " ", tostring(theirs:release()))
      ngx.say(tostring(other:close()), " ", select(3, other:acquire("x")), " ", tostring(one:close()))
      local next_one = require("redlock").new(addresses, PATIENT)
      ngx.say(tostring(next_one:with("again", function() return "done" end)), " ", tostring(next_one:close()))
    } }]] }
    local _, body = nginx:get("/")
    assert.are.equal("true true closed\nfalse true\nclosed closed closed closed closed closed true true\n"
      .. "true closed true\ntrue true\n", body)
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end, "all keys to be gone")
    helper.eventually(function() return connections() == 0 end, "the connections to be closed")
    assert.are.equal("", nginx:complaints())
  end)

  it("clients_that_differ_share_no_connection", function()
    start { server = [[location / { content_by_lua_block {
      local new = require("redlock").new
      local function own() end
      for _, options in ipairs { { prefix = "a:" }, { prefix = "b:" }, { ttl = 5000 }, { ttl = 5001 },
        { on_lost = own }, { on_lost = own } } do
        kept[#kept + 1] = new({ addresses[1] }, options)
        kept[#kept]:with("name", function() end)
      end
    } }]] }
    nginx:get("/")
    helper.eventually(function() return connections() == 6 end, "a connection of each")
    assert.are.equal("", nginx:complaints())
  end)

  -- The request counts how often the garbage collector is made to do all its work.
  local COUNTED = [[
    full_collections = 0
    local collect = collectgarbage
    function collectgarbage(...)
      if select("#", ...) == 0 then full_collections = full_collections + 1 end
      return collect(...)
    end
    require("redlock")
  ]]

  it("new_client_collects_no_garbage_while_others_are_kept", function()
    start { init = COUNTED, server = [[location / { content_by_lua_block {
      for index = 1, 120 do kept[index] = require("redlock").new(addresses, { prefix = index .. ":" }) end
      ngx.print(full_collections)
    } }]] }
    local count = tonumber((select(2, nginx:get("/"))))
    assert.is_true(count >= 1 and count <= 4, count .. " collections")
    assert.are.equal("", nginx:complaints())
  end)

  it("warning_counts_collected_clients", function()
    start { server = [[location / { content_by_lua_block {
      collectgarbage("stop") -- As if nobody had come to it yet.
      for index = 1, 10 do kept[index] = require("redlock").new(addresses, { prefix = index .. ":" }) end
      for index = 11, 40 do require("redlock").new(addresses, { prefix = index .. ":" }) end
    } }]] }
    nginx:get("/")
    local count = tonumber(nginx:complaints():match("redlock: (%d+) clients were dropped"))
    assert.is_true(count >= 20 and count <= 22, tostring(count))
  end)

  it("close_releases_and_ends_waits_with_closed", function()
    start {
      init = [[client = require("redlock").new(addresses, PATIENT)]],
      server = [[
        location /close { content_by_lua_block {
          kept.held = assert(client:acquire("held"))
          local waiting = ngx.thread.spawn(function() return select(3, client:acquire("held", { wait = 60000 })) end)
          local closed = tostring(client:close())
          local _, code = ngx.thread.wait(waiting)
          ngx.print(closed, " ", code, " ", tostring(kept.held:is_held()), " ", select(3, client:acquire("other")), " ",
            tostring(client:close()))
        } }
      ]],
    }
    assert.are.equal("true closed false closed true", select(2, nginx:get("/close")))
    assert.are.equal(0, farm:count("held"))
    helper.eventually(function() return connections() == 0 end, "the connections to be closed")
    assert.are.equal("", nginx:complaints())
  end)

  it("unused_client_closes", function()
    start { server = [[location / { content_by_lua_block {
      local client = require("redlock").new(addresses)
      local lock = client:new_lock("x")
      ngx.print(tostring(client:close()), " ", select(3, lock:acquire()), " ", tostring(client:close()))
    } }]] }
    assert.are.equal("true closed true", select(2, nginx:get("/")))
    assert.are.equal("", nginx:complaints())
  end)

  it("unconfirmed_close_is_reported_each_time", function()
    start {
      init = [[client = require("redlock").new(addresses, { owner = "worker", ttl = 60000, node_timeout = 20000 })]],
      server = [[
        location /hold { content_by_lua_block {
          assert(client:acquire("before")):release()
          ngx.sleep(0.6)
          kept.lock = assert(client:acquire("held"))
        } }
        location /close { content_by_lua_block {
          local function close()
            local ok, message, code = client:close()
            return tostring(ok) .. " " .. tostring(message) .. " " .. tostring(code)
          end
          local other = ngx.thread.spawn(close)
          ngx.say(close())
          ngx.say(select(2, ngx.thread.wait(other)))
          ngx.say(close())
        } }
      ]],
    }
    nginx:get("/hold")
    helper.eventually(function() return farm:count("held") == 3 end)
    for _, node in ipairs(farm) do node:stop() end
    local before = helper.now()
    local said = "nil not all nodes confirmed the releases in time unavailable\n"
    assert.are.equal(said:rep(3), select(2, nginx:get("/close")))
    assert.is_true(helper.now() - before < 15)
    assert.are.equal("", nginx:complaints())
  end)

  it("client_of_init_stays_connected_for_timers", function()
    start {
      init = [[client = require("redlock").new(addresses, PATIENT)]],
      init_worker = [[
        assert(ngx.timer.every(0.4, function()
          client:with("tick", function() end)
          kept.ticks = (kept.ticks or 0) + 1
        end))
      ]],
      server = "location / { content_by_lua_block { ngx.print(kept.ticks or 0) } }",
    }
    local function ticks() return tonumber((select(2, nginx:get("/")))) end
    local function connection() return farm[1]:command("CLIENT", "LIST"):match("id=(%d+)[^\n]*name=redlock") end
    helper.eventually(function() return ticks() >= 1 end)
    local known = connection()
    helper.eventually(function() return ticks() >= 3 end)
    assert.are.equal(known, connection())
    assert.are.equal("", nginx:complaints())
  end)

  it("client_of_worker_start_stays_connected", function()
    start {
      init_worker = [[
        rawset(_G, "client", require("redlock").new(addresses, PATIENT))
        assert(ngx.timer.at(0, function() client:with("once", function() end) end))
      ]],
    }
    helper.eventually(function() return connections() == 3 end, "the connections")
    helper.pass(0.7)
    assert.are.equal(3, connections())
    assert.are.equal("", nginx:complaints())
  end)

  it("client_of_first_request_stays_connected", function()
    start { server = [[location / { content_by_lua_block {
      kept.client = kept.client or require("redlock").new(addresses, PATIENT)
      ngx.print(kept.client:with("request", function() end))
    } }]] }
    local function connection() return farm[1]:command("CLIENT", "LIST"):match("id=(%d+)[^\n]*name=redlock") end
    for _ = 1, 2 do assert.are.equal("true", select(2, nginx:get("/"))) end
    local known = connection()
    assert.is_truthy(known)
    helper.pass(0.7)
    assert.are.equal(known, connection())
    assert.are.equal("true", select(2, nginx:get("/")))
    assert.are.equal("", nginx:complaints())
  end)

  it("collected_client_closes_after_its_locks_are_released", function()
    start { server = [[
      location /use { content_by_lua_block {
        kept.client = kept.client or require("redlock").new(addresses, PATIENT)
        kept.lock = assert(kept.client:acquire("garbage", { ttl = 60000, owner = "worker" }))
      } }
      location /drop { content_by_lua_block {
        kept.client, kept.lock = nil, nil
        collectgarbage() collectgarbage()
      } }
    ]] }
    nginx:get("/use")
    helper.eventually(function() return connections() == 3 end, "all connections")
    nginx:get("/drop")
    farm:eventually_free("garbage")
    helper.eventually(function() return connections() == 0 end, "the connections to be closed")
    assert.are.equal("", nginx:complaints())
  end)

  it("client_without_code_cache_leaves_no_connection", function()
    start {
      http = "lua_code_cache off;",
      init = [[client = require("redlock").new(addresses, { ttl = 60000, node_timeout = 20000 })]],
      server = [[
        location /lock { content_by_lua_block {
          local lock = assert(client:acquire("name:" .. ngx.var.connection))
          assert(lock:extend())
          ngx.print(tostring(lock:release()))
        } }
        location /drop { content_by_lua_block { assert(client:acquire("dropped:" .. ngx.var.connection)) } }
        location /none { content_by_lua_block { ngx.print("none") } }
      ]],
    }
    nginx:get("/none")
    local before = descriptors()
    for _ = 1, 30 do assert.are.equal("true", select(2, nginx:get("/lock"))) end
    for _ = 1, 10 do nginx:get("/drop") end
    helper.eventually(function() return connections() == 0 end, "the connections to be closed")
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end, "all keys to be gone")
    helper.eventually(function() return descriptors() <= before end, "the descriptors to be closed")
    nginx:get("/drop")
    nginx:stop()
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end, "all keys to be gone")
    assert.are.equal("", nginx:complaints("lua_code_cache is off"))
  end)

  it("missing_timers_are_reported", function()
    start {
      http = "lua_max_running_timers 2;",
      init = [[client = require("redlock").new(addresses)]],
      server = [[location / { content_by_lua_block {
        for index = 1, 20 do client:acquire("wake:" .. index, { wait = 30 }) end -- Each wakes the clock.
        local ok, err, code = client:acquire("name")
        ngx.say(code, ": ", err)
        repeat ngx.sleep(0.05) until client:nodes()[3].error
        ngx.say(client:nodes()[3].error)
        ngx.sleep(0.2)
        ngx.say(client:nodes()[1].state)
      } }]],
    }
    nginx:get("/")
    helper.unless_stalled(20, function()
      local _, body = nginx:get("/")
      assert.is_truthy(body:find("^unavailable: "), body)
      assert.is_truthy(body:find("lua_max_running_timers", 1, true), body)
      assert.is_falsy(body:find("no connection within", 1, true), body) -- the reason is reported within the budget
      assert.is_truthy(body:find("\nup\n$"), body) -- the connection that has a timer stays
    end)
    local said = nginx:complaints()
    assert.is_truthy(said:find("lua_max_running_timers are not enough", 1, true))
    assert.is_falsy(said:find("[error]", 1, true), said)
  end)

  it("worker_ends_after_clock_had_no_timer", function()
    for _ = 1, 2 do
      start {
        http = "lua_max_running_timers 2;",
        init = [[client = require("redlock").new(addresses)]],
        server = [[location / { content_by_lua_block {
          ngx.say(select(3, client:acquire("name", { retry_count = 0 })) or "ok")
        } }]],
      }
      for _ = 1, 3 do nginx:get("/") end
      nginx:stop()
    end
  end)

  it("client_works_again_after_clock_had_no_timer", function()
    start {
      http = "lua_max_running_timers 2;",
      init = [[client = require("redlock").new({ addresses[1] })]],
      server = [[
        location /block { content_by_lua_block {
          kept.blocker = true
          local function stay() repeat ngx.sleep(0.01) until not kept.blocker end
          assert(ngx.timer.at(0, stay))
          assert(ngx.timer.at(0, stay))
          ngx.sleep(0.05)
        } }
        location /free { content_by_lua_block { kept.blocker = nil } }
        location /lock { content_by_lua_block {
          local lock, err, code = client:acquire("name", { wait = 1500, node_timeout = 100 })
          ngx.print(lock and "ok" or code)
        } }
      ]],
    }
    nginx:get("/block")
    assert.are.equal("unavailable", select(2, nginx:get("/lock")))
    nginx:get("/free")
    helper.eventually(function() return select(2, nginx:get("/lock")) == "ok" end)
    assert.are.equal("", nginx:complaints("lua_max_running_timers are not enough"))
  end)

  it("blocking_client_is_refused_unless_forced", function()
    start { server = [[location / { content_by_lua_block {
      local _, err = pcall(require("redlock.client").new, addresses, nil, 1)
      ngx.say(err)
      local client = require("redlock.nginx_blocking").new(addresses, PATIENT)
      local lock = assert(client:acquire("blocking"))
      ngx.say(tostring(assert(client:acquire("other")):release({ wait = false })))
      ngx.say(tostring(lock:extend() > 0), " ", tostring(lock:release()), " ", tostring(client:close()))
      _, err = pcall(require("redlock").new(addresses).process, require("redlock").new(addresses))
      ngx.say(err)
    } }]] }
    local _, body = nginx:get("/")
    assert.are.equal("redlock: this client would stop the nginx worker while it waits; use redlock.new()\n"
      .. "true\ntrue true true\nredlock: client:process() is not for nginx, which drives the client itself\n", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("doctor_runs_while_other_requests_go_on", function()
    start { init = [[ client, seen = require("redlock").new(addresses, { node_timeout = 1500 }), {} ]], server = [[
      location / {
        content_by_lua_block {
          local turns = 0
          local others = ngx.thread.spawn(function()
            while true do
              ngx.sleep(0.01)
              turns = turns + 1
            end
          end)
          local found = assert(client:doctor())
          ngx.thread.kill(others)
          ngx.print(turns > 3, " ", found[1].severity, " ", found[1].name, " ", found[1].node, " ", seen.refused)
        }
        header_filter_by_lua_block { seen.refused = table.concat({ select(2, client:doctor()) }, " ") }
      }
    ]] }
    farm[2]:stop()
    nginx:get("/")
    local _, body = nginx:get("/")
    assert.are.equal("true error down " .. farm.addresses[2]
      .. " client:doctor() must wait, and nginx allows no wait in phase header_filter"
      .. "; call it in an earlier phase or a timer unavailable", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("start_works_only_for_blocking_client", function()
    start { init = [[
      local client = require("redlock.nginx_blocking").new(addresses, PATIENT)
      local lock = client:new_lock("started")
      assert(lock:start("acquire"))
      local code
      repeat
        assert(client:process())
        code = select(3, lock:result())
      until code ~= "pending"
      said = tostring(lock:is_held()) .. " " .. #client:inspect("started").nodes .. client:doctor()[1].name
        .. " " .. tostring(client:force_release("started", lock:token()) >= 2) .. " " .. tostring(client:close())
      client = require("redlock").new(addresses)
      local started = select(2, pcall(client:new_lock("x").start, client:new_lock("x"), "acquire"))
      said = said .. tostring(started):gsub("^.-:%d+", "")
    ]], server = [[location / { content_by_lua_block { ngx.print(said) } }]] }
    local _, body = nginx:get("/")
    assert.are.equal("true 3persistence true true"
      .. "redlock: lock:start() is not for nginx; use lock:acquire(), which lets other requests go on", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("loops_of_other_programs_are_refused", function()
    start { server = [[
      location / { content_by_lua_block {
        local ok, err = pcall(require, "redlock.loop")
        ngx.print(tostring(ok), " ", (tostring(err):gsub(".*redlock: ", "")))
      } }
    ]] }
    local _, body = nginx:get("/")
    assert.are.equal(
      "false this module is not for nginx; use redlock.new() there, which lets other requests go on", body)
    assert.are.equal("", nginx:complaints())
  end)

  it("forced_client_blocks_in_init", function()
    start { init = [[
      local client = require("redlock.nginx_blocking").new(addresses, PATIENT)
      local lock = assert(client:acquire("in init"))
      said = tostring(lock:extend() > 0) .. " " .. tostring(lock:release())
        .. " " .. tostring(client:with("in init", function() return "done" end))
        .. " " .. tostring(client:attach(client:acquire("in init"):detach()):release())
    ]], server = [[location / { content_by_lua_block { ngx.print(said) } }]] }
    assert.are.equal("true true true true", select(2, nginx:get("/")))
    assert.are.equal("", nginx:complaints())
  end)

  it("misuse_in_nginx_is_raised_at_callers_line", function()
    start { init = [[client = require("redlock").new(addresses)]], server = [[location / { content_by_lua_block {
      local function said(fn, ...) ngx.say(select(2, pcall(fn, ...))) end
      said(function() client:acquire("x", { tll = 1 }) end)
      said(function() client:new_lock("x"):acquire({ ttl = 0 }) end)
      said(function() client:acquire("x"):extend("soon") end)
      said(function() require("redlock").new({}) end)
      said(function() require("redlock").new({ "127.0.0.1:1" }, { tll = 1 }) end)
      said(function() require("redlock").new({ { host = "127.0.0.1", prot = 1 } }) end)
      said(function() local lock = client:new_lock("x") lock.acquire(7) end)
      said(function()
        local lock = client:new_lock("y")
        ngx.thread.spawn(lock.acquire, lock)
        lock:acquire()
      end)
      for _, name in ipairs { "process", "timeout", "close" } do
        said(function() client[name]() end) -- each was reported as client:close()
      end
    } }]] }
    local _, body = nginx:get("/")
    for _, name in ipairs { "process", "timeout", "close" } do
      assert.is_truthy(body:find("client:" .. name .. "() needs a client before the colon, got nil", 1, true), body)
    end
    for line in body:gmatch("[^\n]+") do
      assert.is_truthy(line:find("^content_by_lua%(nginx.conf:%d+%):%d+: redlock: "), line)
    end
    assert.are.equal(11, select(2, body:gsub("\n", "")))
    assert.are.equal("", nginx:complaints())
  end)
end)
