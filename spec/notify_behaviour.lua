--- Notifications: the duties of every driver, whatever it waits with.
---
--- notify_behaviour(title, driver), as in spec/behaviour.lua. Other processes
--- (spec/notify_partner.lua) hold what is waited for. A client polls once a minute here, so that an
--- acquire that ends within seconds has been notified, however slow the machine is.

local assert = require "luassert"
local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

local SELDOM = 60000 -- milliseconds between two polls
local SOON = 20 -- seconds, in which no client has polled

-- Inside nginx the directory is another one.
local PARTNER = debug.getinfo(1, "S").source:sub(2):gsub("notify_behaviour", "notify_partner")

local partners = 0

return function(title, driver)
  local describe, it, run = driver.describe, driver.it, driver.run
  local farm

  local function test(name, fn)
    it(name, function()
      farm = driver.farm()
      farm:reset()
      run(fn)
    end)
  end

  -- Declares a test that does not depend on the driver.
  local once = driver.blocks and test or function() end

  local function new(options)
    options = options or {}
    options.node_timeout = options.node_timeout or 30000
    options.retry_delay, options.poll_interval = options.retry_delay or SELDOM, options.poll_interval or SELDOM
    return driver.new(farm.addresses, options)
  end

  -- Another process that takes the lock again and again. It waits for it for `wait` milliseconds at
  -- most.
  local function start_partner(resource, hold, wait)
    partners = partners + 1
    local directory = helper.directory .. "/partner-" .. partners .. "-" .. helper.free_port()
    os.execute("mkdir " .. directory)
    local pid = helper.start_file(PARTNER, directory .. "/output", directory, resource,
      tostring(hold), tostring(wait or 500), "{ node_timeout = 30000 }", unpack(farm.addresses))
    local partner = {}
    function partner.had()
      local file = io.open(directory .. "/had")
      local text = file and file:read("*a") or ""
      if file then file:close() end
      return select(2, text:gsub("\n", ""))
    end
    function partner.stop()
      helper.write_file(directory .. "/stop", "")
      helper.eventually(function() return helper.is_gone(pid) end, "the other process to end")
    end
    return partner
  end

  local function with_partner(resource, hold, fn)
    local partner = start_partner(resource, hold)
    local ok, err = pcall(function()
      helper.eventually(function() return partner.had() > 0 end, "another process to have had the lock")
      fn(partner)
    end)
    partner.stop()
    if not ok then error(err, 0) end
  end

  -- Acquires and releases so often, and returns the seconds that it has taken.
  local function take_turns(client, resource, count)
    local began = helper.now()
    for _ = 1, count do assert(assert(client:acquire(resource, { wait = 2 * SELDOM })):release()) end
    return helper.now() - began
  end

  -- Returns the number of subscribers of a node.
  local function subscribers(node)
    local _, count = node:command("CLIENT", "LIST"):gsub(" sub=1 ", "")
    return count
  end

  local function notifying(client)
    local count = 0
    for _, node in ipairs(client:nodes()) do
      assert.is_boolean(node.notifies)
      if node.notifies then count = count + 1 end
    end
    return count
  end

  local function take_on_all(key, ...)
    for _, node in ipairs(farm) do assert(node:command("SET", key, "theirs", ...)) end
  end

  -- Waits until the budget is over. On a slow machine the first may end before the nodes have
  -- answered.
  local function wait_in_vain(client, key, options)
    options = options or {}
    options.wait = options.wait or 200
    helper.eventually(function()
      local lock, _, code = client:acquire(key, options)
      assert.is_nil(lock)
      return code == "taken"
    end, "the lock to be refused")
  end

  -- Waits until all nodes can notify the client.
  local function await_notifications(client, key)
    helper.eventually(function()
      wait_in_vain(client, key)
      return notifying(client) == #farm
    end, "all nodes to notify")
  end

  describe(title, function()
    test("waiter_is_notified_long_before_poll_interval", function()
      take_on_all("theirs")
      local client = new()
      await_notifications(client, "theirs")
      with_partner("hand", 20, function()
        local took = take_turns(client, "hand", 8)
        assert.is_true(took < SOON, took .. " s")
      end)
      client:close()
      for _, node in ipairs(farm) do
        helper.eventually(function() return subscribers(node) == 0 end, "the second connections to end")
        helper.eventually(function()
          return node:command("EXISTS", "hand", "hand:redlock-queue") == 0
        end, "the key and its queue to be gone")
      end
    end)

    test("notify_false_polls_without_second_connections", function()
      take_on_all("theirs")
      local client = new({ notify = false })
      wait_in_vain(client, "theirs")
      assert.are.equal(0, subscribers(farm[1]))
      assert.are.equal(0, notifying(client))
      client:close()
      client = new()
      wait_in_vain(client, "theirs", { notify = false })
      assert.are.equal(0, subscribers(farm[1]))
      await_notifications(client, "theirs")
      assert.are.equal(1, subscribers(farm[1]))
      assert.is_nil(client:nodes()[1].notify_error)
      client:close()
    end)

    test("waiter_that_gives_up_dequeues_on_all_nodes", function()
      take_on_all("theirs")
      local client = new()
      await_notifications(client, "theirs")
      for _, node in ipairs(farm) do
        helper.eventually(function()
          if driver.idle then driver.idle(client) end -- Inside nginx the driver sends it.
          return node:command("STRLEN", "theirs:redlock-queue") == 0
        end, "an empty queue")
      end
      client:close()
    end)

    once("client_of_seventeen_nodes_polls", function()
      local addresses = {}
      for index = 1, 17 do addresses[index] = "127.0.0.1:" .. index end
      local client = driver.new(addresses, { fair = true })
      assert.is_nil((client:acquire("many", { wait = 50, retry_delay = 5 })))
      assert.are.equal(0, notifying(client))
      client:close()
    end)

    -- Runs `fn` as a user with `rights` in addition to all commands.
    local function with_user(rights, fn)
      for _, node in ipairs(farm) do
        assert(node:command("ACL", "SETUSER", "limited", "reset", "on", ">secret", "+@all", unpack(rights)))
      end
      local options = { username = "limited", password = "secret", node_timeout = 30000 }
      local ok, err = pcall(fn, driver.new(farm.addresses, options))
      for _, node in ipairs(farm) do node:command("ACL", "DELUSER", "limited") end
      if not ok then error(err, 0) end
    end

    -- Servers differ in their words, and agree in the code and in the name of a command.
    for what, case in pairs {
      ["the channels"] = { rights = { "~*", "resetchannels" }, says = "^NOPERM " },
      ["SUBSCRIBE"] = { rights = { "~*", "allchannels", "-subscribe" }, says = "^NOPERM .*'subscribe'" },
      ["the queue"] = { rights = { "~hand", "~theirs", "allchannels" }, says = "^ERR " },
    } do
      once("user_without_right_polls_and_nodes_reports_why: " .. what, function()
        with_user(case.rights, function(client)
          with_partner("hand", 20, function()
            local lock = assert(client:acquire("hand", { wait = SELDOM, retry_delay = 10, retry_jitter = 5 }))
            assert(lock:release())
          end)
          take_on_all("theirs")
          wait_in_vain(client, "theirs")
          assert.are.equal(0, notifying(client))
          for _, node in ipairs(client:nodes()) do
            assert.are.equal("up", node.state)
            local why = tostring(node.notify_error)
            local says = why:find(case.says) or why:find("may not notify", 1, true) -- which a release may say later
            assert.is_truthy(says, why)
          end
          client:close()
        end)
      end)
    end

    test("credentials_function_serves_second_connections", function()
      local asked = {}
      with_user({ "~*", "allchannels" }, function(unused)
        unused:close()
        local client = new({
          credentials = function(node, index)
            assert.are.equal(farm.addresses[index], node)
            asked[index] = (asked[index] or 0) + 1
            return "limited", "secret"
          end,
        })
        take_on_all("theirs")
        await_notifications(client, "theirs")
        assert.are.same({ 2, 2, 2, 2, 2 }, asked)
        client:close()
      end)
    end)

    test("waiter_acquires_when_key_of_killed_holder_expires", function()
      local client, began = new(), helper.now()
      take_on_all("killed", "PX", "400")
      assert(assert(client:acquire("killed", { wait = 2 * SELDOM })):release())
      local took = helper.now() - began
      assert.is_true(took < SOON, took .. " s")
      client:close()
    end)

    test("fair_acquire_does_not_overtake_a_waiter", function()
      local holder, late = new(), new()
      take_on_all("theirs")
      await_notifications(late, "theirs")
      local first = assert(holder:acquire("turn", { ttl = 120000 }))
      local partner = start_partner("turn", 20, SELDOM)
      local ok, err = pcall(function()
        for _, node in ipairs(farm) do
          helper.eventually(function() return node:command("STRLEN", "turn:redlock-queue") == 24 end, "a queue")
        end
        assert(first:release())
        local second = assert(late:acquire("turn", { wait = 2 * SELDOM, fair = true }))
        assert.is_true(partner.had() > 0, "the other process was overtaken")
        assert(second:release())
      end)
      partner.stop()
      holder:close()
      late:close()
      if not ok then error(err, 0) end
    end)

    test("waiters_are_notified_while_nodes_hang_end_and_return", function()
      local client = driver.new(farm.addresses, { node_timeout = 2000 })
      with_partner("hand", 20, function(partner)
        take_turns(client, "hand", 3)
        farm[1]:stop()
        farm[2]:kill()
        take_turns(client, "hand", 5)
        farm[1]:continue()
        farm[2]:restart()
        helper.eventually(function()
          take_turns(client, "hand", 1)
          return notifying(client) == 5
        end, "all nodes to notify again")
        local had = partner.had()
        helper.eventually(function() return partner.had() > had end, "the other process to have its turn")
      end)
      client:close()
    end)
  end)
end
