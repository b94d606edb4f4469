--- The life of a worker: reloads, ends, upgrades; and the nodes that it talks to: hung, gone, back.

if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local LOCATIONS = [[
  location /lock {
    content_by_lua_block {
      local lock, err, code = client:acquire(ngx.var.arg_name or ngx.var.connection, {
        node_timeout = tonumber(ngx.var.arg_timeout),
      })
      if not lock then return ngx.print(code, ": ", err) end
      local ok, err, code = lock:release()
      ngx.print(ok and "ok" or code .. ": " .. err)
    }
  }

  location /slow {
    content_by_lua_block {
      local lock = assert(client:acquire("slow", { ttl = 60000 }))
      while not ngx.worker.exiting() do ngx.sleep(0.01) end
      ngx.sleep(1.2)
      ngx.print(tostring(lock:is_held()), " ", tostring(lock:extend(90000) ~= nil), " ", tostring(lock:release()))
    }
  }

  location /hold {
    content_by_lua_block {
      for index = 1, 3 do
        kept[index] = assert(client:acquire("held:" .. index, { ttl = 60000, owner = "worker" }))
      end
      ngx.print("held")
    }
  }

  location /nodes {
    content_by_lua_block {
      local states = {}
      for index, node in ipairs(client:nodes()) do states[index] = node.state end
      ngx.print(table.concat(states, " "))
    }
  }

  location /votes {
    content_by_lua_block {
      local lock = client:new_lock("votes", { node_timeout = tonumber(ngx.var.arg_timeout) })
      lock:acquire()
      local texts = {}
      for index, vote in ipairs(lock:votes()) do texts[index] = vote.vote .. " " .. (vote.error or "") end
      lock:release()
      ngx.print(table.concat(texts, "\n"))
    }
  }
]]

-- Seconds. Nodes that hang would cost their 30 seconds.
local SOON = 15

local INIT = [[client = require("redlock").new(addresses, { ttl = 60000, node_timeout = 30000 })]]

