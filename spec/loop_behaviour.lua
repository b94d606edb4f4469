--- Duties of every loop of coroutines (lua/redlock/loop.lua), besides those of all drivers.
---
--- loop_behaviour(title, { new = , run = , spawn = , sleep = , farm = , describe = , it = }): `new`
--- makes a client, `run` runs functions in coroutines until they have ended, `spawn` starts one
--- more from inside, `sleep` waits for seconds. With `blocks_outside` a call outside of a coroutine
--- blocks.

local assert = require "luassert"
local helper = require "spec.helper"

local core = require "redlock.core"

local unpack = table.unpack or unpack -- luacheck: ignore

return function(title, driver)
  local describe, it, run, spawn, sleep = driver.describe, driver.it, driver.run, driver.spawn, driver.sleep
  local farm

  local function test(name, fn)
    it(name, function()
      farm = driver.farm()
      farm:reset()
      fn()
    end)
  end

  local function new(options)
    options = options or {}
    options.retry_count, options.node_timeout = options.retry_count or 0, options.node_timeout or 30000
    return driver.new(farm.addresses, options)
  end

  local function at_once(count, fn)
    local workers = {}
    for index = 1, count do workers[index] = function() fn(index) end end
    run(unpack(workers, 1, count))
  end

  -- Returns true if a loop still has the client's descriptor.
  local function is_watched(client)
    for _, seat in pairs(client.seats) do
      if seat.watch then return true end
    end
    return false
  end

  describe(title, function()
    test("lock_has_every_method_of_blocking_lock_but_start", function()
      local client = new()
      local lock = client:new_lock("r")
      for name in pairs(core.lock_methods) do
        assert.are.equal(name == "start" and "nil" or "function", type(lock[name]), name)
      end
      run(function() client:close() end)
    end)

    test("twenty_locks_at_once_leave_no_descriptor_watched", function()
      farm[5]:kill()
      local client, count = new(), 0
      at_once(20, function(index)
        for round = 1, 5 do
          local lock = assert(client:acquire("r" .. index .. ":" .. round))
          assert(lock:extend())
          assert(lock:release())
          count = count + 1
        end
      end)
      assert.are.equal(100, count)
      helper.eventually(function()
        run(function() sleep(0.001) end)
        return not is_watched(client)
      end, "the loop to be without the client")
      run(function() client:close() end)
    end)

    test("coroutines_of_one_client_lead_one_after_the_other", function()
      local client, inside, terms, last = new(), 0, 0, 0
      at_once(5, function()
        local left = 3
        assert(client:lead("r", function(term)
          inside, terms, left = inside + 1, terms + 1, left - 1
          assert.are.equal(1, inside)
          assert.is_true(term:fence() > last)
          last = term:fence()
          sleep(0.002)
          inside = inside - 1
          return left == 0 and "resign" or nil
        end))
      end)
      assert.are.equal(15, terms)
      run(function() client:close() end)
    end)

    test("close_in_another_coroutine_ends_campaign", function()
      local client, other, code = new(), new(), nil
      run(function()
        local held = assert(other:acquire("r", { ttl = 60000 }))
        spawn(function() code = select(3, client:lead("r", error)) end)
        sleep(0.05)
        client:close()
        repeat sleep(0.002) until code
        assert.is_true(held:is_held())
        other:close()
      end)
      assert.are.equal("closed", code)
    end)

    -- Of a node, with those that scripts call.
    local function commands()
      local sum = 0
      for name, calls in farm[1]:command("INFO", "commandstats"):gmatch("cmdstat_([^:]+):calls=(%d+)") do
        if name ~= "info" then sum = sum + calls end
      end
      return sum
    end

    -- A client that waits as long as it takes, and polls so seldom that what it gets it was
    -- notified of.
    local function patient()
      return driver.new(farm.addresses, {
        wait = 90000, node_timeout = 30000, retry_delay = 60000, poll_interval = 60000, ttl = 60000,
      })
    end
    local SOON = 20 -- seconds, in which it has not polled

    test("two_hundred_waiters_cost_the_nodes_as_much_as_one", function()
      local client, inside, had = patient(), 0, 0
      for _, node in ipairs(farm) do node:command("SET", "one", "somebody's") end
      local function cost(count)
        local before = commands()
        at_once(count, function() assert.is_nil((client:acquire("one", { wait = 300 }))) end)
        return commands() - before
      end
      cost(1)
      local one = cost(1)
      local many = cost(200)
      assert.is_true(many < 50 * one, many .. " commands, and " .. one .. " of one") -- not 200 times as many
      for _, node in ipairs(farm) do node:command("DEL", "one") end
      local before = commands()
      at_once(200, function()
        local lock = assert(client:acquire("one"))
        inside = inside + 1
        assert.are.equal(1, inside)
        sleep(0.001)
        inside, had = inside - 1, had + 1
        assert(lock:release())
      end)
      assert.are.equal(200, had)
      local used = (commands() - before) / had
      assert.is_true(used <= 20, used .. " commands for each") -- 10 to 11 on a quiet machine
      run(function() client:close() end)
    end)

    test("clients_of_one_loop_notify_each_other", function()
      local clients, began = { patient(), patient() }, helper.now()
      at_once(2, function(index)
        for _ = 1, 10 do
          local lock = assert(clients[index]:acquire("handed"))
          sleep(0.005)
          assert(lock:release())
        end
      end)
      local took = helper.now() - began
      assert.is_true(took < SOON, took .. " s")
      run(function()
        clients[1]:close()
        clients[2]:close()
      end)
    end)

    test("release_ends_extend_of_living_coroutine", function()
      local client = new({ ttl = 60000, node_timeout = 5000 })
      run(function()
        local lock, results = assert(client:acquire("r")), nil
        for index = 3, 5 do farm[index]:stop() end
        spawn(function() results = { lock:extend() } end)
        repeat sleep(0.001) until lock.wait.waiting
        assert(lock:release({ wait = false }))
        assert.are.equal(0, lock:remaining())
        repeat sleep(0.001) until results
        assert.is_nil(results[1])
        assert.are.equal("cancelled", results[3])
        helper.eventually(function()
          sleep(0.001)
          return farm[1]:command("EXISTS", "r") == 0 and farm[2]:command("EXISTS", "r") == 0
        end, "the running nodes to be released")
        for index = 3, 5 do farm[index]:continue() end
        client:close()
      end)
      farm:eventually_free("r")
    end)

    test("cancelled_waiter_makes_way_at_once", function()
      local client, other = patient(), patient()
      local first = client:new_lock("way")
      local released, granted
      run(function()
        local held = assert(other:acquire("way"))
        spawn(function() assert.are.equal("cancelled", (select(3, first:acquire()))) end)
        spawn(function()
          local second = assert(client:acquire("way"))
          granted = helper.now()
          assert(second:release())
        end)
        sleep(0.1)
        first:cancel()
        sleep(0.1)
        released = helper.now()
        assert(held:release())
        while not granted do sleep(0.005) end
      end)
      assert.is_true(granted - released < SOON, granted - released)
      run(function()
        client:close()
        other:close()
      end)
    end)

    test("operations_of_one_turn_are_sent_together", function()
      local client, turns = new(), 0
      local process = core.client_methods.process
      run(function() assert(assert(client:acquire("warm")):release()) end)
      core.client_methods.process = function(handle)
        turns = turns + 1
        return process(handle)
      end
      local ok, err = pcall(at_once, 64, function(index)
        local lock = client:new_lock("r" .. index)
        for _ = 1, 5 do
          assert(lock:acquire())
          assert(lock:release())
        end
      end)
      core.client_methods.process = process
      assert(ok, err)
      assert.is_true(turns < 320, turns .. " turns for 640 operations")
      run(function() client:close() end)
    end)

    test("waiting_coroutine_without_reference_is_not_collected", function()
      local client, ended = new(), 0
      run(function() assert(assert(client:acquire("warm")):release()) end)
      for index = 1, 3 do farm[index]:stop() end
      run(function()
        for index = 1, 10 do
          spawn(function()
            assert(assert(client:acquire("r" .. index)):release())
            ended = ended + 1
          end)
        end
        collectgarbage()
        collectgarbage()
        for index = 1, 3 do farm[index]:continue() end
        repeat
          collectgarbage()
          sleep(0.001)
        until ended == 10
      end)
      run(function() client:close() end)
    end)

    test("error_in_woken_coroutine_disturbs_no_other", function()
      local client, ended, caught = new(), 0, 0
      at_once(20, function(index)
        local ok, err = pcall(client.with, client, "r" .. index, function(lock)
          assert(lock:extend())
          if index % 2 == 0 then error("in the middle", 0) end
        end)
        if ok then ended = ended + 1 elseif err == "in the middle" then caught = caught + 1 end
      end)
      assert.are.same({ 10, 10 }, { ended, caught })
      for index = 1, 20 do farm:eventually_free("r" .. index) end
      run(function() client:close() end)
    end)

    test("close_ends_all_waits_with_closed", function()
      local client, codes, closed = new({ node_timeout = 2500 }), {}, {} -- Both closes begin within that time.
      run(function() helper.eventually(function() return client:acquire("warm") end, "a lock"):release() end)
      for index = 1, 5 do farm[index]:stop() end
      local workers = {}
      for index = 1, 10 do workers[index] = function() codes[index] = select(3, client:acquire("r" .. index)) end end
      for index = 1, 2 do
        workers[10 + index] = function()
          sleep(0.02)
          closed[index] = { client:close() }
        end
      end
      local began = helper.now()
      run(unpack(workers))
      local took = helper.now() - began
      for index = 1, 5 do farm[index]:continue() end
      for index = 1, 10 do assert.are.equal("closed", codes[index]) end
      assert.are.equal("unavailable", closed[1][3])
      assert.are.same(closed[1], closed[2])
      assert.is_true(took < SOON, "took " .. took)
      assert.is_false(is_watched(client))
      run(function() assert.are.same({ true }, { client:close() }) end)
    end)

    test("client_closes_right_after_use", function()
      for round = 1, 20 do
        run(function()
          local client = new({ on_lost = function() end })
          local lock = assert(client:acquire("r" .. round))
          assert(client:close())
          assert.is_false(lock:is_held())
          assert.is_false(is_watched(client))
        end)
      end
    end)

    test("closed_and_collected_clients_leave_nothing_behind", function()
      run(function()
        for round = 1, 20 do
          local client = new()
          local lock = assert(client:acquire("r" .. round))
          if round % 2 == 0 then assert(client:close()) end
          assert.are.equal("r" .. round, lock:resource())
          client, lock = nil, nil -- luacheck: ignore
          collectgarbage()
          collectgarbage()
          sleep(0.001)
        end
      end)
      local client = new()
      helper.eventually(function()
        client.handle:process()
        collectgarbage()
        for _, node in ipairs(farm) do
          if node:command("DBSIZE") ~= 0 then return false end
        end
        return true
      end, "all keys to be gone")
      run(function() client:close() end)
    end)

    test("on_lost_runs_in_its_own_coroutine", function()
      local client, seen = new({ ttl = 300 }), {}
      run(function()
        local lock = client:new_lock("r", { on_lost = function(lost, reason)
          seen.reason = reason
          sleep(0.01)
          seen.other = client:acquire("other", { ttl = 60000 })
          seen.lost = lost
        end })
        repeat until lock:acquire()
        repeat sleep(0.01) until seen.lost
        assert.are.equal(lock, seen.lost)
        assert.are.equal("expired", seen.reason)
        assert(seen.other:release())
        client:close()
      end)
    end)

    test("error_of_on_lost_that_waited_is_written_to_stderr", function()
      local client, raised, again, written = new({ ttl = 200 }), 0, 0, {}
      local stderr = io.stderr
      io.stderr = { write = function(_, text) written[#written + 1] = text end } -- luacheck: ignore
      local ok, err = pcall(run, function()
        for index = 1, 3 do
          spawn(function()
            local lock = client:new_lock("r" .. index, { on_lost = function()
              assert(assert(client:acquire("within" .. index, { ttl = 60000 })):release())
              sleep(0.01)
              raised = raised + 1
              error("boo")
            end })
            repeat until lock:acquire()
            repeat sleep(0.01) until raised == 3
            assert(lock:acquire({ ttl = 60000 }))
            assert(lock:release())
            again = again + 1
          end)
        end
        repeat sleep(0.01) until again == 3
        client:close()
      end)
      io.stderr = stderr -- luacheck: ignore
      assert(ok, err)
      local text = table.concat(written)
      assert.are.equal(3, select(2, text:gsub("redlock: error in on_lost: [^\n]*boo", "")), text)
    end)

    test("close_outside_loop_releases_and_blocks", function()
      local client, lock = new(), nil
      run(function() lock = assert(client:acquire("r")) end)
      assert.are.same({ true }, { client:close() })
      assert.is_false(lock:is_held())
      assert.are.equal(0, farm:count("r"))
      assert.is_false(is_watched(client))
    end)

    test("wait_without_descriptor_returns_unavailable", function()
      local client, results = new(), nil
      local pollfd = core.client_methods.pollfd
      core.client_methods.pollfd = function() return nil end
      local ok, err = pcall(run, function()
        results = { client:acquire("r") }
        client:close()
      end)
      core.client_methods.pollfd = pollfd
      assert(ok, err)
      assert.are.equal("unavailable", results[3])
      assert.is_truthy(results[2]:find("'r': no descriptor is left .* %(ulimit %-n%)"), results[2])
    end)

    if not driver.blocks_outside then
      test("waiting_call_outside_coroutine_is_raised_at_callers_line", function()
        local client = new()
        local lock = client:new_lock("r")
        local function complaint(fn)
          local ok, err = pcall(fn)
          local where = "loop_behaviour.lua:" .. debug.getinfo(fn, "S").linedefined .. ": redlock: "
          assert.is_false(ok)
          assert.is_truthy(err:find(where, 1, true), err)
          assert.is_truthy(err:find("in a coroutine: ", 1, true), err)
        end
        complaint(function() client:acquire("r") end)
        complaint(function() client:with("r", print) end)
        complaint(function() client:inspect("r") end)
        complaint(function() client:doctor() end)
        complaint(function() client:bootstrap() end)
        complaint(function() client:force_release("r", "any") end)
        complaint(function() lock:acquire() end)
        complaint(function() lock:extend() end)
        complaint(function() lock:release() end)
        run(function()
          assert(lock:acquire())
          client:close()
        end)
      end)
    end
  end)
end
