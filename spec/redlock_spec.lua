local behaviour = require "spec.behaviour"
local helper = require "spec.helper"
local redlock = require "redlock"

describe("redlock", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  behaviour("blocking calls", {
    blocks = true,
    new = redlock.new,
    run = function(fn) fn() end,
    pump = function(client) client:process() end,
    idle = function(client)
      client:process()
      require("socket").sleep(0.005)
    end,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  it("module_has_a_version", function()
    assert.is_truthy(redlock.VERSION:match("^%d+%.%d+%.%d+"))
  end)

  it("new_client_connects_to_no_node", function()
    local client = redlock.new({ "127.0.0.1:" .. helper.free_port(), "name.invalid", "unix:///no/such" })
    assert.is_userdata(client:new_lock("r"))
    for _, node in ipairs(client:nodes()) do assert.are.equal("down", node.state) end
    client:close()
  end)

  it("module_loads_under_strict_lua", function()
    local output, ok = helper.run_script([[
      setmetatable(_G, {
        __index = function(_, name) error("undeclared variable '" .. tostring(name) .. "'", 2) end,
        __newindex = function(_, name) error("undeclared variable '" .. tostring(name) .. "'", 2) end,
      })
      io.write(tostring(require("redlock").new({ "127.0.0.1:1" })))
    ]])
    assert.are.equal("redlock.client (0 of 1 nodes connected)", (output:gsub("%s+$", "")))
    assert.is_truthy(ok)
  end)

  it("metatables_are_hidden", function()
    local client = redlock.new(farm.addresses)
    local lock = client:new_lock("r")
    assert.are.equal("redlock.client", getmetatable(client))
    assert.are.equal("redlock.lock", getmetatable(lock))
    assert.is_nil(lock.__gc)
    assert.is_nil(client.__gc)
    assert.is_false((pcall(setmetatable, lock, {})))
  end)

  it("node_tables_keep_passwords_out_of_messages", function()
    farm:reset()
    local secured = helper.farm(1, "--requirepass hunter2secret")
    local client = redlock.new({ { host = "127.0.0.1", port = secured[1].port, password = "hunter2secret" } },
      { node_timeout = 20000 })
    local lock = assert(client:acquire("r"))
    assert(lock:release())
    local wrong = redlock.new({ "redis://:wrongsecret@" .. secured[1].address }, { retry_count = 0 })
    local refused = wrong:new_lock("r")
    local _, message, code = refused:acquire()
    assert.are.equal("unavailable", code)
    local texts = { message, tostring(wrong), tostring(refused) }
    for _, entry in ipairs(wrong:nodes()) do
      texts[#texts + 1] = entry.node
      texts[#texts + 1] = entry.error
    end
    for _, entry in ipairs(refused:votes()) do
      texts[#texts + 1] = entry.node
      texts[#texts + 1] = entry.error
    end
    assert.is_nil(table.concat(texts, "\n"):find("wrongsecret", 1, true))
    client:close()
    wrong:close()
    secured:shut()
  end)

  it("result_of_release_without_waiting_arrives_by_asking", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local lock = assert(client:acquire("r"))
    assert(lock:release({ wait = false }))
    helper.eventually(function() return (lock:result()) end, "the result of the release")
    assert.are.equal(0, farm:count("r"))
    client:close()
  end)

  it("client_is_driven_without_blocking", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local lock = client:new_lock("r")
    assert.has_error(function() return lock:result() end)
    assert.are.equal("r", client:events())
    assert.is_number(client:pollfd())

    local function drive()
      local _, _, code = lock:result()
      assert.are.equal("pending", code)
      helper.eventually(function()
        assert(client:process())
        local timeout = client:timeout()
        assert.is_truthy(timeout == nil or timeout >= 0)
        return select(3, lock:result()) ~= "pending"
      end)
      return lock:result()
    end

    assert.is_true((lock:start("acquire", { ttl = 60000 })))
    assert.are.equal("redlock.lock r (acquiring)", tostring(lock))
    assert.are.equal(0, client:timeout())
    assert.is_true(drive() > 30000)
    assert.are.equal("held", select(3, lock:start("acquire")))
    assert.is_true((lock:start("extend", 120000)))
    assert.is_true(drive() > 60000)
    assert.is_true((lock:start("release")))
    assert.is_true((drive()))
    farm:eventually_free("r")
    assert.are.equal("not_held", select(3, lock:start("release")))

    assert(lock:start("acquire"))
    client:process()
    lock:cancel()
    assert.are.equal("cancelled", select(3, lock:result()))
    helper.eventually(function()
      client:process()
      return farm:count("r") == 0
    end)
    client:close()
    assert.are.equal("closed", select(3, lock:start("acquire")))
  end)

  -- What has been decided is asked for later, and by then the lease may be over.
  it("result_of_expired_lease_is_nil", function()
    farm:reset()
    local core = require "redlock.core"
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    helper.warm(client, farm, client.process)
    local lock = client:new_lock("r", { ttl = 200 })
    for _, operation in ipairs { "acquire", "extend" } do
      helper.eventually(function() -- On a slow machine the lease may end before that.
        if operation == "extend" and not lock:acquire() then return false end
        assert(lock:start(operation))
        helper.eventually(function()
          client:process()
          return not core.pending(lock)
        end)
        if lock:is_held() then return true end
        lock:result()
        lock:release()
      end, "a lock that is held when its " .. operation .. " has ended")
      helper.eventually(function() return lock:remaining() == 0 end)
      assert.is_truthy(tostring(lock):find("(not held)", 1, true)) -- looking changes nothing
      for _ = 1, 2 do
        local result, message, code = lock:result()
        assert.is_nil(result)
        assert.are.equal("expired", code)
        assert.is_truthy(message:find("'r'", 1, true), message)
      end
      assert.are.equal("not_held", select(3, lock:release()))
      helper.eventually(function()
        client:process()
        return farm:count("r") == 0
      end)
    end
    client:close()
  end)

  -- Lua counts whole milliseconds, rounded down: a begun one is none.
  it("acquire_without_a_whole_millisecond_left_is_nil", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    helper.warm(client, farm, client.process)
    -- 4 - (4 x 0.249 + 2) ms leave a millisecond and four microseconds, of which the round takes
    -- some.
    local lock = client:new_lock("r", { ttl = 4, drift_factor = 0.249 })
    for _ = 1, 20 do
      local validity, message, code = lock:acquire()
      assert.is_nil(validity)
      if code ~= "unavailable" then -- A slow machine may not even begin in 4 ms.
        assert.are.equal("expired", code)
        assert.is_truthy(message:find("too late for a ttl of 4 ms", 1, true), message)
      end
      assert.are.equal("not_held", select(3, lock:release()))
    end
    -- A millisecond more or less is left of these when the round is over.
    for round = 1, 100 do
      local some = client:new_lock("r" .. round, { ttl = 6, drift_factor = 0.45 })
      local validity, _, code = some:acquire()
      assert.is_true(validity == nil or validity >= 1, "validity " .. tostring(validity))
      if not validity then
        assert.is_true(code == "expired" or code == "unavailable", code)
        assert.is_false(some:is_held())
      end
      local none, _, why = client:acquire("s" .. round, { ttl = 4, drift_factor = 0.249 })
      assert.is_nil(none)
      assert.is_true(why == "expired" or why == "unavailable", why) -- A slow machine may not even begin in 4 ms.
    end
    client:close()
  end)

  it("with_releases_after_function_left_operation_in_flight", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
    local results = { client:with("r", function(lock)
      assert(lock:start("extend", 30000))
      client:process()
      return "done"
    end) }
    assert.are.same({ true, "done" }, results)
    local ok, err = pcall(client.with, client, "r", function(lock)
      assert(lock:start("extend", 30000))
      error("the function's own", 0)
    end)
    assert.is_false(ok)
    assert.are.equal("the function's own", err)
    helper.eventually(function()
      client:process()
      return farm:count("r") == 0
    end)
    client:close()
  end)

  it("second_operation_of_lock_is_raised_at_callers_line", function()
    farm:reset()
    local client = redlock.new(farm.addresses)
    local lock = client:new_lock("r")
    assert(lock:start("acquire"))
    for _, name in ipairs { "acquire", "start", "release", "extend" } do
      local function twice() local result = lock[name](lock, name == "start" and "acquire" or nil) return result end
      local ok, err = pcall(twice)
      assert.is_false(ok)
      local line = debug.getinfo(twice, "S").linedefined
      assert.is_truthy(err:match("redlock_spec%.lua:" .. line .. ": redlock: "), err)
    end
    lock:cancel()
    client:close()
  end)

  it("lock_delay_is_not_part_of_remaining", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local lock = assert(client:acquire("r", { ttl = 20000, lock_delay = 60000 }))
    assert.is_true(lock:remaining() < 20000)
    helper.eventually(function()
      client:process()
      return farm[1]:command("PTTL", "r") > 40000
    end, "a key on the first node that lives longer than the lease")
    client:close()
  end)

  -- luaposix is not there for every Lua; where it is not, this test does not exist.
  local loaded, unistd = pcall(require, "posix.unistd")
  if loaded then
    it("forked_child_holds_nothing", function()
      farm:reset()
      local wait = require "posix.sys.wait"
      local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
      local lock = assert(client:acquire("r"))
      local token = lock:token()
      helper.eventually(function()
        client:process()
        return farm:count("r", token) == 5
      end)
      local child = unistd.fork()
      if child == 0 then
        local fine = pcall(function()
          assert(not lock:is_held() and lock:remaining() == 0)
          assert(select(3, lock:release()) == "not_held")
          assert(select(3, lock:extend()) == "not_held")
          assert(select(3, client:acquire("r")) == "taken")
          local own = assert(client:acquire("child"))
          assert(own:release())
          lock = nil
          collectgarbage()
          client:close()
        end)
        unistd._exit(fine and 0 or 1)
      end
      local _, _, status = wait.wait(child)
      assert.are.equal(0, status)
      assert.is_true(lock:is_held())
      assert.are.equal(5, farm:count("r", token))
      assert(lock:extend())
      assert(lock:release())
      farm:eventually_free("r")
      client:close()
    end)

    -- What a child's first call on what it has inherited returns. `held` is a lock that its parent
    -- holds, `busy` one that its parent is acquiring.
    local first_calls = {
      ["client:new_lock"] = function(client) return type(client:new_lock("x")) == "userdata" end,
      ["client:acquire"] = function(client) return client:acquire("child"):is_held() end,
      ["client:acquire of what the parent holds"] = function(client)
        return select(3, client:acquire("held", { retry_count = 0 })) == "taken"
      end,
      ["client:with"] = function(client) return client:with("child", function(own) return own:is_held() end) end,
      ["client:lead"] = function(client)
        return client:lead("led", function(term) return "resign", term:is_held() end) == true
      end,
      ["client:leader"] = function(client) return client:leader("held").ttl > 0 end,
      ["client:nodes"] = function(client)
        for _, node in ipairs(client:nodes()) do
          if node.state ~= "down" then return false end
        end
        return #client:nodes() == 5
      end,
      ["client:attach"] = function(client) return select(3, client:attach("no such text")) == "lost" end,
      ["lock:detach"] = function(_, held) return select(3, held:detach()) == "not_held" end,
      ["lock:fence"] = function(_, held) return held:fence() == nil end,
      ["lock:slot"] = function(_, held) return held:slot() == nil end,
      ["client:inspect"] = function(client) return #client:inspect("held").holder == 40 end,
      ["client:bootstrap"] = function(client) return not pcall(client.bootstrap, client) end,
      ["client:doctor"] = function(client) return #client:doctor() >= 5 end,
      ["client:stats"] = function(client) return client:stats().attempts == 0 and client:stats().held == 0 end,
      ["client:force_release"] = function(client)
        return select(3, client:force_release("held", "not the token")) == "not_held"
      end,
      ["client:close"] = function(client) return client:close() == true end,
      ["client:pollfd"] = function(client) return client:pollfd() == nil or client:pollfd() >= 0 end,
      ["client:events"] = function(client) return client:events() == "r" end,
      ["client:timeout"] = function(client) return client:timeout() == nil or client:timeout() >= 0 end,
      ["client:process"] = function(client) return client:process() == true end,
      ["client:next_ended"] = function(client, _, busy)
        return client:next_ended() == busy and client:next_ended() == nil
      end,
      ["tostring(client)"] = function(client) return tostring(client) == "redlock.client (0 of 5 nodes connected)" end,
      ["lock:acquire"] = function(_, held) return select(3, held:acquire({ retry_count = 0 })) == "taken" end,
      ["lock:acquire of what was in flight"] = function(_, _, busy) return busy:acquire() == nil or busy:is_held() end,
      ["lock:extend"] = function(_, held) return select(3, held:extend()) == "not_held" end,
      ["lock:release"] = function(_, held) return select(3, held:release()) == "not_held" end,
      ["lock:release without waiting"] = function(_, held)
        return select(3, held:release({ wait = false })) == "not_held"
      end,
      ["lock:release of what was in flight"] = function(_, _, busy)
        return select(3, busy:release()) == "not_held"
      end,
      ["lock:remaining"] = function(_, held) return held:remaining() == 0 end,
      ["lock:is_held"] = function(_, held) return held:is_held() == false end,
      ["lock:lost"] = function(_, held) return held:lost() == nil end,
      ["lock:margin"] = function(_, held) return held:margin() == nil end,
      ["lock:check"] = function(_, held) return not pcall(held.check, held) end,
      ["lock:resource"] = function(_, held) return held:resource() == "held" end,
      ["lock:resources"] = function(_, held) return held:resources()[1] == "held" end,
      ["lock:token"] = function(_, held) return held:token() == nil end,
      ["lock:ttl"] = function(_, held) return held:ttl() == 10000 end,
      ["lock:votes"] = function(_, held) return #held:votes() == 5 end,
      ["tostring(lock)"] = function(_, held) return tostring(held) == "redlock.lock held (not held)" end,
      ["lock:start acquire"] = function(_, held) return held:start("acquire") == true end,
      ["lock:start extend"] = function(_, held) return select(3, held:start("extend")) == "not_held" end,
      ["lock:start release"] = function(_, held) return select(3, held:start("release")) == "not_held" end,
      ["lock:result"] = function(_, held) return held:result() == nil end,
      ["lock:result of what was in flight"] = function(_, _, busy)
        return select(3, busy:result()) == "cancelled"
      end,
      ["lock:cancel"] = function(_, held) return held:cancel() == nil end,
      ["lock:cancel of what was in flight"] = function(_, _, busy)
        busy:cancel()
        return select(3, busy:result()) == "cancelled"
      end,
      ["the collector"] = function() return collectgarbage() and true end,
    }

    it("each_function_works_as_first_call_of_forked_child", function()
      farm:reset()
      local wait = require "posix.sys.wait"
      for name, call in pairs(first_calls) do
        local client = redlock.new(farm.addresses, { node_timeout = 20000 })
        helper.warm(client, farm, client.process)
        local held, busy = assert(client:acquire("held")), client:new_lock("busy")
        local token = held:token()
        helper.eventually(function()
          client:process()
          return farm:count("held", token) == 5
        end)
        assert(busy:start("acquire"))
        if name:find("in flight", 1, true) then
          for index = 1, 3 do farm[index]:stop() end
          client:process()
        else
          helper.eventually(function()
            client:process()
            return busy:is_held()
          end)
        end
        local child = unistd.fork()
        if child == 0 then
          for index = 1, 3 do
            if farm[index].stopped and not name:find("cancel", 1, true) then farm[index]:signal("CONT") end
          end
          if name == "the collector" then held, busy, client = nil, nil, nil end
          local ok, fine = pcall(call, client, held, busy)
          if ok and fine == true then
            held, busy, client = nil, nil, nil -- luacheck: ignore
            collectgarbage()
            collectgarbage()
            unistd._exit(0)
          end
          io.stderr:write(name, ": ", tostring(fine), "\n")
          unistd._exit(1)
        end
        local _, _, status = wait.wait(child)
        for index = 1, 3 do
          if farm[index].stopped then farm[index]:continue() end
        end
        assert.are.equal(0, status, name)
        assert.is_true(held:is_held(), name)
        assert.are.equal(5, farm:count("held", token), name)
        helper.eventually(function()
          client:process()
          return select(3, busy:result()) ~= "pending"
        end)
        assert.is_true(busy:is_held(), name)
        assert.is_true(farm:count("busy", busy:token()) >= 3, name)
        assert(held:extend(), name)
        assert(held:release(), name)
        assert(busy:release(), name)
        client:close()
        farm:eventually_free("child")
      end
    end)

    it("first_calls_of_forked_child_cover_all_functions", function()
      local core = require "redlock.core"
      for noun, methods in pairs { client = core.client_methods, lock = core.lock_methods } do
        for method in pairs(methods) do
          local found = false
          for name in pairs(first_calls) do
            found = found or name:find(noun .. ":" .. method, 1, true) == 1
          end
          -- lock() only raises; messages_spec has its sentence.
          assert.is_true(found or method == "hand_over" or method == "lock", noun .. ":" .. method)
        end
      end
    end)
  end
end)