describe("a worker", function()
  local farm, nginx

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  before_each(function()
    farm:reset()
  end)

  after_each(function()
    if nginx then nginx:stop() end
  end)

  local function start(given)
    given.addresses = farm.addresses
    given.init = given.init or INIT
    given.server = LOCATIONS .. (given.server or "")
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

  local function lock_many(count, at_once)
    local failures = {}
    for _ = 1, count, at_once do
      local requests = {}
      for index = 1, at_once do requests[index] = nginx:request("/lock") end
      for index = 1, at_once do
        local _, body = requests[index]:finish()
        if body ~= "ok" then failures[#failures + 1] = body end
      end
    end
    return table.concat(failures, "\n")
  end

  it("worker_connects_at_first_use", function()
    start { workers = 2 }
    assert.are.equal(0, connections())
    assert.are.equal("down down down down down", select(2, nginx:get("/nodes")))
    assert.are.equal("", lock_many(64, 16))
    helper.eventually(function() return connections() == 10 or connections() == 5 end, "connections of workers")
    assert.are.equal("", nginx:complaints())
  end)

  it("client_of_init_worker_works", function()
    start { init = "", init_worker = [[rawset(_G, "client", require("resty.redlock").new(addresses, PATIENT))]] }
    assert.are.equal("ok", select(2, nginx:get("/lock")))
    assert.are.equal("", nginx:complaints())
  end)

  it("reloads_lose_no_request", function()
    start {}
    local failures = {}
    for _ = 1, 5 do
      local before = nginx:workers()[1]
      nginx:signal("HUP")
      helper.eventually(function()
        failures[#failures + 1] = lock_many(16, 8)
        return nginx:workers()[1] ~= before and #nginx:workers() == 1
      end, "the new worker")
    end
    assert.are.equal("", table.concat(failures))
    helper.eventually(function()
      failures[#failures + 1] = lock_many(8, 8) -- The new worker may not have had a request.
      return connections() == 5
    end, "the old connections to be closed")
    assert.are.equal("", table.concat(failures))
    assert.are.equal("", nginx:complaints())
  end)

  it("idle_worker_ends_promptly", function()
    start {}
    lock_many(8, 8)
    -- A worker that waited for a timer of its client would need 3 s or more.
    helper.within(2500, function() nginx:reload() end)
    assert.are.equal("", nginx:complaints())
  end)

  it("worker_completes_requests_before_it_ends", function()
    start {}
    local slow = nginx:request("/slow")
    helper.eventually(function() return farm:count("slow") == 5 end)
    nginx:reload()
    assert.are.equal("true true true", select(2, slow:finish()))
    farm:eventually_free("slow")
    assert.are.equal("", nginx:complaints())
  end)

  for _, signal in ipairs { "QUIT", "TERM" } do
    it("ended_worker_releases: " .. signal, function()
      -- A worker that ends waits for its nodes for 100 ms.
      helper.unless_stalled(50, function()
        farm:reset()
        start {}
        assert.are.equal("held", select(2, nginx:get("/hold")))
        helper.eventually(function() return farm:count("held:1") == 5 and farm:count("held:3") == 5 end)
        nginx:stop(signal)
        for index = 1, 3 do assert.are.equal(0, farm:count("held:" .. index)) end
        assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
      end)
    end)
  end

  it("exit_worker_releases_and_closes", function()
    helper.unless_stalled(50, function()
      farm:reset()
      start { http = [[exit_worker_by_lua_block {
        ngx.log(ngx.NOTICE, "released ", tostring(kept[1]:release()), " ", select(3, kept[1]:release()), " ",
          select(3, client:acquire("late")))
        if kept.close then ngx.log(ngx.NOTICE, "closed ", tostring(client:close())) end
      }]], server = [[location /close { content_by_lua_block { kept.close = true } }]] }
      nginx:get("/hold")
      helper.eventually(function() return farm:count("held:3") == 5 end)
      nginx:reload()
      nginx:get("/hold")
      nginx:get("/close")
      helper.eventually(function() return farm:count("held:3") == 5 end)
      nginx:stop("TERM")
      for index = 1, 3 do assert.are.equal(0, farm:count("held:" .. index)) end
      local _, released = nginx:read("error.log"):gsub("released true not_held unavailable", "")
      assert.are.equal(2, released)
      assert.is_truthy(nginx:read("error.log"):find("closed true", 1, true))
      assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
    end)
  end)

  it("ended_worker_releases_without_waiting_for_hanging_node", function()
    helper.unless_stalled(50, function()
      farm:reset()
      start {}
      nginx:get("/hold")
      helper.eventually(function() return farm:count("held:3") == 5 end)
      farm[2]:stop()
      local before = helper.now()
      nginx:reload()
      assert.is_true(helper.now() - before < SOON)
      for index = 1, 3 do assert.are.equal(0, farm:count("held:" .. index)) end
      assert.are.equal("", nginx:complaints())
    end)
  end)

  it("worker_ends_in_time_with_outstanding_reply", function()
    start {}
    assert.are.equal("", lock_many(8, 8))
    farm[2]:stop()
    assert.are.equal("", lock_many(8, 8))
    local before = helper.now()
    nginx:reload()
    assert.is_true(helper.now() - before < SOON)
    assert.are.equal("", lock_many(8, 8))
    assert.are.equal("", nginx:complaints())
  end)

  it("binary_upgrade_loses_no_request", function()
    -- The old worker waits for its nodes for 100 ms, as any worker that ends.
    helper.unless_stalled(50, function()
      farm:reset()
      start { upgraded = true }
      nginx:get("/hold")
      nginx:signal("USR2")
      helper.eventually(function()
        return nginx:read("nginx.pid.oldbin") ~= "" and nginx:read("nginx.pid") ~= ""
      end, "the new program to start")
      local old, new = nginx.pid, nginx:read("nginx.pid"):match("%d+")
      helper.eventually(function()
        nginx.pid = new
        return #nginx:workers() == 1
      end)
      os.execute("kill -QUIT " .. old)
      assert.are.equal("", lock_many(64, 8))
      helper.eventually(function()
        return farm:count("held:1") == 0 and farm:count("held:2") == 0 and farm:count("held:3") == 0
      end, "the old worker's locks to be released")
      assert.are.equal("", lock_many(8, 8))
      assert.are.equal("", nginx:complaints())
    end)
  end)

  it("worker_works_while_two_nodes_hang", function()
    start {}
    assert.are.equal("", lock_many(8, 8))
    farm[1]:stop()
    farm[4]:stop()
    local before = helper.now()
    assert.are.equal("", lock_many(64, 16))
    assert.is_true(helper.now() - before < SOON)
    farm[1]:continue()
    farm[4]:continue()
    helper.eventually(function()
      return not select(2, nginx:get("/votes")):find("no reply for", 1, true)
    end)
    assert.are.equal("up up up up up", select(2, nginx:get("/nodes")))
    helper.eventually(function()
      for _, node in ipairs(farm) do
        if node:command("DBSIZE") ~= 0 then return false end
      end
      return true
    end, "all keys to be gone")
    assert.are.equal("", nginx:complaints())
  end)

  it("worker_reports_when_three_nodes_hang", function()
    start {}
    assert.are.equal("", lock_many(8, 8))
    for index = 1, 3 do farm[index]:stop() end
    local before = helper.now()
    local said = select(2, nginx:get("/lock?name=a&timeout=100"))
    assert.is_truthy(said:find("^unavailable: "), said)
    assert.is_true(helper.now() - before < SOON)
    local votes = select(2, nginx:get("/votes?timeout=100"))
    assert.is_truthy(votes:find("unknown no reply", 1, true), votes)
    for index = 1, 3 do farm[index]:continue() end
    helper.eventually(function() return select(2, nginx:get("/lock?name=a")) == "ok" end)
    assert.are.equal("", nginx:complaints())
  end)

  it("killed_node_loses_no_request", function()
    start {}
    assert.are.equal("", lock_many(16, 8))
    farm[3]:kill()
    assert.are.equal("", lock_many(200, 8))
    farm[3]:restart()
    assert.are.equal("", lock_many(200, 8))
    helper.eventually(function() return select(2, nginx:get("/nodes")) == "up up up up up" end)
    assert.are.equal("", nginx:complaints(server.NODE_IS_GONE, server.CONNECTION_BROKE))
  end)

  it("returning_node_is_released", function()
    start { server = [[
      location /take { content_by_lua_block {
        kept.lock = assert(client:acquire("away", { ttl = 30000, owner = "worker" }))
      } }
      location /give { content_by_lua_block { ngx.print(tostring(kept.lock:release())) } }
    ]] }
    nginx:get("/take")
    helper.eventually(function() return farm:count("away") == 5 end)
    farm[5]:stop()
    assert.are.equal("true", select(2, nginx:get("/give")))
    farm[5]:continue()
    farm:eventually_free("away")
    assert.are.equal("", nginx:complaints())
  end)

  it("worker_ends_with_extends_always_in_flight", function()
    start { server = [[
      location /keep { content_by_lua_block {
        for index = 1, 50 do
          kept[index] = assert(client:acquire("kept:" .. index, {
            ttl = 60000, owner = "worker", auto_extend = { every = 1 }, wait = 60000,
          }))
        end
      } }
    ]] }
    assert.are.equal(200, (nginx:get("/keep")))
    nginx:stop("QUIT")
    assert.are.equal("", nginx:complaints(server.CONNECTION_BROKE))
  end)
end)
