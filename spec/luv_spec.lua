local behaviour = require "spec.behaviour"
local driver = require "spec.luv_driver"
local helper = require "spec.helper"

local redlock = require "redlock.luv"

local unpack = table.unpack or unpack -- luacheck: ignore

-- The pcall of PUC Lua 5.1 cannot be yielded across, which is what with() would have to do.
if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then return end

describe("redlock.luv", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  driver.farm = function() return farm end
  driver.describe, driver.it = describe, it

  local run, sleep = driver.run, driver.sleep

  behaviour("waiting in a coroutine", driver)

  it("loop_extends_lease_and_ends_while_it_is_held", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { ttl = 60000, auto_extend = { every = 50 }, node_timeout = 20000 })
    local lock
    run(function() lock = assert(client:acquire("r")) end)
    assert.is_true(lock:is_held())
    local left = lock:remaining()
    run(function()
      repeat -- until it is extended
        sleep(0.01)
        local before = left
        left = lock:remaining()
      until left > before
    end)
    assert.is_true(lock:is_held())
    run(function()
      assert(lock:release())
      client:close()
    end)
  end)

  it("error_in_woken_coroutine_is_raised_with_traceback", function()
    local output, ok = helper.run_script([[
      local uv = require "luv"
      local client = require("redlock.luv").new({ ... }, { node_timeout = 20000 })
      local function fails_here() error("not to vanish") end
      coroutine.wrap(function()
        assert(client:acquire("r"))
        fails_here()
      end)()
      uv.run()
      print("the loop went on")
    ]], farm.addresses[1], farm.addresses[2], farm.addresses[3])
    assert.is_truthy(output:find("not to vanish", 1, true), output)
    assert.is_truthy(output:find("fails_here", 1, true), output)
    assert.is_false(ok)
  end)

  local endings = {
    outside_the_loop = [[
      coroutine.wrap(function() assert(client:acquire("r")) end)()
      uv.run()
      client:close()]],
    in_callback = [[
      coroutine.wrap(function()
        assert(client:acquire("r"))
        uv.new_timer():start(20, 0, function() client:close() end)
        client:acquire("r", { wait = 60000 })
        os.exit(0, true)
      end)()
      uv.run()]],
    in_coroutine = [[
      coroutine.wrap(function()
        assert(client:acquire("r"))
        client:close()
        os.exit(0, true)
      end)()
      uv.run()]],
  }

  -- luv 1.44 uses a handle that was closing when the program ended, after it has freed it. glibc
  -- fills freed memory when MALLOC_PERTURB_ is set, so that the use is a crash.
  for where, text in pairs(endings) do
    it("program_ends_without_crash_after_client_was_closed_" .. where, function()
      farm:reset()
      local interpreter = helper.interpreter
      finally(function() helper.interpreter = interpreter end)
      helper.interpreter = "env MALLOC_PERTURB_=165 " .. interpreter
      local output, ok = helper.run_script([[
        local uv = require "luv"
        local client = require("redlock.luv").new({ ... }, { node_timeout = 20000, ttl = 60000, auto_extend = true })
      ]] .. text, farm.addresses[1], farm.addresses[2], farm.addresses[3])
      assert.are.same({ "", true }, { output, ok })
    end)
  end

  it("coroutine_waits_after_program_has_closed_all_handles", function()
    farm:reset()
    local output, ok = helper.run_script([[
      local uv = require "luv"
      local count, nodes = 0, { ... }
      local function wait_until_closed()
        local client = require("redlock.luv").new(nodes, { node_timeout = 20000, ttl = 60000 })
        assert(client:acquire("r"))
        uv.new_timer():start(20, 0, function() client:close() end)
        assert(not client:acquire("r", { wait = 60000 }))
        count = count + 1
      end
      for _ = 1, 3 do
        coroutine.wrap(wait_until_closed)()
        uv.run()
        uv.walk(function(handle) if not handle:is_closing() then handle:close() end end)
        uv.run()
      end
      print(count)
    ]], farm.addresses[1], farm.addresses[2], farm.addresses[3])
    assert.are.same({ "3", true }, { output, ok })
  end)

  if coroutine.close then -- luacheck: ignore
    it("loop_ends_after_coroutine_was_closed_in_close", function()
      farm:reset()
      local client, got = redlock.new(farm.addresses, { node_timeout = 500 }), nil
      run(function() assert(assert(client:acquire("warm", { node_timeout = 20000 })):release()) end)
      for index = 1, 3 do farm[index]:stop() end
      coroutine.wrap(function() got = select(3, client:acquire("r")) end)()
      local closing = coroutine.create(function() client:close() end)
      assert(coroutine.resume(closing))
      assert.are.equal("suspended", coroutine.status(closing))
      assert(coroutine.close(closing)) -- luacheck: ignore
      run(function() repeat sleep(0.01) until got end)
      assert.are.equal("closed", got)
      for index = 1, 3 do farm[index]:continue() end
      run(function() client:close() end)
    end)

    it("closed_coroutine_ends_campaign_and_term", function()
      farm:reset()
      local client, began, led = redlock.new(farm.addresses, { ttl = 60000, node_timeout = 20000 }), false, false
      local other = redlock.new(farm.addresses, { ttl = 60000, node_timeout = 20000 })
      local function close(thread) assert(coroutine.close(thread)) end -- luacheck: ignore
      run(function()
        local leader = coroutine.create(function()
          client:lead("r", function()
            began = true
            coroutine.yield()
          end)
        end)
        assert(coroutine.resume(leader))
        repeat sleep(0.005) until began
        local standby = coroutine.create(function() other:lead("r", function() led = true end) end)
        assert(coroutine.resume(standby))
        sleep(0.05)
        close(standby)
        close(leader)
        helper.eventually(function()
          sleep(0.005)
          return farm:count("r") == 0
        end, "the release")
        assert.is_true((client:lead("r", function() return "resign" end)))
        client:close()
        other:close()
      end)
      assert.is_false(led)
    end)

    -- One that waits for what another client has, until it is closed.
    local function start_to_wait(client)
      local thread = coroutine.create(function() client:acquire("r", { wait = 60000 }) end)
      assert(coroutine.resume(thread))
      assert.are.equal("suspended", coroutine.status(thread))
      return thread
    end

    for _, name in ipairs { "acquire", "extend", "release" } do
      it("release_is_not_blocked_by_closed_coroutine_in_" .. name, function()
        farm:reset()
        local client = redlock.new(farm.addresses, { node_timeout = 5000, ttl = 60000, wait = 60000 })
        run(function()
          local lock = client:new_lock("r")
          if name ~= "acquire" then assert(lock:acquire()) end
          for index = 3, 5 do farm[index]:stop() end
          local thread = coroutine.create(function() lock[name](lock) end)
          assert(coroutine.resume(thread))
          assert(coroutine.close(thread)) -- luacheck: ignore
          local ended, ok, code
          coroutine.wrap(function()
            ok, code = lock:release(), nil
            ended = true
          end)()
          helper.eventually(function()
            sleep(0.001)
            return farm[1]:command("EXISTS", "r") == 0 and farm[2]:command("EXISTS", "r") == 0
          end, "the running nodes to be released")
          for index = 3, 5 do farm[index]:continue() end
          repeat sleep(0.001) until ended
          assert.are.equal(name ~= "acquire" or nil, ok, code)
          assert.are.equal(0, lock:remaining())
          client:close()
        end)
        farm:eventually_free("r")
      end)
    end

    it("closed_coroutine_blocks_no_extend_and_no_detach", function()
      farm:reset()
      local client = redlock.new(farm.addresses, { node_timeout = 5000, ttl = 60000 })
      run(function()
        local lock = assert(client:acquire("r"))
        local function close_extender()
          local thread = coroutine.create(function() lock:extend() end)
          assert(coroutine.resume(thread))
          assert(coroutine.close(thread)) -- luacheck: ignore
        end
        close_extender()
        assert(lock:extend())
        close_extender()
        assert(assert(client:attach(assert(lock:detach()))):release())
        client:close()
      end)
      farm:eventually_free("r")
    end)

    for _, notify in ipairs { true, false } do
      local how = ", notify = " .. tostring(notify)

      it("loop_ends_after_coroutine_was_closed_in_acquire" .. how,
        function()
          farm:reset()
          local client, other = redlock.new(farm.addresses, { notify = notify, node_timeout = 20000 }),
            redlock.new(farm.addresses, { node_timeout = 20000, ttl = 60000 })
          run(function()
            local held, threads = assert(other:acquire("r")), {}
            for index = 1, 3 do threads[index] = start_to_wait(client) end
            sleep(0.3)
            for index = 1, 3 do assert(coroutine.close(threads[index])) end -- luacheck: ignore
            threads = nil -- luacheck: ignore
            collectgarbage()
            collectgarbage()
            assert(held:release())
          end)
          run(function()
            client:close()
            other:close()
          end)
        end)

      it("closed_coroutine_stops_waiting_while_another_client_holds_lock" .. how, function()
        farm:reset()
        for _, node in ipairs(farm) do node:command("SET", "r", "theirs") end
        local client = redlock.new(farm.addresses, { notify = notify, node_timeout = 20000 })
        collectgarbage("stop")
        finally(function() collectgarbage("restart") end)
        run(function() -- The loop ends by itself, in less than the budget of the acquire.
          local thread = coroutine.create(function() client:acquire("r", { wait = 1000000 }) end)
          assert(coroutine.resume(thread))
          sleep(0.05)
          assert(coroutine.close(thread)) -- luacheck: ignore
        end)
        run(function() client:close() end)
      end)

      it("closed_waiter_blocks_no_other_waiter" .. how, function()
        farm:reset()
        local options = { notify = notify, ttl = 60000, node_timeout = 20000 }
        local client, other = redlock.new(farm.addresses, options), redlock.new(farm.addresses, options)
        collectgarbage("stop")
        finally(function() collectgarbage("restart") end)
        run(function()
          local held, first = assert(other:acquire("r")), start_to_wait(client)
          local lock
          coroutine.wrap(function() lock = client:acquire("r", { wait = 60000 }) end)()
          sleep(0.05)
          assert(coroutine.close(first)) -- luacheck: ignore
          assert(held:release())
          repeat sleep(0.005) until lock
          assert(lock:release())
          client:close()
          other:close()
        end)
        assert.are.equal(0, farm:count("r"))
      end)
    end
  end

  it("coroutines_resume_by_vim_schedule_in_neovim", function()
    local output, ok = helper.run_script([[
      local uv = require "luv"
      local scheduled = 0
      vim = { uv = uv, schedule = function(fn) -- a stand-in
        scheduled = scheduled + 1
        local timer = uv.new_timer()
        timer:start(0, 0, function()
          timer:close()
          fn()
        end)
      end }
      package.preload.luv = function() error("not this one") end
      package.loaded.luv = nil
      local client = require("redlock.luv").new({ ... }, { node_timeout = 20000 })
      local count = 0
      for index = 1, 20 do
        coroutine.wrap(function()
          for _ = 1, 5 do
            local lock = assert(client:acquire("r" .. index))
            assert(lock:release())
            count = count + 1
          end
        end)()
      end
      uv.run()
      coroutine.wrap(function() client:close() end)()
      uv.run()
      print(count, scheduled > 0, scheduled < 200)
    ]], unpack(farm.addresses))
    assert.is_true(ok, output)
    assert.are.equal("100	true	true", output)
  end)

  it("credentials_function_waits_in_its_own_coroutine", function()
    farm:reset()
    for _, node in ipairs(farm) do node:command("ACL", "SETUSER", "token", "reset", "on", ">s3cr3t", "~*", "+@all") end
    local function acquire(answer)
      local client = redlock.new(farm.addresses, {
        node_timeout = 20000, retry_count = 0,
        credentials = function()
          sleep(0.01)
          return answer()
        end,
      })
      local lock, message
      run(function()
        lock, message = client:acquire("r")
        client:close()
      end)
      return lock, message
    end
    assert(acquire(function() return "token", "s3cr3t" end))
    local _, message = acquire(function() error("no network", 0) end)
    assert.is_truthy(message:find("it got no credentials: no network", 1, true), message)
  end)
end)
