-- Users and passwords at real servers: every byte, rotated ones, and those that a function brings.

local redlock = require "redlock"
local helper = require "spec.helper"

local EVERY_BYTE = {}
for byte = 0, 255 do EVERY_BYTE[#EVERY_BYTE + 1] = string.char(byte) end
EVERY_BYTE = table.concat(EVERY_BYTE)

describe("credentials", function()
  local farm

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)

  local function on_all(...)
    for _, node in ipairs(farm) do assert.are.equal("OK", node:command(...)) end
  end

  -- Nodes that answer have the time for that.
  local function new(options)
    options.node_timeout = 20000
    return redlock.new(farm.addresses, options)
  end

  local function let_in(user, password)
    on_all("ACL", "SETUSER", user, "reset", "on", ">" .. password, "~*", "+@all")
  end

  local function process(client)
    client:process()
  end

  describe("every byte", function()
    before_each(function() let_in("every", EVERY_BYTE) end)

    it("credentials_of_client_have_every_byte", function()
      local client = new({ username = "every", password = EVERY_BYTE })
      helper.warm(client, farm, process)
      client:close()
    end)

    it("credentials_of_node_table_and_url_have_every_byte", function()
      local escaped = EVERY_BYTE:gsub(".", function(byte) return ("%%%02x"):format(byte:byte()) end)
      local client = redlock.new({
        { host = "127.0.0.1", port = farm[1].port, username = "every", password = EVERY_BYTE },
        "redis://every:" .. escaped .. "@" .. farm[2].address,
        "redis://every:" .. escaped .. "@" .. farm[3].address,
      }, { node_timeout = 20000 })
      helper.warm(client, farm, process)
      client:close()
    end)

    it("username_with_NUL_is_refused", function()
      local ok, message = pcall(redlock.new, farm.addresses, { username = "a\0b", password = "p" })
      assert.is_false(ok)
      assert.is_truthy(message:find("option 'username' must not contain a NUL byte", 1, true), message)
      ok, message = pcall(redlock.new, { "redis://a%00b:p@h" })
      assert.is_false(ok)
      assert.is_truthy(message:find("node 1: the username must not contain a NUL byte", 1, true), message)
    end)
  end)

  local function end_connections(user)
    for _, node in ipairs(farm) do node:command("CLIENT", "KILL", "USER", user) end
  end

  local function all_up(client)
    for _, node in ipairs(client:nodes()) do
      if node.state ~= "up" then return false end
    end
    return true
  end

  local function eventually_up(client, pump)
    helper.eventually(function()
      pump(client)
      return all_up(client)
    end, "all nodes to be connected")
  end

  local function eventually_say(client, text)
    helper.eventually(function()
      client:process()
      for _, node in ipairs(client:nodes()) do
        assert.is_nil((node.error or ""):find("s3cr3t", 1, true))
        if node.state == "up" or not (node.error or ""):find(text, 1, true) then return false end
      end
      return true
    end, "all nodes to say " .. text)
  end

  describe("rotated", function()
    it("refused_password_is_reported_and_works_once_it_is_right", function()
      let_in("rotated", "s3cr3t-new")
      local client = new({ username = "rotated", password = "s3cr3t-old" })
      local lock, message, code = client:acquire("r", { retry_count = 0 })
      assert.is_nil(lock)
      assert.are.equal("unavailable", code)
      assert.is_truthy(message:find("WRONGPASS", 1, true), message)
      eventually_say(client, "WRONGPASS")
      let_in("rotated", "s3cr3t-old")
      eventually_up(client, process)
      assert(client:acquire("r")):release()
      client:close()
    end)

    it("missing_password_is_reported", function()
      local own = helper.farm(1, "--requirepass s3cr3t")
      local without = redlock.new(own.addresses, { node_timeout = 20000 })
      local ok, message = without:acquire("r", { retry_count = 0 })
      assert.is_nil(ok)
      assert.is_truthy(message:find("NOAUTH", 1, true), message)
      local with = redlock.new(own.addresses, { node_timeout = 20000, password = "s3cr3t" })
      local lock = assert(with:acquire("r"))
      lock:release()
      with:close()
      without:close()
      own:shut()
    end)
  end)

  describe("from a function", function()
    local asked

    before_each(function()
      asked = {}
      let_in("token", "s3cr3t-1")
    end)

    local function bring(password)
      return function(node, index)
        asked[#asked + 1] = index .. " " .. node
        return "token", password()
      end
    end

    it("function_is_called_for_each_connection", function()
      local password = "s3cr3t-1"
      local client = new({ credentials = bring(function() return password end) })
      local lock = assert(client:acquire("r", { auto_extend = false }))
      eventually_up(client, process)
      table.sort(asked)
      assert.are.same({ "1 " .. farm[1].address, "2 " .. farm[2].address, "3 " .. farm[3].address }, asked)
      password = "s3cr3t-2"
      let_in("token", password)
      assert(lock:extend()) -- Connections that stand go on.
      assert.are.equal(3, #asked)
      end_connections("token")
      helper.eventually(function() return lock:extend() and #asked >= 5 end)
      eventually_up(client, process)
      assert(lock:release())
      client:close()
    end)

    it("function_returns_password_of_any_bytes", function()
      let_in("token", EVERY_BYTE)
      local addresses = {}
      for index, address in ipairs(farm.addresses) do addresses[index] = "redis://token@" .. address end
      local client = redlock.new(addresses, { node_timeout = 20000, credentials = function() return EVERY_BYTE end })
      helper.warm(client, farm, process)
      client:close()
    end)

    it("callable_table_returns_long_token", function()
      local token = ("t"):rep(16384)
      let_in("token", token)
      local client = redlock.new(farm.addresses,
        { node_timeout = 20000, credentials = setmetatable({}, { __call = function() return "token", token end }) })
      helper.warm(client, farm, process)
      client:close()
    end)

    it("function_is_called_in_caller_owned_loop", function()
      local client = new({ credentials = bring(function() return "s3cr3t-1" end) })
      local lock = client:new_lock("r")
      assert(lock:start("acquire"))
      local descriptor = { getfd = function() return client:pollfd() end }
      helper.eventually(function()
        require("socket").select({ descriptor }, nil, math.min(client:timeout() or 1, 1))
        client:process()
        return lock:result() ~= nil
      end)
      assert.are.equal(3, #asked)
      assert(lock:release())
      client:close()
    end)

    it("failure_of_function_is_reported_and_function_is_called_again", function()
      local answers = {
        { function() error("no network", 0) end, "it got no credentials: no network" },
        { function() return nil, "s3cr3t" end, "a second value, which is hidden; raise an error() to give a reason" },
        { function() error("the vault\r\n\27[31mis locked", 0) end,
          "it got no credentials: the vault   [31mis locked" },
        { function() return nil end, "it got no credentials" },
        { function() end, "it got no credentials" },
        { function() error({}) end, "it got no credentials" },
        { function() return 1 end, "must return a password, or a username and a password" },
        { function() return "u", {} end, "must return a password, or a username and a password" },
        { function() return "a\0b", "p" end, "the username contains a NUL byte" },
        { function() return "u", ("x"):rep(16385) end, "the password is longer than 16384 bytes" },
        { function() return ("x"):rep(513), "p" end, "the username is longer than 512 bytes" },
      }
      for _, case in ipairs(answers) do
        local answer = case[1]
        local client = new({ credentials = function() return answer() end })
        local lock, message, code = client:acquire("r", { retry_count = 0 })
        assert.is_nil(lock)
        assert.are.equal("unavailable", code)
        assert.is_truthy(message:find(case[2], 1, true), message)
        answer = function() return "token", "s3cr3t-1" end
        eventually_up(client, process)
        client:close()
      end
    end)

    it("function_is_not_called_for_node_with_own_password", function()
      let_in("own", "p")
      local client = redlock.new({ "redis://own:p@" .. farm[1].address, farm[2].address, farm[3].address },
        { node_timeout = 20000, credentials = bring(function() return "s3cr3t-1" end) })
      helper.warm(client, farm, process)
      assert.are.equal(2, #asked)
      client:close()
    end)

    it("misuse_of_credentials_is_raised", function()
      local ok, message = pcall(redlock.new, farm.addresses, { credentials = "token" })
      assert.is_false(ok)
      assert.is_truthy(message:find("option 'credentials' must be a function, got a string", 1, true), message)
      ok, message = pcall(redlock.new, farm.addresses, { credentials = print, password = "p" })
      assert.is_false(ok)
      assert.is_truthy(message:find("give either", 1, true), message)
      ok, message = pcall(redlock.new, { { host = "h", credentials = print } })
      assert.is_false(ok)
      assert.is_truthy(message:find("option 'credentials'", 1, true), message)
    end)

    it("function_uses_client_without_waiting_for_itself", function()
      local client, seen
      client = new({
        credentials = function()
          seen = #client:nodes()
          local lock, _, code = client:acquire("other", { retry_count = 0, node_timeout = 20 })
          assert(not lock and code == "unavailable")
          return "token", "s3cr3t-1"
        end,
      })
      assert(client:acquire("r", { node_timeout = 20000 })):release()
      assert.are.equal(3, seen)
      client:close()
    end)

    it("next_call_answers_connection_that_watchdog_began", function()
      local client = new({ credentials = bring(function() return "s3cr3t-1" end) })
      local lock = assert(client:acquire("r", { auto_extend = true, ttl = 60000 }))
      eventually_up(client, process)
      end_connections("token")
      local count = #asked
      helper.eventually(function()
        for _, node in ipairs(client:nodes()) do
          if node.state ~= "up" then return false end
        end
        return #asked >= count + 3
      end)
      assert.is_true(lock:remaining() > 0)
      assert(lock:release())
      client:close()
    end)

    it("blocking_function_is_called_once_per_node_and_call", function()
      local blocks = false
      local client = new({ credentials = bring(function()
        if blocks then require("socket").sleep(0.3) end
        return "s3cr3t-1"
      end) })
      local lock = assert(client:acquire("r", { auto_extend = true, ttl = 2000 }))
      eventually_up(client, process)
      blocks = true
      on_all("ACL", "SETUSER", "token", "resetpass") -- Refused at once, so that the watchdog soon tries again.
      end_connections("token")
      local most, began = 0, #asked
      helper.eventually(function()
        local before = #asked
        client:process()
        most = math.max(most, #asked - before)
        return #asked - began >= 6
      end, "being asked")
      assert.is_true(most <= 6, "asked " .. most .. " times in one call")
      blocks = false
      lock:release()
      client:close()
    end)

    it("function_is_collected_with_its_client", function()
      local gone = setmetatable({}, { __mode = "v" })
      local function use()
        local client
        client = new({
          credentials = function()
            assert(client)
            return "token", "s3cr3t-1"
          end,
        })
        assert(client:acquire("r")):release()
        gone[1] = client
        client = new({ credentials = function() return client and "token", "s3cr3t-1" end })
        client:new_lock("r"):start("acquire") -- Dropped while it is asked for.
        gone[2] = client
      end
      use()
      for _ = 1, 5 do collectgarbage() end
      assert.is_nil(gone[1])
      assert.is_nil(gone[2])
    end)

    it("close_ends_while_function_is_called", function()
      local client
      client = new({
        credentials = function()
          client:close()
          return "token", "s3cr3t-1"
        end,
      })
      local lock, _, code = client:acquire("r")
      assert.is_nil(lock)
      assert.are.equal("closed", code)
    end)

    it("function_waits_in_cqueues", function()
      local cqueues = require "cqueues"
      local controller, turns, waiting, together = cqueues.new(), 0, 0, 0
      local client = require("redlock.cqueues").new(farm.addresses, {
        credentials = function() -- Each waits until all have begun.
          waiting = waiting + 1
          together = math.max(together, waiting)
          local until_when = helper.now() + 2
          repeat cqueues.sleep(0.005) until together == 3 or helper.now() > until_when
          waiting = waiting - 1
          return "token", "s3cr3t-1"
        end,
      })
      controller:wrap(function()
        local lock = assert(client:acquire("r", { node_timeout = 20000 }))
        assert(lock:release())
        client:close()
        turns = nil
      end)
      controller:wrap(function()
        while turns do
          turns = turns + 1
          cqueues.sleep(0.005)
        end
      end)
      assert(controller:loop(60))
      assert.are.equal(3, together)
      assert.is_nil(turns)
    end)

    it("error_of_function_that_waited_is_reported", function()
      local cqueues = require "cqueues"
      local controller, said = cqueues.new(), nil
      local client = require("redlock.cqueues").new(farm.addresses, {
        credentials = function()
          cqueues.sleep(0.01)
          error("no network", 0)
        end,
      })
      controller:wrap(function()
        local lock, message = client:acquire("r", { node_timeout = 20000, retry_count = 0 })
        assert(not lock)
        said = message
        client:close()
      end)
      assert(controller:loop(60))
      assert.is_truthy(said:find("it got no credentials: no network", 1, true), said)
    end)

    it("interrupt_in_function_ends_the_waiting_call", function()
      local text, ok = helper.run_script([[
        local redlock = require "redlock"
        local ended
        local client = redlock.new({ ... }, { credentials = function()
          -- As the handler of the interpreter does.
          debug.sethook(function()
            debug.sethook()
            error("interrupted!")
          end, "crl", 1)
          for _ = 1, 1e6 do ended = true end
          return "token", "s3cr3t-1"
        end })
        local ran, message = pcall(client.acquire, client, "r", { node_timeout = 20000 })
        print(ran, message)
      ]], farm.addresses[1], farm.addresses[2], farm.addresses[3])
      assert.is_true(ok, text)
      assert.is_truthy(text:find("^false\t.*interrupted!"), text)
    end)
  end)
end)
