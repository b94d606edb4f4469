--- Locks in nginx: that they work in every phase, and what becomes of them when requests die.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local helper = require "spec.helper"
local server = require "spec.nginx.server"

local LOCATIONS = [[
  lua_check_client_abort on;

  location /lock {
    content_by_lua_block {
      local options = {
        ttl = tonumber(ngx.var.arg_ttl), wait = tonumber(ngx.var.arg_wait), poll_interval = tonumber(ngx.var.arg_look),
      }
      local lock, err, code = client:acquire(ngx.var.arg_name, options)
      if not lock then return ngx.say(code, ": ", err) end
      if ngx.var.arg_sleep then ngx.sleep(ngx.var.arg_sleep / 1000) end
      ngx.say(lock:remaining() > 0, " ", lock:release(), " ", select(3, lock:release()))
    }
  }

  location /overlap {
    content_by_lua_block {
      kept.inside = kept.inside or 0
      local lock = assert(client:acquire("overlap", { wait = 90000, retry_delay = 3, retry_jitter = 2 }))
      kept.inside = kept.inside + 1
      local together = kept.inside
      ngx.sleep(0.001)
      kept.inside = kept.inside - 1
      assert(lock:release())
      ngx.print(together)
    }
  }

  location /ping { return 200 "pong"; }

  location /die {
    content_by_lua_block {
      local lock = assert(client:acquire(ngx.var.arg_name, { ttl = 60000 }))
      local how = ngx.var.arg_how
      if how == "error" then error("on purpose") end
      if how == "exit" then ngx.exit(200) end
      if how == "abort" then ngx.sleep(3600) end
    }
  }

  location /killed {
    content_by_lua_block {
      local function take(name, options) kept.lock = client:new_lock(name, options); kept.lock:acquire() end
      local waiting = ngx.thread.spawn(take, "killed", { ttl = 60000, wait = 60000 })
      ngx.sleep(tonumber(ngx.var.arg_after or 0.001))
      ngx.thread.kill(waiting)
      kept.lock = nil
      ngx.print("killed")
    }
  }

  # The first of two that are granted in the same step kills the other, which has been woken and has
  # not run since.
  location /woken {
    content_by_lua_block {
      local killed, go = 0, require("ngx.semaphore").new(0)
      local function take(name)
        go:wait(50)
        local lock = client:new_lock(name, { ttl = 60000, owner = "worker" })
        kept[#kept + 1] = lock
        assert(lock:acquire())
        lock:release()
      end
      for index = 1, 100 do
        local other = ngx.thread.spawn(take, "other:" .. index)
        go:post(1)
        local lock = assert(client:acquire("first:" .. index))
        if ngx.thread.kill(other) then killed = killed + 1 end
        assert(lock:release())
      end
      ngx.print(killed)
    }
  }

  # A holder whose semaphore is used again by those who come next.
  location /keep {
    content_by_lua_block { kept.holder = assert(client:acquire("holder", { ttl = 60000, owner = "worker" })) }
  }
  location /give {
    content_by_lua_block { ngx.print(tostring(kept.holder:is_held()), " ", tostring(kept.holder:release())) }
  }

  location /cancel {
    content_by_lua_block {
      local lock = client:new_lock("cancelled")
      local waiting = ngx.thread.spawn(function() return select(3, lock:acquire({ wait = 60000 })) end)
      lock:cancel()
      ngx.print(select(2, ngx.thread.wait(waiting)), " ", tostring(lock:acquire() ~= nil), " ",
        tostring(lock:release()))
    }
  }

  location /cycle {
    content_by_lua_block {
      for index = 1, 100 do
        local lock = assert(client:acquire("cycle:" .. ngx.var.connection .. ":" .. index, { ttl = 60000 }))
        assert(lock:extend(70000))
        assert(lock:release())
      end
      ngx.print("done")
    }
  }

  location /lease {
    content_by_lua_block {
      kept.lease = assert(client:acquire("leased", {
        ttl = 60000, node_timeout = 1000, owner = "worker", wait = 60000,
      }))
    }
  }
  location /prolong {
    content_by_lua_block { assert(kept.lease:extend(80000)) }
  }
  location /warm {
    content_by_lua_block {
      client:with("warm", function() end)
      local up = 0
      for _, node in ipairs(client:nodes()) do up = up + (node.state == "up" and 1 or 0) end
      ngx.print(up)
    }
  }
  # Wakes the clock, and is held up before that looks at the time.
  location /held_up {
    content_by_lua_block {
      local lock, message
      local thread = ngx.thread.spawn(function()
        lock, message = client:acquire("held_up", { node_timeout = 1000, retry_count = 0 })
      end)
      ngx.sleep(0.05) -- It is sent.
      require("redlock.core").nginx.driver(client, "test").clock:post(1)
      os.execute("kill -STOP " .. ngx.worker.pid())
      ngx.thread.wait(thread)
      ngx.print(tostring(lock and lock:release()), " ", tostring(message))
    }
  }
  location /longer {
    content_by_lua_block {
      local left, err = kept.lease:extend(160000)
      ngx.print(left and "extended" or err, ", ", tostring(kept.lease:release()))
    }
  }

  # The locks belong to no request, and are kept: nobody but the client can see that nobody waits
  # any more.
  location /kill {
    content_by_lua_block {
      local threads = {}
      for index = 1, 16 do
        kept[index] = client:new_lock("killed:" .. index, { wait = 15000, ttl = 60000, owner = "worker" })
        threads[index] = ngx.thread.spawn(function() kept[index]:acquire() end)
      end
      ngx.sleep(0.2)
      for index = 1, 16 do ngx.thread.kill(threads[index]) end
    }
  }
  location /abandon {
    content_by_lua_block {
      local options = { owner = "worker", wait = 60000, retry_count = 100000, retry_delay = 10 }
      local waiting = {}
      for index = 1, 20 do
        kept[index] = client:new_lock("theirs", options)
        waiting[index] = ngx.thread.spawn(kept[index].acquire, kept[index])
      end
      ngx.sleep(0.01)
      for index = 1, 20 do ngx.thread.kill(waiting[index]) end
    }
  }

  location /sleeper { content_by_lua_block { ngx.print(require("redlock.nginx_wait").free_sleeper()) } }

  # A timer takes the lock, and ends while a request extends it.
  location /own {
    content_by_lua_block {
      kept.orphan, kept.extending = nil, nil
      local function own()
        kept.orphan = assert(client:acquire("orphan", { ttl = 60000, node_timeout = 20000 }))
        repeat ngx.sleep(0.005) until kept.extending
        ngx.sleep(0.02)
      end
      assert(ngx.timer.at(0, own))
      repeat ngx.sleep(0.005) until kept.orphan
    }
  }
  location /orphan {
    content_by_lua_block {
      local before = ngx.now()
      kept.extending = true
      local code = select(3, kept.orphan:extend())
      ngx.update_time()
      ngx.print(code, " ", math.floor((ngx.now() - before) * 1000))
    }
  }

  location /drop {
    content_by_lua_block { assert(client:acquire("dropped", { ttl = 60000, owner = "worker" })) }
  }

  # The driver's handle, which nobody else has.
  location /handle {
    content_by_lua_block {
      local native = require("redlock.core").nginx
      local other = require("redlock").new(addresses, PATIENT)
      local handle = native.driver(other, "x").handle
      for _, index in ipairs { 0, 6 } do ngx.say(select(2, pcall(native.address, handle, index))) end
      local collect = debug.getmetatable(handle).__gc
      collect({})
      collect(handle)
      collect(handle)
      ngx.say(select(2, pcall(native.address, handle, 1)))
    }
  }

  location /look {
    content_by_lua_block {
      local before = ngx.now()
      for _ = 1, 5 do
        assert(client:inspect("looked at"))
        client:force_release("looked at", "any")
        assert(client:doctor())
      end
      ngx.update_time()
      ngx.print(math.floor((ngx.now() - before) * 1000))
    }
  }

  # What is begun, and not waited for, as when a call is broken off by an error.
  location /unwaited {
    content_by_lua_block {
      local core, sleeper = require "redlock.core", require("redlock.nginx_wait").free_sleeper()
      local first = client:new_lock("unwaited", { owner = "worker" })
      assert(core.nginx.start(first, core.operations.acquire.code, nil, sleeper))
      local second = assert(client:acquire("waited for", {}))
      ngx.print(tostring(second:release()), " ", tostring(first:is_held()), " ", tostring(first:release()))
    }
  }

  location /eager {
    content_by_lua_block {
      local options = { wait = 500, retry_count = 1e5, retry_delay = 2, retry_jitter = 0, notify = false }
      ngx.print(select(3, client:acquire("theirs", options)))
    }
  }

  location /with {
    content_by_lua_block {
      ngx.say(client:with("with", function(lock, word) ngx.sleep(0.01) return word, lock:is_held() end, "word"))
      local ok, err = pcall(client.with, client, "with", function() ngx.sleep(0.01) error("inside", 0) end)
      ngx.say(ok, " ", err, " ", client:new_lock("with"):acquire() ~= nil)
    }
  }

  location /coroutine {
    content_by_lua_block {
      local step = coroutine.wrap(function()
        local lock = assert(client:acquire("coroutine"))
        coroutine.yield(lock:is_held())
        coroutine.yield(lock:release())
      end)
      ngx.say(step(), " ", step())
    }
  }

  location /sub {
    content_by_lua_block {
      local one, two = ngx.location.capture_multi { { "/lock?name=one" }, { "/lock?name=two" } }
      ngx.print(one.body, two.body)
    }
  }

  location /timer {
    content_by_lua_block {
      local function work(premature, name)
        kept.timer = { select(2, client:with(name, function(lock) return lock:is_held() end)) }
      end
      assert(ngx.timer.at(0, work, "timer"))
      repeat ngx.sleep(0.002) until kept.timer
      ngx.say(kept.timer[1])
    }
  }
]]

describe("redlock in nginx", function()
  local farm, nginx

  setup(function()
    farm = helper.farm(5)
    nginx = server.start {
      addresses = farm.addresses,
      init = [[client = require("redlock").new(addresses, { ttl = 60000, node_timeout = 20000 })]],
      server = LOCATIONS,
    }
  end)

  teardown(function()
    nginx:stop()
    farm:shut()
  end)

  before_each(function() farm:reset() end)

  local function sets() return tonumber(farm[1]:command("INFO", "commandstats"):match("cmdstat_set:calls=(%d+)")) end

  local function quiet(expected)
    assert.are.equal("", nginx:complaints(expected))
  end

  it("request_acquires_and_releases", function()
    for _ = 1, 20 do
      local status, body = nginx:get("/lock?name=one")
      assert.are.equal(200, status)
      assert.are.equal("true true not_held\n", body)
    end
    farm:eventually_free("one")
    quiet()
  end)

  it("request_gets_taken_for_lock_of_another_client", function()
    for _, node in ipairs(farm) do node:command("SET", "theirs", "token") end
    local _, body = nginx:get("/lock?name=theirs&wait=0")
    assert.is_truthy(body:match("^taken: 'theirs' is taken: %d of 5 nodes hold it for another client"), body)
    assert.are.equal(5, farm:count("theirs", "token"))
    quiet()
  end)

  it("retry_starts_when_its_delay_is_over", function()
    for _, node in ipairs(farm) do node:command("SET", "theirs", "token") end
    -- The clock ticks 20 times a second at most while no request wakes it.
    helper.unless_stalled(100, function()
      local before = sets()
      assert.are.equal("taken", select(2, nginx:get("/eager")))
      local made = sets() - before
      assert.is_true(made > 20, made .. " attempts in half a second")
    end)
    quiet()
  end)

  -- A worker without that report looks by itself after a second.
  local function within_half_a_second(milliseconds)
    helper.unless_stalled(100, function()
      local took = milliseconds()
      assert.is_true(took < 500, took .. " ms")
    end)
  end

  it("idle_worker_releases_collected_lock", function()
    nginx:get("/drop")
    assert.is_true(farm:count("dropped") >= 3)
    farm:eventually_free("dropped")
    quiet()
  end)

  it("unknown_connection_and_collected_client_are_refused", function()
    assert.are.equal(("redlock: no such connection\n"):rep(2)
      .. "redlock: the client has been collected\n", select(2, nginx:get("/handle")))
    quiet()
  end)

  it("inspect_and_force_release_end_at_once", function()
    nginx:get("/lock?name=one")
    within_half_a_second(function() return tonumber((select(2, nginx:get("/look")))) end)
    quiet()
  end)

  it("end_of_request_ends_extend_at_once", function()
    within_half_a_second(function()
      nginx:get("/own")
      for index = 3, 5 do farm[index]:stop() end
      local code, took = select(2, nginx:get("/orphan")):match("^(%S+) (%d+)$")
      for index = 3, 5 do farm[index]:continue() end
      assert.are.equal("not_held", code)
      farm:eventually_free("orphan")
      return tonumber(took)
    end)
    quiet()
  end)

  it("operation_reuses_semaphore_of_abandoned_one", function()
    assert.are.equal("true true true", select(2, nginx:get("/unwaited")))
    farm:eventually_free("unwaited")
    quiet()
  end)

  it("operations_reuse_one_semaphore", function()
    for _ = 1, 3 do assert.are.equal("done", select(2, nginx:get("/cycle"))) end
    local _, sleeper = nginx:get("/sleeper")
    assert.is_true(tonumber(sleeper) <= 100, sleeper)
    quiet()
  end)

  it("waiting_request_blocks_no_other", function()
    for _, node in ipairs(farm) do node:command("SET", "busy", "token") end
    local waiting = nginx:request("/lock?name=busy&wait=90000&look=100")
    for _ = 1, 20 do
      assert.are.equal("pong", select(2, nginx:get("/ping")))
      assert.are.equal("true true not_held\n", select(2, nginx:get("/lock?name=free")))
    end
    for _, node in ipairs(farm) do node:command("DEL", "busy") end
    assert.are.equal("true true not_held\n", select(2, waiting:finish()))
    quiet()
  end)

  it("one_request_holds_at_a_time", function()
    local requests = {}
    for index = 1, 50 do requests[index] = nginx:request("/overlap") end
    for index = 1, 50 do assert.are.equal("1", select(2, requests[index]:finish())) end
    quiet()
  end)

  it("with_holds_and_passes_results_and_errors", function()
    assert.are.equal("truewordtrue\nfalse inside true\n", select(2, nginx:get("/with")))
    quiet()
  end)

  it("cancel_ends_acquire", function()
    for _, node in ipairs(farm) do node:command("SET", "cancelled", "token", "PX", "100") end
    assert.are.equal("cancelled true true", select(2, nginx:get("/cancel")))
    farm:eventually_free("cancelled")
    quiet()
  end)

  it("locks_work_in_coroutines_subrequests_and_timers", function()
    assert.are.equal("true true\n", select(2, nginx:get("/coroutine")))
    assert.are.equal(("true true not_held\n"):rep(2), select(2, nginx:get("/sub")))
    assert.are.equal("true\n", select(2, nginx:get("/timer")))
    quiet()
  end)

  for _, how in ipairs { "error", "exit", "nothing" } do
    it("end_of_request_releases: " .. how, function()
      nginx:get("/die?name=died&how=" .. how)
      farm:eventually_free("died")
      quiet(how == "error" and "on purpose" or nil)
    end)
  end

  it("lock_of_gone_browser_is_released", function()
    local request = nginx:request("/die?name=gone&how=abort")
    helper.eventually(function() return farm:count("gone") == 5 end, "the lock")
    request:abort()
    farm:eventually_free("gone")
    quiet()
  end)

  it("acquire_of_gone_browser_is_given_up", function()
    for _, node in ipairs(farm) do node:command("SET", "awaited", "token") end
    local requests = {}
    for index = 1, 20 do requests[index] = nginx:request("/lock?name=awaited&wait=60000&ttl=60000") end
    helper.eventually(function() return nginx:get("/ping") == 200 end)
    for index = 1, 20 do requests[index]:abort() end
    for _, node in ipairs(farm) do node:command("DEL", "awaited") end
    -- A dead request gets it now; the lock becomes free again long before its ttl.
    helper.eventually(function()
      return select(2, nginx:get("/lock?name=awaited&wait=0")) == "true true not_held\n"
    end, "the lock to be free")
    farm:eventually_free("awaited")
    quiet()
  end)

  it("grant_of_light_thread_killed_while_woken_is_released", function()
    local killed = tonumber((select(2, nginx:get("/woken"))))
    assert.is_true(killed > 50, killed .. " were killed")
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end, "the locks of the killed to be gone")
    for index = 1, 20 do
      assert.are.equal("true true not_held\n", select(2, nginx:get("/lock?name=other:" .. index .. "&wait=0")))
    end
    quiet()
  end)

  it("dead_waiter_leaves_lease_of_former_sleeper_user", function()
    nginx:get("/keep")
    helper.eventually(function() return farm:count("holder") == 5 end)
    for _, node in ipairs(farm) do node:command("SET", "theirs", "token") end
    for _ = 1, 3 do
      local request = nginx:request("/lock?name=theirs&wait=60000")
      helper.eventually(function() return nginx:get("/ping") == 200 end)
      request:abort()
      -- What waits after it gets its own result.
      assert.are.equal("true true not_held\n", select(2, nginx:get("/lock?name=free")))
    end
    helper.pass(1.5) -- It looks every second for requests that have died.
    assert.are.equal(5, farm:count("holder"))
    assert.are.equal("true true", select(2, nginx:get("/give")))
    quiet()
  end)

  it("acquire_of_killed_light_thread_stops", function()
    for _, node in ipairs(farm) do node:command("SET", "theirs", "token") end
    local before = sets()
    nginx:get("/abandon")
    assert.is_true(sets() > before)
    helper.eventually(function()
      local made = sets()
      helper.pass(0.3)
      return sets() == made
    end, "the attempts to end")
    quiet()
  end)

  it("acquires_of_sixteen_killed_light_threads_stop", function()
    for index = 1, 16 do
      for _, node in ipairs(farm) do node:command("SET", "killed:" .. index, "token") end
    end
    assert.are.equal(200, (nginx:get("/kill")))
    helper.pass(2.5)
    for index = 1, 16 do
      for _, node in ipairs(farm) do node:command("DEL", "killed:" .. index) end
    end
    helper.pass(0.5)
    for index = 1, 16 do assert.are.equal(0, farm:count("killed:" .. index), "killed:" .. index) end
    quiet()
  end)

  -- An earlier try may have left it stopped.
  local function continue_worker()
    os.execute("kill -CONT " .. nginx:workers()[1])
  end

  it("replies_that_came_while_worker_was_stopped_are_read_first", function()
    helper.unless_stalled(100, function()
      continue_worker()
      farm:reset()
      assert.are.equal(200, nginx:get("/lease"))
      for _, node in ipairs(farm) do -- From then on they know the script.
        helper.eventually(function()
          return nginx:get("/prolong") == 200 and node:command("PTTL", "leased") > 60000
        end, "a node to extend")
      end
      for _, node in ipairs(farm) do node:stop() end
      local over = helper.now() + 1
      local longer = nginx:request("/longer")
      for _ = 1, 3 do assert.are.equal(200, nginx:get("/ping")) end
      local worker = nginx:workers()[1]
      finally(continue_worker)
      os.execute("kill -STOP " .. worker)
      helper.eventually(function() return nginx:stat(worker):match("%) (%a)") == "T" end, "the worker to stop")
      for _, node in ipairs(farm) do
        node:continue()
        helper.eventually(function() return node:command("PTTL", "leased") > 80000 end, "a node to extend again", 10)
      end
      helper.pass(over + 0.1 - helper.now())
      os.execute("kill -CONT " .. worker)
      local _, body = longer:finish()
      assert.are.equal("extended, true", body)
    end)
    quiet()
  end)

  it("replies_that_came_while_a_request_held_up_the_worker_are_read_before_nodes_are_silent", function()
    for _ = 1, 3 do
      helper.unless_stalled(100, function()
        continue_worker()
        farm:reset()
        helper.eventually(function() return select(2, nginx:get("/warm")) == "5" end, "all nodes to be connected")
        for _, node in ipairs(farm) do node:stop() end
        local over, worker = helper.now() + 1.1, nginx:workers()[1]
        local request = nginx:request("/held_up")
        finally(continue_worker)
        helper.eventually(function() return nginx:stat(worker):match("%) (%a)") == "T" end, "the worker to stop", 10)
        for _, node in ipairs(farm) do node:continue() end
        helper.eventually(function() return farm:count("held_up") == 5 end, "the nodes to grant it", 10)
        helper.pass(over + 0.1 - helper.now())
        os.execute("kill -CONT " .. worker)
        assert.are.equal("true nil", select(2, request:finish()))
      end)
    end
    quiet()
  end)

  it("grant_of_killed_light_thread_is_released_at_once", function()
    for _, node in ipairs(farm) do node:command("SET", "theirs", "token") end
    nginx:get("/abandon")
    for _, node in ipairs(farm) do node:command("DEL", "theirs") end
    helper.pass(0.2)
    farm:eventually_free("theirs")
    quiet()
  end)

  it("acquire_of_killed_light_thread_is_given_up", function()
    assert.are.equal("killed", select(2, nginx:get("/killed")))
    farm:eventually_free("killed")
    for _, node in ipairs(farm) do node:command("SET", "killed", "token") end
    assert.are.equal("killed", select(2, nginx:get("/killed?after=0.01")))
    for _, node in ipairs(farm) do node:command("DEL", "killed") end
    helper.eventually(function()
      return select(2, nginx:get("/lock?name=killed&wait=0")) == "true true not_held\n"
    end, "the lock to be free")
    quiet()
  end)

  it("killed_requests_disturb_no_user_of_their_coroutines", function()
    local good, bad = {}, {}
    for round = 1, 5 do
      for index = 1, 4 do good[index] = nginx:request("/cycle") end
      for index = 1, 15 do
        bad[index] = nginx:request(index % 2 == 0 and "/die?how=abort&name=bad" .. round .. "." .. index or "/cycle")
      end
      helper.eventually(function() return nginx:get("/ping") == 200 end)
      for index = 1, 15 do bad[index]:abort() end
      for index = 1, 4 do
        local _, body = good[index]:finish()
        assert.are.equal("done", body, body ~= "done" and nginx:complaints() or nil)
      end
    end
    helper.eventually(function()
      return farm[1]:command("DBSIZE") == 0 and farm[5]:command("DBSIZE") == 0
    end, "all keys to be gone")
    quiet()
  end)
end)
