--- Who waits is called by the nodes: what every driver has to do about that, whatever it waits with.
---
--- calls_behaviour(title, { new = , run = , farm = , describe = , it = }), as in spec/behaviour.lua. Other processes
--- (spec/calls_partner.lua) hold what is waited for.

local assert = require "luassert"
local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

-- Of the defaults, which is 100 ms and more: what is had after less was not polled for.
local DELAY = 0.1

-- Inside nginx the directory is another one.
local PARTNER = debug.getinfo(1, "S").source:sub(2):gsub("calls_behaviour", "calls_partner")

local partners = 0

return function(title, driver)
  local describe, it, run = driver.describe, driver.it, driver.run
  local farm

  local function test(name, fn)
    it(name, function()
      helper.limit(30)
      farm = driver.farm()
      farm:reset()
      run(fn)
    end)
  end

  local function is_running(pid)
    local status = os.execute("kill -0 " .. pid .. " 2>/dev/null")
    return status == true or status == 0
  end

  -- Another process that takes the lock again and again.
  local function start_partner(resource, hold)
    partners = partners + 1
    local directory = helper.directory .. "/partner-" .. partners .. "-" .. helper.free_port()
    os.execute("mkdir " .. directory)
    local pid = helper.start_file(PARTNER, directory .. "/output", directory, resource,
      tostring(hold), "{}", unpack(farm.addresses))
    local partner = {}
    function partner.had()
      local file = io.open(directory .. "/had")
      local text = file and file:read("*a") or ""
      if file then file:close() end
      return select(2, text:gsub("\n", ""))
    end
    function partner.stop()
      helper.write_file(directory .. "/stop", "")
      helper.eventually(function() return not is_running(pid) end, "the other process to end")
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

  local function median(values)
    table.sort(values)
    return values[math.ceil(#values / 2)]
  end

  -- For how long each of so many acquires has waited, half of them less than what is returned.
  local function waits(client, resource, count, options)
    local took = {}
    for index = 1, count do
      local began = helper.now()
      local lock = assert(client:acquire(resource, options))
      took[index] = helper.now() - began
      assert(lock:release())
    end
    return median(took)
  end

  -- How many connections of a node listen to calls.
  local function listeners(node)
    local _, count = node:command("CLIENT", "LIST"):gsub(" sub=1 ", "")
    return count
  end

  local function calling(client)
    local count = 0
    for _, node in ipairs(client:nodes()) do
      assert.is_boolean(node.calls)
      if node.calls then count = count + 1 end
    end
    return count
  end

  local function take_on_all(key, ...)
    for _, node in ipairs(farm) do assert(node:command("SET", key, "somebody's", ...)) end
  end

  -- A wait that is over when its budget is.
  local function wait_in_vain(client, key, options)
    options = options or {}
    options.wait = options.wait or 300
    local lock, _, code = client:acquire(key, options)
    assert.is_nil(lock)
    assert.are.equal("taken", code)
  end

  describe(title, function()
    test("who waits is called when the lock is free, long before the delay is over", function()
      helper.one_of_three(function()
        local client = driver.new(farm.addresses)
        with_partner("hand", 20, function()
          local waited = waits(client, "hand", 15, { wait = 5000 })
          assert.is_true(waited < DELAY / 2, waited * 1000 .. " ms")
        end)
        assert.are.equal(5, calling(client))
        client:close()
      end)
      for _, node in ipairs(farm) do
        helper.eventually(function() return listeners(node) == 0 end, "the second connections to end")
        helper.eventually(function()
          return node:command("EXISTS", "hand", "hand:redlock-queue") == 0
        end, "the key and its queue to be gone")
      end
    end)

    test("notify = false polls, and makes no second connections", function()
      take_on_all("theirs")
      local client = driver.new(farm.addresses, { notify = false })
      wait_in_vain(client, "theirs")
      assert.are.equal(0, listeners(farm[1]))
      assert.are.equal(0, calling(client))
      client:close()
      client = driver.new(farm.addresses)
      wait_in_vain(client, "theirs", { notify = false })
      assert.are.equal(0, listeners(farm[1]))
      wait_in_vain(client, "theirs", { notify = "auto" })
      assert.are.equal(1, listeners(farm[1]))
      assert.are.equal(5, calling(client))
      assert.is_nil(client:nodes()[1].calls_error)
      client:close()
    end)

    test("who gives up leaves the queues of all nodes", function()
      take_on_all("theirs")
      local client = driver.new(farm.addresses)
      wait_in_vain(client, "theirs")
      wait_in_vain(client, "theirs")
      assert.are.equal(5, calling(client))
      for _, node in ipairs(farm) do
        helper.eventually(function()
          if driver.idle then driver.idle(client) end -- Inside nginx others send it.
          return node:command("STRLEN", "theirs:redlock-queue") == 0
        end, "an empty queue")
      end
      client:close()
    end)

    test("polls with more than sixteen nodes, where each would have two connections", function()
      local addresses = {}
      for index = 1, 17 do addresses[index] = "127.0.0.1:" .. index end
      local client = driver.new(addresses, { fair = true })
      assert.is_nil((client:acquire("many", { wait = 50, retry_delay = 5 })))
      assert.are.equal(0, calling(client))
      client:close()
    end)

    -- What a user may do besides all commands on all keys.
    local function with_user(rights, fn)
      for _, node in ipairs(farm) do
        assert(node:command("ACL", "SETUSER", "limited", "reset", "on", ">secret", "+@all", unpack(rights)))
      end
      local ok, err = pcall(fn, driver.new(farm.addresses, { username = "limited", password = "secret" }))
      for _, node in ipairs(farm) do node:command("ACL", "DELUSER", "limited") end
      if not ok then error(err, 0) end
    end

    for what, rights in pairs {
      ["the channels"] = { "~*", "resetchannels" },
      ["the queue"] = { "~hand", "~theirs", "allchannels" },
    } do
      test("polls where a user has no right to " .. what .. ", and nodes() says why", function()
        with_user(rights, function(client)
          with_partner("hand", 20, function()
            for _ = 1, 3 do
              local lock = assert(client:acquire("hand", { wait = 5000, retry_delay = 10, retry_jitter = 5 }))
              assert(lock:release())
            end
          end)
          take_on_all("theirs")
          wait_in_vain(client, "theirs")
          assert.are.equal(0, calling(client))
          for _, node in ipairs(client:nodes()) do
            assert.are.equal("up", node.state)
            local why = tostring(node.calls_error)
            local says = why:find("NOPERM", 1, true) or why:find("can't access", 1, true)
            says = says or why:find("may not call", 1, true)
            assert.is_truthy(says, why)
          end
          client:close()
        end)
      end)
    end

    test("a function says as whom to log in for the second connections, too, and is told the node", function()
      local asked = {}
      with_user({ "~*", "allchannels" }, function(unused)
        unused:close()
        local client = driver.new(farm.addresses, {
          credentials = function(node, index)
            assert.are.equal(farm.addresses[index], node)
            asked[index] = (asked[index] or 0) + 1
            return "limited", "secret"
          end,
        })
        take_on_all("theirs")
        wait_in_vain(client, "theirs")
        wait_in_vain(client, "theirs")
        assert.are.equal(5, calling(client))
        assert.are.same({ 2, 2, 2, 2, 2 }, asked)
        client:close()
      end)
    end)

    test("the lock of a holder that was killed is had when its key has ended", function()
      local client = driver.new(farm.addresses)
      helper.one_of_three(function()
        local began = helper.now()
        take_on_all("killed", "PX", "600")
        local lock = assert(client:acquire("killed", { wait = 5000, retry_delay = 3000 }))
        local after = helper.now() - began - 0.6
        assert(lock:release())
        assert.is_true(after < 0.05, after * 1000 .. " ms after the key's end")
      end)
      client:close()
    end)

    test("fair: who comes later does not overtake who waits", function()
      helper.one_of_three(function()
        local holder, late = driver.new(farm.addresses), driver.new(farm.addresses)
        take_on_all("theirs")
        wait_in_vain(late, "theirs") -- From now on it can be called.
        assert.are.equal(5, calling(late))
        local first = assert(holder:acquire("turn"))
        local partner = start_partner("turn", 60)
        local ok, err = pcall(function()
          for _, node in ipairs(farm) do
            helper.eventually(function() return node:command("STRLEN", "turn:redlock-queue") == 24 end, "a queue")
          end
          assert(first:release())
          local began = helper.now()
          local second = assert(late:acquire("turn", { wait = 5000, fair = true }))
          local waited = helper.now() - began
          assert(second:release())
          assert.is_true(waited > 0.05, "overtaken after " .. waited * 1000 .. " ms")
        end)
        partner.stop()
        holder:close()
        late:close()
        if not ok then error(err, 0) end
      end)
    end)

    test("nodes that hang, end and come back while somebody waits", function()
      local client = driver.new(farm.addresses)
      with_partner("hand", 20, function(partner)
        assert(waits(client, "hand", 5, { wait = 5000 }))
        farm[1]:stop()
        farm[2]:kill()
        for _ = 1, 10 do
          local lock = assert(client:acquire("hand", { wait = 5000 }))
          assert(lock:release())
        end
        farm[1]:continue()
        farm[2]:restart()
        helper.eventually(function()
          local lock = assert(client:acquire("hand", { wait = 5000 }))
          assert(lock:release())
          return calling(client) == 5
        end, "all nodes to call again")
        local had = partner.had()
        helper.eventually(function() return partner.had() > had end, "the other process to have its turn")
      end)
      client:close()
    end)
  end)
end
