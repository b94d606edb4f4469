--- What every driver of the module has to do, whatever it waits with.
---
--- behaviour(title, { new = , run = , pump = , farm = , describe = , it = }) declares the specs: `new`
--- makes a client, `run` calls a function where clients may be used, `pump` lets a client do what it
--- can do without waiting, `idle` lets time pass as the driver's programs do, `farm` returns five nodes; the
--- last two are busted's, which only spec files are given.

local assert = require "luassert"
local helper = require "spec.helper"

-- Where a node timeout is not what a test is about, a busy machine must not make it one.
local PATIENCE = 2000

local unpack = table.unpack or unpack -- luacheck: ignore

return function(title, driver)
  local describe, it = driver.describe, driver.it
  local client, other, farm

  local function warm(cold, prefix)
    helper.warm(cold, farm, driver.pump, prefix)
  end

  local function test(name, fn)
    it(name, function()
      farm = driver.farm()
      farm:reset()
      driver.run(function()
        client = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE })
        other = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE })
        warm(client)
        warm(other)
        fn()
        client:close()
        other:close()
      end)
    end)
  end

  local function failure(code, ...)
    local result, message, got = ...
    assert.is_nil(result)
    assert.is_string(message)
    assert.are.equal(code, got)
    assert.is_true(#message > 0)
    return message
  end

  -- An acquire is over when a majority has granted; the others get the key when they are connected.
  local function eventually_on_all(lock, key, from)
    helper.eventually(function()
      driver.pump(from or client)
      return farm:count(key or lock:resource(), lock:token()) == 5
    end, "all nodes to have the key")
  end

  -- The last millisecond counts as none, but an extend can still come in time in it.
  local function run_out(lock)
    helper.eventually(function() return lock:remaining() == 0 end)
    local seen = helper.now()
    helper.eventually(function() return helper.now() > seen + 0.002 end)
    assert.are.equal(0, lock:remaining())
  end

  local function eventually_free(key)
    helper.eventually(function()
      driver.pump(client)
      driver.pump(other)
      return farm:count(key) == 0
    end, "the key " .. key .. " to be gone")
  end

  describe(title, function()
    test("acquires: one token on all nodes, and a validity below the ttl", function()
      local lock = client:lock("orders:42", { ttl = 4000 })
      assert.are.equal(0, lock:remaining())
      assert.is_false(lock:is_held())
      assert.is_nil(lock:token())
      local validity = assert(lock:acquire())
      assert.is_true(validity > 3000 and validity <= 4000 - 40 - 2, "validity " .. validity)
      assert.are.equal(math.floor(validity), validity)
      assert.is_true(lock:remaining() > 3000 and lock:remaining() <= validity)
      assert.is_true(lock:is_held())
      assert.is_truthy(lock:token():match("^%x+$"))
      assert.are.equal(40, #lock:token())
      eventually_on_all(lock)
      local left = farm[1]:command("PTTL", "orders:42")
      assert.is_true(left > 3000 and left <= 4000, "pttl " .. left)
      assert.are.equal("orders:42", lock:resource())
      assert.are.equal(4000, lock:ttl())
    end)

    test("a margin: how many keys may vanish before a second holder is possible", function()
      local lock = client:lock("m", { ttl = 60000 })
      assert.is_nil(lock:margin())
      assert(lock:acquire())
      eventually_on_all(lock)
      helper.eventually(function()
        driver.pump(client)
        return lock:margin() == 2
      end, "the late votes")
      farm[1]:command("DEL", "m")
      farm[2]:command("DEL", "m")
      assert.are.equal(2, lock:margin()) -- Nobody has asked them since.
      assert(lock:extend())
      assert.is_true(lock:margin() >= 0)
      eventually_on_all(lock)
      helper.eventually(function()
        driver.pump(client)
        return lock:margin() == 2
      end, "the nodes to be healed")
      assert(lock:release())
      assert.is_nil(lock:margin())
    end)

    test("quorum: what three of five have granted is no lock, and four leave a margin", function()
      local careful = driver.new(farm.addresses, { retry_count = 0, node_timeout = PATIENCE, quorum = 4 })
      warm(careful)
      local lost = assert(careful:acquire("q", { ttl = 60000 }))
      eventually_on_all(lost, "q", careful)
      farm[1]:command("DEL", "q")
      farm[2]:command("DEL", "q")
      failure("lost", lost:extend()) -- Four were needed, and three are left.
      assert.is_nil(lost:margin())
      farm[1]:kill()
      local lock = assert(careful:acquire("p", { ttl = 60000 }))
      assert.are.equal(2, lock:margin())
      farm[2]:kill()
      failure("unavailable", lock:extend())
      assert.are.equal(2, lock:margin()) -- The old deadline stands.
      local message = failure("unavailable", careful:acquire("r"))
      assert.is_truthy(message:find("of 5 nodes granted it, 4 are needed", 1, true), message)
      local now_free
      helper.eventually(function() -- Nobody has waited for the release of what failed.
        driver.pump(careful)
        now_free = client:acquire("r")
        return now_free
      end, "three of five to be a majority again")
      now_free:release()
      careful:close()
    end)

    test("refuses a second holder", function()
      local lock = assert(client:acquire("r")) -- kept until the end: garbage is released
      failure("taken", other:acquire("r"))
      eventually_on_all(lock)
      local second = other:lock("r")
      failure("taken", second:acquire())
      local votes = second:votes()
      assert.are.equal(5, #votes)
      local taken = 0
      for index, vote in ipairs(votes) do
        assert.are.equal(farm.addresses[index], vote.node)
        if vote.vote == "taken" then taken = taken + 1 end
      end
      assert.is_true(taken >= 3)
      assert.is_false(second:is_held())
      assert(lock:release())
      assert(second:acquire())
    end)

    test("acquires, extends and releases with a client that has not been used yet", function()
      for round = 1, 10 do
        local cold = driver.new(farm.addresses)
        local lock = assert(cold:acquire("r" .. round))
        assert.is_true(farm:count("r" .. round, lock:token()) >= 3)
        assert(lock:extend(20000))
        assert.is_true(lock:remaining() > 15000)
        assert(lock:release())
        assert.is_true(farm:count("r" .. round) <= 2)
        cold:close()
        eventually_free("r" .. round)
      end
    end)

    test("takes a new token for each acquire", function()
      local lock = client:lock("r")
      assert(lock:acquire())
      local first = lock:token()
      assert(lock:release())
      assert(lock:acquire())
      assert.are_not.equal(first, lock:token())
    end)

    test("releases once", function()
      local lock = assert(client:acquire("r"))
      assert.is_true((lock:release()))
      assert.are.equal(0, lock:remaining())
      assert.is_nil(lock:token())
      eventually_free("r")
      failure("not_held", lock:release())
      failure("not_held", lock:extend())
    end)

    -- Asked until it is told: with what the first call that is not "pending" returned.
    local function eventually_result(lock)
      local results
      helper.eventually(function()
        driver.pump(client)
        results = { lock:result() }
        return results[3] ~= "pending"
      end, "the release to have a result")
      return unpack(results, 1, 3)
    end

    test("releases without waiting", function()
      for round = 1, 20 do
        local lock = assert(client:acquire("r"))
        assert.is_true((lock:release({ wait = false })))
        assert.are.equal(0, lock:remaining())
        assert.is_false(lock:is_held())
        assert.is_nil(lock:token())
        if round % 2 == 0 then assert.is_true((eventually_result(lock))) end
      end
      eventually_free("r")
      local lock = assert(client:acquire("r"))
      assert.is_true((lock:release({ wait = true })))
      failure("not_held", lock:release({ wait = false }))
    end)

    test("releases without waiting, and takes the lock again at once", function()
      local lock = client:lock("r")
      for _ = 1, 50 do
        assert(lock:acquire())
        assert.is_true((lock:release({ wait = false })))
      end
      assert(lock:acquire())
      eventually_on_all(lock)
      assert.is_true(lock:is_held())
    end)

    test("releases without waiting, and waits for the result after all", function()
      local lock = assert(client:acquire("r"))
      assert.is_true((lock:release({ wait = false })))
      assert.is_true((lock:release()))
      failure("not_held", lock:release())
      eventually_free("r")
    end)

    test("releases without waiting, and tells later that the lock was lost", function()
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
      assert.is_true((lock:release({ wait = false })))
      failure("lost", eventually_result(lock))
    end)

    test("does not wait for nodes that hang when it releases without waiting", function()
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      for index = 1, 5 do farm[index]:stop() end
      local before = helper.now()
      assert.is_true((lock:release({ wait = false })))
      assert.is_true(helper.now() - before < 0.5)
      for index = 1, 5 do farm[index]:continue() end
      eventually_free("r")
    end)

    test("a lock that is dropped after a release without waiting leaves no key", function()
      for index = 1, 50 do
        local lock = assert(client:acquire("r" .. index))
        lock:release({ wait = false })
      end
      collectgarbage()
      for index = 1, 50 do eventually_free("r" .. index) end
    end)

    test("names what is wrong with the options of a release", function()
      local lock = assert(client:acquire("r"))
      local function complaint(given)
        local ok, err = pcall(function() lock:release(given) end)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: "), err)
        return err
      end
      assert.is_truthy(complaint({ wait = 5 }):find("option 'wait' must be true or false, got 5", 1, true))
      assert.is_truthy(complaint({ ttl = 5 }):find("unknown option 'ttl'", 1, true))
      assert.is_truthy(complaint(5):find("options must be a table", 1, true))
      assert.is_true(lock:is_held())
    end)

    test("check(), inspect() and force_release() blamed a line of redlock's own files", function()
      local lock = client:lock("r")
      local long = ("x"):rep(5000)
      for text, fn in pairs({
        ["lock:check() needs a lock before the colon, got nil"] = function() lock.check() end,
        ["'r' is not held"] = function() lock:check() end,
        ["resource is too long: it has 5000 bytes"] = function() local seen = client:inspect(long) return seen end,
        ["resource is too long: it has 5000"] = function() local n = client:force_release(long, "t") return n end,
        ["client:inspect() needs a client before the colon, got a string"] = function() client.inspect("r") end,
        ["client:force_release() needs a client before the colon, got a string"] = function()
          client.force_release("r", "t")
        end,
      }) do
        local ok, err = pcall(fn)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: ") and err:find(text, 1, true), err)
      end
    end)

    test("detach() raised after a release that was not waited for, and did not say which lock is not held", function()
      local lock = assert(client:acquire("r"))
      assert(lock:release({ wait = false }))
      local message = failure("not_held", lock:detach())
      assert.is_truthy(message:find("'r'", 1, true), message)
      eventually_free("r")
    end)

    test("attach() took a wait and a retry_count, and tried once all the same", function()
      local text = assert(assert(client:acquire("r")):detach())
      for name, value in pairs({ wait = 1000, retry_count = 5 }) do
        local ok, err = pcall(function() other:attach(text, { [name] = value }) end)
        assert.is_false(ok)
        local says = "behaviour.lua:%d+: redlock: option '" .. name .. "' does not go with client:attach"
        assert.is_truthy(err:find(says), err)
      end
      assert(assert(other:attach(text, { wait = 0, retry_count = 0 })):release())
    end)

    test("detach and attach: hands a lock from one client to another", function()
      local lock = assert(client:acquire("r", { ttl = 30000 }))
      eventually_on_all(lock)
      local token = lock:token()
      local text = assert(lock:detach())
      assert.is_truthy(text:find("^[%w%.%-_]+$"), text)
      assert.are.equal(0, lock:remaining())
      assert.is_nil(lock:token())
      failure("not_held", lock:extend())
      failure("not_held", lock:release())
      failure("not_held", lock:detach())
      lock = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      driver.pump(client)
      assert.are.equal(5, farm:count("r", token))
      failure("taken", client:acquire("r"))
      local taken = assert(other:attach(text))
      assert.are.equal("r", taken:resource())
      assert.are_not.equal(token, taken:token())
      assert.is_true(taken:remaining() > 20000 and taken:remaining() <= 30000)
      assert.are.equal(30000, taken:ttl())
      eventually_on_all(taken, nil, other)
      assert(taken:extend())
      failure("lost", client:attach(text))
      assert.is_true(taken:is_held())
      assert(taken:release())
      eventually_free("r")
      failure("lost", client:attach(text))
      eventually_free("r")
    end)

    test("detach and attach: a lock that ran out on the way, or was taken by force, is refused", function()
      local text = assert(assert(client:acquire("r", { ttl = 200 })):detach())
      helper.eventually(function() return farm:count("r") == 0 end)
      local message = failure("lost", other:attach(text))
      assert.is_truthy(message:find("say that it is not ours", 1, true), message)
      text = assert(assert(client:acquire("r")):detach())
      other:force_release("r", "any")
      local lock = assert(other:acquire("r"))
      failure("lost", client:attach(text))
      assert(lock:extend())
    end)

    test("detach and attach: several resources go together, however long their names are", function()
      for _, names in ipairs({ { "a", "b", "c" }, { ("x"):rep(4000), ("y"):rep(4000), ("z"):rep(4000) } }) do
        local lock = assert(client:acquire(names))
        for _, name in ipairs(names) do eventually_on_all(lock, name) end
        local text = assert(lock:detach())
        failure("not_held", lock:release())
        for _, name in ipairs(names) do failure("taken", other:acquire(name)) end
        local taken = assert(other:attach(text))
        assert.are.same(names, taken:resources())
        assert(taken:extend())
        failure("lost", client:attach(text))
        assert(taken:release())
        for _, name in ipairs(names) do eventually_free(name) end
      end
    end)

    test("attach: a node that lost one of several resources has no vote, and gets none of them", function()
      local names = { "a", "b", "c" }
      local lock = assert(client:acquire(names))
      for _, name in ipairs(names) do eventually_on_all(lock, name) end
      local text = assert(lock:detach())
      for index = 1, 3 do farm[index]:command("DEL", "b") end
      failure("lost", other:attach(text))
      eventually_free("b")
    end)

    test("attach: what was tampered with is refused", function()
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      local text = assert(lock:detach())
      for at = 1, #text, 7 do
        local byte = text:sub(at, at) == "A" and "B" or "A"
        failure("lost", other:attach(text:sub(1, at - 1) .. byte .. text:sub(at + 1)))
        failure("lost", other:attach(text:sub(1, at - 1)))
      end
      local function complaint(fn)
        local ok, err = pcall(fn)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: "), err)
        return err
      end
      assert.is_truthy(complaint(function() other:attach(5) end):find("takes what lock:detach() has returned", 1, true))
      local prefixed = driver.new(farm.addresses, { prefix = "x:" })
      assert.is_truthy(complaint(function() prefixed:attach(text) end):find("another prefix", 1, true))
      prefixed:close()
      local fewer = driver.new({ farm.addresses[1], farm.addresses[2] })
      assert.is_truthy(complaint(function() fewer:attach(text) end):find("another number of nodes", 1, true))
      fewer:close()
      assert(assert(other:attach(text, { ttl = 20000 })):remaining() > 15000)
    end)

    test("fence: each grant has a greater number, a whole one, which the lease keeps", function()
      local last = 0
      for i = 1, 10 do
        local lock = assert((i % 2 == 0 and client or other):acquire("r", { fence = true, ttl = 20000 }))
        local fence = lock:fence()
        assert.are.equal("number", type(fence))
        assert.are.equal(("%d"):format(fence), ("%.0f"):format(fence))
        assert.are.equal(0, fence % 1)
        assert.is_true(fence > last and fence < 2 ^ 53, tostring(fence))
        if math.type then assert.are.equal("integer", math.type(fence)) end -- luacheck: ignore
        last = fence
        assert(lock:extend(10000))
        assert.are.equal(fence, lock:fence())
        assert(lock:release())
        assert.is_nil(lock:fence())
        eventually_free("r")
      end
    end)

    test("fence: nodes that differ agree on the greatest, which is on a majority", function()
      local future = math.floor(helper.now()) * 1000000 + 5000000
      for i, node in ipairs({ 2, 4, 5 }) do
        farm[node]:command("SET", "r:redlock-fence", ("%.0f"):format(future + i - 1))
      end
      local lock = assert(client:acquire("r", { fence = true }))
      local fence = lock:fence()
      assert.is_true(fence > future and fence <= future + 3, tostring(fence))
      local confirmed = 0
      for node = 1, 5 do
        if tonumber(farm[node]:command("GET", "r:redlock-fence") or 0) >= fence then confirmed = confirmed + 1 end
      end
      assert.is_true(confirmed >= 3)
      assert(lock:release())
      eventually_free("r")
      assert.is_true(assert(other:acquire("r", { fence = true })):fence() > fence)
    end)

    test("fence: attached, it is the same; without the option there is none", function()
      local lock = assert(client:acquire("r", { fence = true }))
      local fence = lock:fence()
      eventually_on_all(lock)
      local attached = assert(other:attach(assert(lock:detach())))
      assert.are.equal(fence, attached:fence())
      assert(attached:release())
      eventually_free("r")
      local plain = assert(client:acquire("r"))
      assert.is_nil(plain:fence())
      eventually_on_all(plain)
      local text = assert(plain:detach())
      local ok, err = pcall(other.attach, other, text, { fence = true })
      assert.is_false(ok)
      assert.is_truthy(err:find("had been acquired without a fencing token", 1, true), err)
    end)

    test("takes a token that the caller gives, of any bytes", function()
      local token = "order 42\0\255 \r\n" .. ("x"):rep(200)
      local lock = assert(client:acquire("r", { token = token, ttl = 5000 }))
      assert.are.equal(token, lock:token())
      eventually_on_all(lock)
      assert(lock:extend(6000))
      assert.are.equal(token, other:inspect("r").holder)
      assert(lock:release())
      eventually_free("r")
      assert(lock:acquire())
      assert.are.equal(40, #lock:token())
      assert(lock:release())
      assert(lock:acquire({ token = "once more" }))
      assert.are.equal("once more", lock:token())
      assert(lock:release())
      assert.are.same({ true, "in a section" }, { client:with("r", { token = "in a section" }, function(own)
        return own:token()
      end) })
      eventually_free("r")
    end)

    -- As LockTake, LockExtend and LockRelease of StackExchange.Redis: SET NX PX, and scripts that compare.
    test("shares a lock with another library under a token that both know", function()
      for index = 1, 5 do farm[index]:command("SET", "r", "theirs", "PX", "60000", "NX") end
      failure("taken", client:acquire("r", { token = "theirs", wait = 0 }))
      assert.is_true(farm:count("r", "theirs") >= 3) -- and keeps its majority
      for index = 1, 5 do farm[index]:command("DEL", "r") end
      local lock = assert(client:acquire("r", { token = "ours" }))
      eventually_on_all(lock)
      assert.are.equal("$-1", farm[1]:command("SET", "r", "theirs", "PX", "60000", "NX") or "$-1")
      for index = 1, 5 do
        assert.are.equal(1, farm[index]:command("EVAL", "if redis.call('get',KEYS[1])==ARGV[1] then "
          .. "return redis.call('del',KEYS[1]) end return 0", "1", "r", "ours"))
      end
      failure("lost", lock:extend())
    end)

    test("a token that the caller gives is tried once, and named when it is wrong", function()
      local held = assert(other:acquire("r"))
      local before = helper.now()
      local patient = driver.new(farm.addresses, { retry_count = 50, retry_delay = 1000 })
      failure("taken", patient:acquire("r", { token = "mine" }))
      assert.is_true(helper.now() - before < 0.9)
      patient:close()
      assert.is_true(held:is_held())
      local function complaint(fn)
        local ok, err = pcall(fn)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: "), err)
        return err
      end
      for _, wrong in ipairs { "", ("x"):rep(257), "any", 5 } do
        local given = { token = wrong }
        assert.is_truthy(complaint(function() client:acquire("r", given) end):find("option 'token' must", 1, true))
        assert.is_truthy(complaint(function() client:lock("r"):acquire(given) end):find("option 'token' must", 1, true))
        assert.is_truthy(complaint(function() client:with("r", given, error) end):find("option 'token' must", 1, true))
      end
      for _, given in ipairs { { token = "x", wait = 5 }, { token = "x", retry_count = 1 } } do
        assert.is_truthy(complaint(function() client:acquire("r", given) end):find("does not go with 'token'", 1, true))
        assert.is_truthy(complaint(function() client:lock("r"):acquire(given) end):find("not go with", 1, true))
        assert.is_truthy(complaint(function() client:with("r", given, error) end):find("not go with", 1, true))
      end
      assert.is_truthy(complaint(function() client:lock("r", { token = "x" }) end)
        :find("option 'token' can only be given to an acquire", 1, true))
    end)

    test("inspect: tells what each node holds, and who the holder is", function()
      local seen = assert(other:inspect("r"))
      assert.is_nil(seen.holder)
      assert.is_nil(seen.ttl)
      for index, row in ipairs(seen.nodes) do
        assert.are.same({ node = farm.addresses[index], state = "free" }, row)
      end
      local lock = assert(client:acquire("r", { ttl = 5000 }))
      eventually_on_all(lock)
      seen = assert(other:inspect("r"))
      assert.are.equal(lock:token(), seen.holder)
      assert.is_true(seen.ttl > 3000 and seen.ttl <= 5000, "ttl " .. seen.ttl)
      assert.are.equal(5, #seen.nodes)
      for index, row in ipairs(seen.nodes) do
        assert.are.equal(farm.addresses[index], row.node)
        assert.are.equal("held", row.state)
        assert.are.equal(lock:token(), row.token)
        assert.is_true(row.ttl > 3000 and row.ttl <= 5000)
      end
      assert.is_true(lock:is_held())
      assert(lock:extend())
    end)

    test("inspect: what other libraries, other types and other programs have written", function()
      farm[1]:command("SET", "r", "a token\0of bytes \255")
      farm[2]:command("HSET", "r", "field", "1")
      farm[3]:command("SET", "r", ("x"):rep(257), "PX", "60000")
      farm[4]:command("SET", "r", "")
      local seen = assert(client:inspect("r"))
      assert.is_nil(seen.holder)
      assert.are.same({ node = farm.addresses[1], state = "held", token = "a token\0of bytes \255" }, seen.nodes[1])
      assert.are.same({ node = farm.addresses[2], state = "other", error = "it is a hash" }, seen.nodes[2])
      assert.are.equal("other", seen.nodes[3].state)
      assert.is_truthy(seen.nodes[3].error:find("too long for a token", 1, true))
      assert.is_true(seen.nodes[3].ttl > 50000 and seen.nodes[3].ttl <= 60000)
      assert.are.same({ node = farm.addresses[4], state = "held", token = "" }, seen.nodes[4])
      assert.are.same({ node = farm.addresses[5], state = "free" }, seen.nodes[5])
      failure("taken", client:acquire("r"))
    end)

    test("inspect: tells of nodes that are gone or hang, also when a majority is", function()
      local quick = driver.new(farm.addresses, { retry_count = 0, node_timeout = 200 })
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      farm[1]:kill()
      farm[2]:stop()
      local seen = assert(quick:inspect("r"))
      assert.are.equal(lock:token(), seen.holder)
      assert.are.equal("unknown", seen.nodes[1].state)
      assert.is_string(seen.nodes[1].error)
      assert.are.equal("unknown", seen.nodes[2].state)
      assert.is_string(seen.nodes[2].error)
      farm[3]:kill()
      seen = assert(quick:inspect("r"))
      assert.is_nil(seen.holder)
      assert.are.equal("unknown", seen.nodes[3].state)
      assert.are.equal("held", seen.nodes[4].state)
      farm[2]:continue()
      assert.is_true(lock:is_held())
      quick:close()
      failure("closed", quick:inspect("r"))
      failure("closed", quick:force_release("r", "any"))
    end)

    -- The names of what is found, without the two things that servers of a test all lack.
    local function names_of(findings)
      local names = {}
      for _, finding in ipairs(findings) do
        if finding.name ~= "persistence" and finding.name ~= "slow" then
          names[#names + 1] = finding.severity .. " " .. finding.name .. " " .. (finding.node or "-")
        end
        assert.is_string(finding.message)
      end
      return table.concat(names, "\n")
    end

    local function guarded(guard)
      return driver.new(farm.addresses,
        { guard = guard or { max_ttl = 20000 }, retry_count = 0, node_timeout = PATIENCE })
    end

    test("guard: new nodes do not vote, and say so, until they are told that they may", function()
      local mine = guarded()
      local message = failure("unavailable", mine:acquire("r"))
      assert.is_truthy(message:find("nodes are quarantined", 1, true), message)
      assert.is_truthy(message:find("it has no record", 1, true), message)
      assert.are.equal(0, farm:count("r"))
      assert.is_true((mine:bootstrap()))
      for _, node in ipairs(mine:nodes()) do
        assert.is_nil(node.quarantine)
        assert.is_nil(node.quarantined)
      end
      local lock = assert(mine:acquire("r"))
      eventually_on_all(lock, nil, mine)
      assert(lock:extend())
      assert(lock:release())
      mine:close()
    end)

    test("guard: a node that was flushed does not vote for as long as it may have forgotten something", function()
      local mine = guarded()
      assert.is_true((mine:bootstrap()))
      warm(mine)
      farm[2]:command("FLUSHALL")
      local lock = assert(mine:acquire("first"))
      helper.eventually(function()
        driver.pump(mine)
        return (mine:nodes()[2].quarantined or math.huge) < math.huge
      end, "the node to be quarantined")
      local node = mine:nodes()[2]
      assert.is_true(node.quarantined > 22000 and node.quarantined <= 24002, node.quarantined)
      assert.is_truthy(node.quarantine:find("^for %d+%.%d s more: it has no record"), node.quarantine)
      local second = assert(mine:acquire("second"))
      assert.are.equal("quarantined", second:votes()[2].vote)
      assert.is_truthy(second:votes()[2].error:find("it has no record", 1, true))
      assert(lock:release())
      assert(second:release())
      mine:close()
    end)

    test("guard: clients that differ are told what differs", function()
      local mine, theirs = guarded(), guarded({ max_ttl = 15000 })
      assert.is_true((mine:bootstrap()))
      local message = failure("unavailable", theirs:acquire("r"))
      local said = "it is guarded for other clients: max_ttl=20000 (ours max_ttl=15000)"
      assert.is_truthy(message:find(said, 1, true), message)
      mine:close()
      theirs:close()
    end)

    test("guard: what is wrong with it is a mistake", function()
      local function complaint(fn)
        local ok, err = pcall(fn)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: "), err)
        return err
      end
      local mine = guarded()
      assert.is_truthy(complaint(function() return (mine:lock("r", { ttl = 20001 })) end):find("max_ttl", 1, true))
      local lock = mine:lock("r")
      assert.is_truthy(complaint(function() local _ = lock:acquire({ ttl = 20001 }) end):find("max_ttl", 1, true))
      assert.is_truthy(complaint(function() local _ = client:bootstrap() end):find("the client has no guard", 1, true))
      assert.is_truthy(complaint(function() local _ = mine.bootstrap("r") end)
        :find("client:bootstrap() needs a client before the colon, got a string", 1, true))
      assert.is_truthy(complaint(function() return (guarded({ max_ttl = 500 })) end):find("max_ttl", 1, true))
      for name, part in pairs { cluster = "cluster", max_ttl = "max_ttl", guard_max_ttl_ms = "max_ttl" } do
        local err = complaint(function() return (driver.new(farm.addresses, { guard = true, [name] = 1 })) end)
        assert.is_truthy(err:find("did you mean 'guard = { " .. part .. " = ... }'?", 1, true), err)
      end
      mine:close()
      failure("closed", mine:bootstrap())
    end)

    test("doctor: healthy nodes keep their locks in memory, and that is all", function()
      local findings = assert(client:doctor())
      assert.are.equal("", names_of(findings))
      assert.are.equal("persistence", findings[1].name)
      assert.are.equal("warning", findings[1].severity)
      assert.are.equal(farm.addresses[1], findings[1].node)
      assert.is_truthy(findings[1].message:find(farm.addresses[1] .. " forgets its latest locks", 1, true))
      local lock = assert(client:acquire("redlock-doctor"))
      assert.are.equal("", names_of(assert(client:doctor())))
      assert.is_true(lock:is_held())
      assert(lock:release())
    end)

    test("doctor: names nodes that are gone, that evict, that refuse, and keys that never end", function()
      farm[1]:kill()
      farm[2]:command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
      farm[2]:command("CONFIG", "SET", "maxmemory", "100mb")
      farm[4]:command("SET", "lost", ("ab"):rep(20))
      farm[4]:command("SET", "taken", ("ab"):rep(20), "PX", "60000")
      farm[4]:command("SET", "a number", "12345678901234567890")
      assert.are.equal("error down " .. farm.addresses[1] .. "\nerror eviction " .. farm.addresses[2],
        names_of(assert(client:doctor())))
      local findings = assert(client:doctor({ keys = true }))
      assert.are.equal("error down " .. farm.addresses[1] .. "\nerror eviction " .. farm.addresses[2]
        .. "\nwarning endless_keys " .. farm.addresses[4], names_of(findings))
      assert.is_truthy(findings[1].message:find("refused", 1, true), findings[1].message)
      for _, finding in ipairs(findings) do
        if finding.name == "endless_keys" then
          assert.is_truthy(finding.message:find("holds 1 key ", 1, true), finding.message)
          assert.is_truthy(finding.message:find("'lost'", 1, true), finding.message)
        end
      end
      farm[2]:command("CONFIG", "SET", "maxmemory", "0")
      farm[2]:command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    end)

    test("doctor: tells what it knows when a majority is gone, and nothing of a client that is closed", function()
      for index = 1, 3 do farm[index]:kill() end
      local findings = assert(client:doctor())
      assert.are.equal(3, select(2, names_of(findings):gsub("error down ", "")))
      client:close()
      failure("closed", client:doctor())
    end)

    test("doctor: names what is wrong with its options", function()
      local function complaint(fn)
        local ok, err = pcall(fn)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: "), err)
        return err
      end
      assert.is_truthy(complaint(function() client:doctor({ keys = 5 }) end)
        :find("client:doctor(): option 'keys' must be true or false, got 5", 1, true))
      assert.is_truthy(complaint(function() client:doctor({ resource = 5 }) end)
        :find("option 'resource' must be a string, got 5", 1, true))
      assert.is_truthy(complaint(function() client:doctor({ ttl = 5 }) end):find("unknown option 'ttl'", 1, true))
      assert.is_truthy(complaint(function() client:doctor("r") end):find("options must be a table", 1, true))
      assert.is_truthy(complaint(function() client.doctor("r") end)
        :find("client:doctor() needs a client before the colon, got a string", 1, true))
    end)

    test("doctor: an ACL that lacks a right, or knows the keys by another name", function()
      for index = 1, 5 do
        farm[index]:command("ACL", "SETUSER", "app", "reset", "on", ">secret", "~app:*", "+@all", "-pexpire")
      end
      local mine = driver.new(farm.addresses, { username = "app", password = "secret", node_timeout = PATIENCE })
      local findings = assert(mine:doctor({ resource = "app:x" }))
      assert.are.equal("rights", findings[1].name)
      assert.is_truthy(findings[1].message:find("ACL SETUSER app +pexpire", 1, true), findings[1].message)
      findings = assert(mine:doctor())
      local keys = findings[2].message
      assert.is_truthy(keys:find("does not let its user touch keys like 'redlock-doctor'", 1, true), keys)
      for _, finding in ipairs(findings) do
        assert.is_nil(finding.message:find("secret", 1, true))
      end
      mine:close()
      for index = 1, 5 do farm[index]:command("ACL", "DELUSER", "app") end
    end)

    test("force_release: deletes the token that was inspected, and nothing else", function()
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      local message = failure("not_held", other:force_release("r", "not the token"))
      assert.is_truthy(message:find("no node that answered holds it so", 1, true), message)
      failure("not_held", other:force_release("r", "ant")) -- as long as any
      failure("not_held", other:force_release("r", ("x"):rep(256)))
      assert(lock:extend())
      farm[2]:command("SET", "r", "somebody else")
      assert.are.equal(4, (other:force_release("r", other:inspect("r").holder)))
      assert.are.equal(1, farm:count("r"))
      failure("lost", lock:extend())
      assert.are.equal(1, (other:force_release("r", "somebody else")))
      assert(other:acquire("r"))
    end)

    test("force_release: any is whatever the key holds", function()
      for index = 1, 5 do farm[index]:command("HSET", "r", "field", "1") end
      failure("taken", client:acquire("r"))
      assert.are.equal(5, (client:force_release("r", "any")))
      failure("not_held", client:force_release("r", "any"))
      assert(client:acquire("r"))
    end)

    test("force_release: needs a token, and a majority", function()
      for _, wrong in ipairs { false, 5, {}, ("x"):rep(257) } do
        local ok, err = pcall(function() client:force_release("r", wrong or nil) end)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: client:force_release%(%): token "), err)
      end
      local ok, err = pcall(function() client:inspect(nil) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("behaviour.lua:%d+: redlock: resource must be a string"), err)
      for index = 1, 3 do farm[index]:kill() end
      local message = failure("unavailable", client:force_release("r", "any"))
      assert.is_truthy(message:find(farm.addresses[1], 1, true), message)
    end)

    test("does not acquire what it holds", function()
      local lock = assert(client:acquire("r"))
      local token = lock:token()
      failure("held", lock:acquire())
      assert.are.equal(token, lock:token())
      assert.is_true(lock:is_held())
    end)

    test("extends", function()
      local lock = assert(client:acquire("r", { ttl = 1000 }))
      eventually_on_all(lock)
      local validity = assert(lock:extend(5000))
      assert.is_true(validity > 4000 and validity < 5000, "validity " .. validity)
      assert.is_true(lock:remaining() > 4000)
      local extended = 0
      for index = 1, 5 do
        if farm[index]:command("PTTL", "r") > 4000 then extended = extended + 1 end
      end
      assert.is_true(extended >= 3, "extended on " .. extended)
      assert(lock:extend())
      assert.is_true(lock:remaining() > 4000, "an extend must not shorten the lease")
    end)

    test("tells that a lock was lost, and holds it no longer", function()
      local lock = assert(client:acquire("r", { ttl = 5000 }))
      eventually_on_all(lock)
      for index = 1, 3 do farm[index]:command("SET", "r", "somebody else") end
      failure("lost", lock:extend(9000))
      assert.are.equal(0, lock:remaining())
      assert.is_false(lock:is_held())
      failure("lost", lock:extend(9000))
      failure("lost", lock:release())
      assert.are.equal("somebody else", farm[1]:command("GET", "r"))
      failure("not_held", lock:release())
    end)

    -- What a lock is told of, and how long that took from now, in seconds.
    local function told(lock_options)
      local events, began = {}, helper.now()
      lock_options.on_lost = function(lock, reason)
        events[#events + 1] = { lock = lock, reason = reason, at = helper.now() - began, code = lock:lost() }
      end
      return events
    end

    local function eventually_told(events, count)
      helper.eventually(function()
        driver.idle(client)
        return #events >= count
      end, count .. " losses to be told")
      assert.are.equal(count, #events)
    end

    test("keeps a lease with auto_extend for longer than its ttl, and others out", function()
      local options = { ttl = 900, auto_extend = true }
      local events = told(options)
      local lock = assert(client:acquire("r", options))
      local token, until_when = lock:token(), helper.now() + 2.5
      repeat
        assert.is_true(lock:check() > 0)
        failure("taken", other:acquire("r"))
        driver.idle(client)
      until helper.now() > until_when
      assert.are.equal(token, lock:token())
      assert.is_nil((lock:lost()))
      assert(lock:release())
      assert(other:acquire("r"))
      assert.are.equal(0, #events)
      assert.is_nil((lock:lost()))
    end)

    test("tells of a lease that was lost, once, and does not take it back", function()
      local options = { ttl = 1500, auto_extend = true }
      local events = told(options)
      local lock = assert(client:acquire("r", options))
      eventually_on_all(lock)
      for index = 1, 3 do farm[index]:command("SET", "r", "somebody else") end
      eventually_told(events, 1)
      assert.are.equal("lost", events[1].reason)
      assert.are.equal("lost", events[1].code)
      assert.are.equal(lock, events[1].lock)
      assert.is_true(events[1].at < 1.5, "after " .. events[1].at)
      assert.is_false(lock:is_held())
      local code, since = lock:lost()
      assert.are.equal("lost", code)
      assert.is_true(since >= 0 and since < 5000)
      local line = debug.getinfo(1, "l").currentline + 1
      local ok, message = pcall(function() lock:check() end)
      assert.is_false(ok)
      local expected = "behaviour.lua:" .. line .. ": redlock: 'r' is not held any more"
      assert.is_truthy(message:find(expected, 1, true), message)
      assert.is_truthy(message:find("(lost)", 1, true), message)
      for index = 1, 3 do farm[index]:command("DEL", "r") end
      local until_when = helper.now() + 0.7
      repeat driver.idle(client) until helper.now() > until_when
      assert.are.equal(0, farm:count("r"))
      assert.are.equal(1, #events)
      failure("lost", lock:release())
    end)

    test("ends with max_hold, and says so", function()
      local options = { ttl = 600, auto_extend = { every = 100, max_hold = 1300 } }
      local events = told(options)
      local lock = assert(client:acquire("r", options))
      local began = helper.now()
      eventually_told(events, 1)
      local held = helper.now() - began
      assert.are.equal("max_hold", events[1].reason)
      assert.is_true(held > 1 and held < 2, "held for " .. held)
      assert.are.equal("max_hold", (lock:lost()))
      eventually_free("r")
      failure("expired", lock:release())
      assert.is_nil((lock:lost()))
    end)

    test("tells that extends fail, and then that the lease has run out", function()
      local options = { ttl = 1200, node_timeout = 100, auto_extend = true }
      local events = told(options)
      local lock = assert(client:acquire("r", options))
      eventually_on_all(lock)
      for index = 1, 3 do farm[index]:stop() end
      eventually_told(events, 1)
      assert.are.equal("unavailable", events[1].reason)
      assert.is_true(events[1].at < 1.2 / 3 + 0.2 + 0.4, "after " .. events[1].at)
      eventually_told(events, 2)
      assert.are.equal("expired", events[2].reason)
      assert.is_false(lock:is_held())
      for index = 1, 3 do farm[index]:continue() end
      local until_when = helper.now() + 0.7
      repeat driver.idle(client) until helper.now() > until_when
      assert.is_false(lock:is_held())
      assert.are.equal(2, #events)
    end)

    test("tells of a lease that does not keep itself, too", function()
      local options = { ttl = 80 }
      local events = told(options)
      local lock = client:lock("r", options)
      assert(lock:acquire())
      eventually_told(events, 1)
      assert.are.equal("expired", events[1].reason)
      assert(lock:acquire({ ttl = 60000 }))
      assert.is_nil((lock:lost()))
      assert(lock:release())
      assert.are.equal(1, #events)
    end)

    test("an operation meets automatic extends without an error", function()
      for round = 1, 30 do
        local lock = assert(client:acquire("r" .. round, { ttl = 4000, auto_extend = { every = 1 } }))
        driver.idle(client)
        failure("held", lock:acquire())
        assert(lock:extend(5000))
        driver.idle(client)
        assert.is_true(lock:is_held())
        assert(lock:release())
        failure("not_held", lock:release())
      end
      for round = 1, 30 do eventually_free("r" .. round) end
    end)

    test("heals a node that lost the key", function()
      local lock = assert(client:acquire("r"))
      eventually_on_all(lock)
      farm[2]:command("DEL", "r")
      assert(lock:extend())
      eventually_on_all(lock)
    end)

    test("lets a lease run out", function()
      local lock = assert(client:acquire("r", { ttl = 60 }))
      run_out(lock)
      assert.is_false(lock:is_held())
      failure("expired", lock:extend())
      eventually_free("r")
      assert(other:acquire("r"))
    end)

    test("names the nodes that are not there", function()
      for index = 3, 5 do farm[index]:kill() end
      local lock = client:lock("r")
      local message = failure("unavailable", lock:acquire())
      for index = 3, 5 do
        assert.is_truthy(message:find(farm.addresses[index], 1, true), message)
      end
      local votes = lock:votes()
      assert.is_truthy(votes[5].vote == "error" or votes[5].vote == "unknown")
      for index, node in ipairs(client:nodes()) do
        assert.are.equal(farm.addresses[index], node.node)
        assert.is_truthy(node.state == "up" or node.state == "connecting" or node.state == "down")
        if index >= 3 then assert.are_not.equal("up", node.state) end
      end
      eventually_free("r")
      local down = helper.eventually(function()
        driver.pump(client)
        local node = client:nodes()[5]
        return node.state == "down" and node
      end)
      assert.is_string(down.error)
    end)

    test("locks with two of five nodes gone, and uses them again when they are back", function()
      farm[1]:kill()
      farm[2]:kill()
      local lock = assert(client:acquire("r"))
      assert(lock:release())
      farm[1]:restart()
      farm[2]:restart()
      helper.eventually(function()
        local again = client:acquire("r")
        driver.pump(client)
        local all = again and farm:count("r", again:token()) == 5
        if again then again:release() end
        return all
      end, "all five nodes to be used again")
    end)

    test("is not held up by a node that hangs", function()
      farm[5]:stop()
      local lock = client:lock("r", { node_timeout = 1000 })
      local before = helper.now()
      assert(lock:acquire())
      assert(lock:extend())
      assert(lock:release())
      assert.is_true(helper.now() - before < 0.5)
      farm[5]:continue()
      eventually_free("r")
    end)

    test("ends an attempt at the node timeout", function()
      for index = 1, 3 do farm[index]:stop() end
      local lock = client:lock("r", { node_timeout = 50 })
      local before = helper.now()
      failure("unavailable", lock:acquire())
      local took = helper.now() - before
      assert.is_true(took > 0.04 and took < 0.5, "took " .. took)
      assert.are.equal("unknown", lock:votes()[1].vote)
      for index = 1, 3 do farm[index]:continue() end
      eventually_free("r")
    end)

    test("waits for a lock as long as it is told", function()
      local held = assert(other:acquire("r", { ttl = 300 }))
      local before = helper.now()
      failure("taken", client:acquire("r", { wait = 100, retry_delay = 20, retry_jitter = 10 }))
      local took = helper.now() - before
      assert.is_true(took > 0.03 and took < 0.3, "took " .. took)
      local lock = assert(client:acquire("r", { wait = 3000, retry_delay = 20, retry_jitter = 10 }))
      assert.is_true(lock:is_held())
      assert.is_false(held:is_held()) -- and was not collected before its time
    end)

    test("tries as often as it is told", function()
      local held = assert(other:acquire("r", { ttl = 5000 }))
      local before = helper.now()
      failure("taken", client:acquire("r", { retry_count = 2, retry_delay = 50, retry_jitter = 0 }))
      local took = helper.now() - before
      assert.is_true(took > 0.095 and took < 0.4, "took " .. took)
      before = helper.now()
      failure("taken", client:acquire("r", { wait = 0, retry_delay = 500 }))
      assert.is_true(helper.now() - before < 0.3)
      assert.is_true(held:is_held())
    end)

    -- Where options are taken: each function makes a client, and returns it with a function that acquires "r" and
    -- then lets `look` look at the lock. `given` is what counts; `wider` stands at the scopes around.
    local places = {
      ["redlock.new"] = function(given)
        local own = driver.new(farm.addresses, given)
        return own, function(look)
          local lock, _, code = own:acquire("r")
          if lock then return look(lock) end
          return code
        end
      end,
      ["client:lock"] = function(given, wider)
        local own = driver.new(farm.addresses, wider)
        return own, function(look)
          local lock = own:lock("r", given)
          local validity, _, code = lock:acquire()
          if validity then return look(lock) end
          return code
        end
      end,
      ["client:acquire"] = function(given, wider)
        local own = driver.new(farm.addresses, wider)
        return own, function(look)
          local lock, _, code = own:acquire("r", given)
          if lock then return look(lock) end
          return code
        end
      end,
      ["client:with"] = function(given, wider)
        local own = driver.new(farm.addresses, wider)
        return own, function(look)
          local ok, seen, code = own:with("r", given, look)
          return ok and seen or code
        end
      end,
      ["lock:acquire"] = function(given, wider)
        local own = driver.new(farm.addresses, wider)
        return own, function(look)
          local lock = own:lock("r", wider)
          local validity, _, code = lock:acquire(given)
          if validity then return look(lock) end
          return code
        end
      end,
    }

    local function everywhere(option, given, wider, check)
      test("goes by " .. option .. " wherever it is given", function()
        for place, make in pairs(places) do
          local own, attempt = make(given, wider)
          local before = helper.now()
          check(place, attempt, function() return helper.now() - before end, own)
          own:close()
          eventually_free("r")
        end
      end)
    end

    local function within(low, value, high, place)
      assert.is_true(value > low and value <= high, place .. ": " .. tostring(value))
    end

    -- A lock that is there before, so that the attempts fail; what counts is how long they take.
    local function refused(low, high)
      return function(place, attempt, took)
        local held = assert(other:acquire("r"))
        assert.are.equal("taken", attempt(error), place)
        within(low, took(), high, place)
        assert(held:release())
      end
    end

    everywhere("ttl", { ttl = 30000 }, { ttl = 5000 }, function(place, attempt)
      within(20000, attempt(function(lock) return lock:remaining() end), 30000, place)
    end)

    everywhere("drift_factor", { drift_factor = 0.5 }, { drift_factor = 0.1 }, function(place, attempt)
      within(4000, attempt(function(lock) return lock:remaining() end), 5000, place)
    end)

    everywhere("lock_delay", { lock_delay = 20000 }, { lock_delay = 100 }, function(place, attempt, _, own)
      within(25000, attempt(function(lock)
        assert.is_true(lock:remaining() <= 10000)
        eventually_on_all(lock, nil, own)
        local left = farm[1]:command("PTTL", "r")
        assert.is_true(lock:is_held()) -- and was no garbage meanwhile
        return left
      end), 30000, place)
    end)

    everywhere("node_timeout", { node_timeout = 60, retry_count = 0 }, { node_timeout = 3000 },
      function(place, attempt, took)
        for index = 1, 3 do farm[index]:stop() end
        assert.are.equal("unavailable", attempt(error), place)
        within(0.05, took(), 1.5, place)
        for index = 1, 3 do farm[index]:continue() end
      end)

    everywhere("retry_count", { retry_count = 2, retry_delay = 40, retry_jitter = 0 }, { retry_count = 0 },
      refused(0.075, 1.5))

    everywhere("retry_delay", { retry_count = 1, retry_delay = 120, retry_jitter = 0 }, { retry_delay = 5000 },
      refused(0.11, 1.5))

    everywhere("retry_jitter", { retry_count = 2, retry_delay = 30, retry_jitter = 0 }, { retry_jitter = 4000 },
      refused(0.055, 1.5))

    everywhere("wait", { wait = 80, retry_delay = 10, retry_jitter = 0 }, { wait = 5000 }, refused(0.03, 1.5))

    test("takes options for one call", function()
      local lock = client:lock("r", { ttl = 1000 })
      assert.is_true(assert(lock:acquire({ ttl = 8000 })) > 7000)
      assert.are.equal(1000, lock:ttl())
    end)

    test("counts a key of another type as taken", function()
      for index = 1, 5 do farm[index]:command("HSET", "r", "field", "1") end
      failure("taken", client:acquire("r"))
    end)

    test("several resources: a lock takes all or none, and each is a plain key", function()
      local lock = client:lock({ "s:a", "s:b", "s:c" }, { ttl = 4000 })
      local validity = assert(lock:acquire())
      assert.is_true(validity > 3000 and validity <= 4000 - 40 - 2, "validity " .. validity)
      for _, key in ipairs(lock:resources()) do eventually_on_all(lock, key) end
      assert.are.same({ "s:a", "s:b", "s:c" }, lock:resources())
      assert.are.equal("s:a", lock:resource())
      assert.is_truthy(tostring(lock):find("s:a and 2 more (held", 1, true), tostring(lock))
      -- Single locks, ours and other libraries', are excluded, and exclude.
      for _, key in ipairs(lock:resources()) do failure("taken", other:acquire(key)) end
      local message = failure("taken", other:acquire { "s:x", "s:c", "s:b" })
      assert.is_truthy(message:find("the lock on 's:x' and 2 more is taken", 1, true), message)
      assert.is_truthy(message:find("'s:c' on 127.0.0.1:", 1, true), message) -- Which nodes, the order of replies says.
      eventually_free("s:x")
      assert(lock:extend(20000))
      for index = 1, 5 do
        local left = farm[index]:command("PTTL", "s:b")
        assert.is_true(left > 15000, "pttl " .. left)
      end
      assert(lock:release())
      for _, key in ipairs { "s:a", "s:b", "s:c" } do eventually_free(key) end
      failure("not_held", lock:release())
      local single = assert(other:acquire("s:b"))
      failure("taken", client:acquire { "s:a", "s:b" })
      eventually_free("s:a")
      assert(single:release())
      assert(lock:acquire())
      assert(lock:release())
    end)

    test("several resources: a node that lost one is healed, and a majority that lost one is told", function()
      local lock = assert(client:acquire { "s:a", "s:b" })
      for _, key in ipairs(lock:resources()) do eventually_on_all(lock, key) end
      farm[2]:command("DEL", "s:b")
      assert(lock:extend())
      eventually_on_all(lock, "s:b")
      for index = 1, 3 do farm[index]:command("DEL", "s:a") end
      failure("lost", lock:extend())
      assert.is_false(lock:is_held())
      eventually_free("s:a")
      eventually_free("s:b")
    end)

    test("several resources: a release leaves what is somebody else's, of another type too", function()
      local lock = assert(client:acquire { "s:a", "s:b", "s:c" })
      for _, key in ipairs(lock:resources()) do eventually_on_all(lock, key) end
      for index = 1, 5 do
        farm[index]:command("DEL", "s:a", "s:b")
        farm[index]:command("HSET", "s:a", "field", "1")
        farm[index]:command("SET", "s:b", "somebody else's")
      end
      failure("lost", lock:release())
      eventually_free("s:c")
      assert.are.equal("hash", farm[3]:command("TYPE", "s:a"))
      assert.are.equal(5, farm:count("s:b", "somebody else's"))
      local message = failure("taken", other:acquire { "s:c", "s:a" })
      assert.is_truthy(message:find("'s:a' on ", 1, true), message)
      eventually_free("s:c")
    end)

    test("several resources: those who want them in another order do not wait for ever", function()
      local first = client:lock({ "s:a", "s:b" }, { wait = 5000, retry_delay = 10, retry_jitter = 5 })
      local second = other:lock({ "s:b", "s:a" }, { wait = 5000, retry_delay = 10, retry_jitter = 5 })
      for _ = 1, 10 do
        assert(first:acquire())
        failure("taken", second:acquire { wait = 0 })
        assert(first:release())
        assert(second:acquire())
        failure("taken", first:acquire { wait = 0 })
        assert(second:release())
      end
    end)

    test("several resources: the scripts are flushed meanwhile", function()
      local lock = client:lock { "s:a", "s:b" }
      for _ = 1, 2 do
        for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
        assert(lock:acquire())
        for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
        assert(lock:extend())
        for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
        assert(lock:release())
      end
      eventually_free("s:a")
      eventually_free("s:b")
    end)

    test("several resources: 64 of them, any bytes, with(), and no more", function()
      local names = {}
      for index = 1, 64 do names[index] = "s:\0 %s\r\n" .. index .. ("x"):rep(index * 40) end
      assert.is_true(client:with(names, function(lock)
        eventually_on_all(lock, names[64])
        eventually_on_all(lock, names[1])
        failure("taken", other:acquire(names[33]))
        assert.are.same(names, lock:resources())
      end))
      eventually_free(names[1])
      eventually_free(names[64])
      names[65] = "s:65"
      local function misuse(text, ...)
        local ok, err = pcall(client.lock, client, ...)
        assert.is_false(ok)
        assert.is_truthy(err:find(text, 1, true), err)
      end
      misuse("a lock has at most 64 resources, got 65", names)
      misuse("resources 1 and 3 of the list are the same", { "a", "b", "a" })
      misuse("resource 2 of the list must be a string, got 7", { "a", 7 })
      misuse("resource 2 of the list must be a string, got nil", { "a", a = "b" })
      misuse("resource must be a string, or a list of strings, got a table", {})
      misuse("resource must be a string, or a list of strings, got a table", { ttl = 1000 })
      misuse("resource is too long: it has 4097 bytes", { "a", ("x"):rep(4097) })
      misuse("resource must be a string, got a boolean", true)
    end)

    test("several resources: a lock that is dropped leaves none of them", function()
      do
        local lock = assert(client:acquire { "s:a", "s:b" })
        eventually_on_all(lock, "s:b")
      end
      collectgarbage()
      collectgarbage()
      eventually_free("s:a")
      eventually_free("s:b")
    end)

    test("passes every byte of a name through", function()
      for _, name in ipairs { "a b", "nul\0nul", "%s%d", "\195\164", "line\r\nbreak", ("x"):rep(1000) } do
        local lock = assert(client:acquire(name))
        assert.are.equal(name, lock:resource())
        eventually_on_all(lock)
        assert(lock:release())
      end
    end)

    test("puts a prefix before the names", function()
      local prefixed = driver.new(farm.addresses, { prefix = "app:" })
      warm(prefixed, "app:")
      local lock = assert(prefixed:acquire("r"))
      assert.are.equal("r", lock:resource())
      eventually_on_all(lock, "app:r", prefixed)
      prefixed:close()
      eventually_free("app:r")
    end)

    test("shows its state, but no token", function()
      local lock = client:lock("orders:42")
      assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
      assert(lock:acquire())
      assert.is_truthy(tostring(lock):match("^redlock%.lock orders:42 %(held, %d+ ms left%)$"))
      assert.is_nil(tostring(lock):find(lock:token(), 1, true))
      local up = 0
      for _, node in ipairs(client:nodes()) do up = up + (node.state == "up" and 1 or 0) end
      assert.is_true(up >= 3)
      assert.are.equal(("redlock.client (%d of 5 nodes connected)"):format(up), tostring(client))
      assert(lock:release())
      assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
      client:close()
      assert.are.equal("redlock.lock orders:42 (not held)", tostring(lock))
      assert.is_truthy(tostring(other:lock("a\0b\27\\")):find("a\\x00b\\x1b\\x5c", 1, true))
      assert.are.equal("redlock.lock \\x1f ~\\x7f (not held)", tostring(other:lock("\31 ~\127")))
      assert.is_truthy(#tostring(other:lock(("x"):rep(4000))) < 200)
      assert.is_truthy(tostring(client):match("^redlock%.client %(%d of 5 nodes connected%)$"))
    end)

    test("releases and refuses after close", function()
      local lock = assert(client:acquire("r"))
      local idle = client:lock("idle")
      local handed = assert(assert(client:acquire("handed")):detach())
      assert.is_true((client:close()))
      eventually_free("r")
      assert.is_true((client:close()))
      assert.are.equal(0, lock:remaining())
      failure("closed", lock:acquire())
      failure("closed", idle:acquire())
      failure("closed", client:acquire("r"))
      failure("closed", client:lock("r"))
      failure("closed", client:with("r", function() error("must not run") end))
      local _, message, code = client:attach(handed)
      assert.are.same({ "the client has been closed", "closed" }, { message, code })
      assert(assert(other:attach(handed)):release())
      assert(other:acquire("r"))
    end)

    local function pack(...) return { n = select("#", ...), ... } end

    test("with: runs, releases, and hands everything through", function()
      local inside
      local results = pack(client:with("r", { ttl = 5000 }, function(lock, ...)
        inside = { lock:is_held(), lock:ttl(), select("#", ...), ... }
        return nil, 2, nil
      end, "a", nil, "c", nil))
      assert.are.same({ n = 4, true, nil, 2, nil }, results)
      assert.are.same({ true, 5000, 4, "a", nil, "c", nil }, inside)
      eventually_free("r")
      assert.are.same({ n = 2, true, 0 }, pack(client:with("r", function(...) return select("#", ...) - 1 end)))
      assert.are.same({ n = 2, true, 1 },
        pack(client:with("r", nil, function(_, ...) return select("#", ...) end, nil)))
    end)

    test("with: a function that returns nothing, or nil and a text, looked like a failure", function()
      assert.are.same({ n = 1, true }, pack(client:with("r", function() end)))
      assert.is_true((assert(client:with("r", function() end))))
      assert.are.same({ n = 4, true, nil, "x", "taken" },
        pack(client:with("r", function() return nil, "x", "taken" end)))
      assert.are.same({ n = 2, true, false }, pack(client:with("r", function() return false end)))
    end)

    test("with: tells why it did not run", function()
      local held = assert(other:acquire("r"))
      failure("taken", client:with("r", function() error("must not run") end))
      assert.is_true(held:is_held())
    end)

    test("with: takes whatever can be called", function()
      local callable = setmetatable({}, { __call = function(self, lock, ...)
        return self, lock:is_held(), ...
      end })
      local locked = setmetatable({}, {
        __metatable = "none of yours",
        __call = function(_, lock) return lock:ttl() end,
      })
      assert.are.same({ n = 4, true, callable, true, "a" }, pack(client:with("r", callable, "a")))
      assert.are.same({ n = 4, true, callable, true, "a" }, pack(client:with("r", { ttl = 5000 }, callable, "a")))
      assert.are.same({ n = 2, true, 10000 }, pack(client:with("r", locked)))
      assert.are.same({ n = 2, true, 5000 }, pack(client:with("r", { ttl = 5000 }, locked)))
    end)

    -- A table that is no options, and options behind options, are the function's.
    test("with: options behind the function were handed to it, and the lock went by the defaults", function()
      local ok, err = pcall(function() client:with("r", function() error("must not run") end, { ttl = 5000 }) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("behaviour.lua:%d+: redlock: with%(%) takes the options before the function"), err)
      assert.is_truthy(err:find("client:with(name, options, fn)", 1, true), err)
      local given = { ttl = 5000 }
      assert.are.same({ n = 2, true, given }, pack(client:with("r", nil, function(_, first) return first end, given)))
      given = { ttl = 5000, name = "x" }
      assert.are.same({ n = 2, true, given }, pack(client:with("r", function(_, first) return first end, given)))
      assert.are.same({ n = 2, true, {} }, pack(client:with("r", function(_, first) return first end, {})))
    end)

    test("with: raises an error again, unchanged, after the release", function()
      local problem = setmetatable({}, { __tostring = function() return "problem" end })
      local ok, err = pcall(function()
        client:with("r", function() error(problem) end)
      end)
      assert.is_false(ok)
      assert.are.equal(problem, err)
      eventually_free("r")
      ok, err = pcall(function()
        client:with("r", function() error("text", 0) end)
      end)
      assert.is_false(ok)
      assert.are.equal("text", err)
      ok, err = pcall(function()
        client:with("r", function() error() end)
      end)
      assert.is_false(ok)
      assert.is_nil(err)
      ok, err = pcall(function()
        client:with("r", function() error("where") end)
      end)
      assert.is_false(ok)
      assert.is_truthy(err:find("behaviour%.lua:%d+: where"), err)
      eventually_free("r")
    end)

    test("with: lost the traceback of the function's error", function()
      local function deep_inside() error("boom") end
      local function work(lock) deep_inside(lock) return true end
      local ok, report = xpcall(function()
        client:with("r", work)
        return true
      end, debug.traceback)
      assert.is_false(ok)
      assert.is_truthy(report:find("behaviour%.lua:%d+: boom"), report)
      local line = debug.getinfo(deep_inside, "S").linedefined
      assert.is_truthy(report:find("behaviour.lua:" .. line .. ": in ", 1, true), report)
      assert.is_truthy(report:find("behaviour.lua:" .. (line + 1) .. ": in ", 1, true), report)
      -- Once is enough.
      ok, report = pcall(function()
        client:with("outer", function() client:with("inner", work) end)
      end)
      assert.is_false(ok)
      assert.is_true(select(2, report:gsub("stack traceback", "")) <= 1, report)
      eventually_free("r")
      eventually_free("outer")
      eventually_free("inner")
    end)

    test("with: a nil that was indexed was left out of the traceback in LuaJIT", function()
      local function index_nil(value) return value.field + 1 end
      local ok, report = pcall(function()
        client:with("r", function() return (index_nil(nil)) end)
      end)
      assert.is_false(ok)
      local line = debug.getinfo(index_nil, "S").linedefined
      if report:find("stack traceback", 1, true) then -- else it passed through as it was
        assert.is_truthy(report:find("\n[^\n]*behaviour.lua:" .. line .. ": in "), report)
      end
      eventually_free("r")
    end)

    test("with: tells that the function outlived its lease", function()
      local result, message, code, first, second = client:with("r", { ttl = 50 }, function(lock)
        run_out(lock)
        return "first", "second"
      end)
      assert.is_nil(result)
      assert.is_string(message)
      assert.are.same({ "expired", "first", "second" }, { code, first, second })
      assert.are.equal("expired", (select(3, client:with("r", { ttl = 50 }, function(lock)
        run_out(lock)
        lock:extend()
      end))))
    end)

    test("with: release_wait = false spares it the wait for its release", function()
      for _ = 1, 20 do
        assert.are.same({ n = 2, true, 5000 }, pack(client:with("r", { release_wait = false, ttl = 5000 },
          function(lock) return lock:ttl() end)))
      end
      eventually_free("r")
      assert.are.same({ n = 2, true, "done" }, pack(client:with("r", { release_wait = false }, function(lock)
        assert(lock:release({ wait = false }))
        return "done"
      end)))
      assert.are.same({ n = 2, true, "done" }, pack(client:with("r", function(lock)
        assert(lock:release({ wait = false }))
        eventually_free("r")
        return "done"
      end)))
      local ok, err = pcall(function() client:with("r", { release_wait = false }, function() error("boom", 0) end) end)
      assert.are.same({ false, "boom" }, { ok, err })
      eventually_free("r")
      ok, err = pcall(function() client:lock("r", { release_wait = false }) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("option 'release_wait' can only be given to client:with()", 1, true), err)
    end)

    test("with: is well when no majority could confirm its release: the lock was held all the time", function()
      assert.are.same({ n = 2, true, "done" }, pack(client:with("r", function(lock)
        eventually_on_all(lock)
        for index = 1, 3 do farm[index]:stop() end
        return "done"
      end)))
    end)

    test("with: tells that the lock was lost when an extend has said so", function()
      local _, _, code, result = client:with("r", function(lock)
        eventually_on_all(lock)
        for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
        failure("lost", lock:extend())
        return "result"
      end)
      assert.are.same({ "lost", "result" }, { code, result })
    end)

    test("with: tells that the lock was lost", function()
      local _, _, code, result = client:with("r", function(lock)
        eventually_on_all(lock)
        for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
        return "result"
      end)
      assert.are.same({ "lost", "result" }, { code, result })
    end)

    test("with: the function may release, and close", function()
      assert.are.same({ true, "done" }, { client:with("r", function(lock)
        assert(lock:release())
        return "done"
      end) })
      assert.are.same({ true, "closed" }, { client:with("r", function()
        client:close()
        return "closed"
      end) })
    end)

    local function reentrant_client(more)
      local options = { retry_count = 0, node_timeout = PATIENCE, reentrant = true }
      for name, value in pairs(more or {}) do options[name] = value end
      local made = driver.new(farm.addresses, options)
      warm(made)
      return made
    end

    test("reentrant: a nested acquire counts, and the last release releases", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 60000 }))
      eventually_on_all(outer, "r", mine)
      local inner = assert(mine:acquire("r", { ttl = 60000 }))
      assert.are.equal(outer:token(), inner:token())
      assert.is_true(inner:is_held() and inner:remaining() > 50000)
      assert(outer:release())
      assert.is_false(outer:is_held())
      assert.is_true(inner:is_held())
      failure("not_held", outer:release())
      failure("taken", other:acquire("r"))
      assert.are.equal(5, farm:count("r"))
      assert(inner:extend())
      assert(inner:release())
      helper.eventually(function()
        driver.pump(mine)
        return farm:count("r") == 0
      end)
      mine:close()
    end)

    test("reentrant: succeeds while no node answers", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 60000 }))
      eventually_on_all(outer, "r", mine)
      for index = 1, 5 do farm[index]:stop() end
      assert(mine:acquire("r", { ttl = 60000 }))
      local message = failure("unavailable", mine:acquire("r", { ttl = 600000, node_timeout = 100 }))
      assert.is_truthy(message:find("only 0 of 5 nodes extended it", 1, true), message)
      assert.is_true(outer:is_held())
    end)

    test("reentrant: extends first when the nested acquire wants more than is left", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 2000 }))
      local inner = assert(mine:acquire("r", { ttl = 60000 }))
      assert.is_true(inner:remaining() > 50000)
      assert.is_true(outer:remaining() > 50000)
      assert(inner:release())
      assert(outer:release())
      mine:close()
    end)

    test("reentrant: with() in with(), and one lock acquired twice", function()
      local mine = reentrant_client()
      assert.are.same({ true, true, "inner", 5 }, { mine:with("r", function(outer)
        eventually_on_all(outer, "r", mine)
        local ok, result = mine:with("r", function() return "inner" end)
        pcall(mine.with, mine, "r", function() error("boom") end)
        assert(outer:acquire())
        assert(outer:release())
        return ok, result, outer:is_held() and farm:count("r")
      end) })
      helper.eventually(function()
        driver.pump(mine)
        return farm:count("r") == 0
      end)
      mine:close()
    end)

    test("reentrant: an owner may have a name, for one lock or one call", function()
      local first = client:lock("r", { reentrant = "job:1" })
      local second = client:lock("r")
      assert(first:acquire())
      failure("taken", second:acquire())
      failure("taken", second:acquire({ reentrant = true }))
      failure("taken", second:acquire({ reentrant = "job:2" }))
      assert(second:acquire({ reentrant = "job:1" }))
      local message = failure("held", second:acquire({ reentrant = "job:2" }))
      assert.are.equal("'r': another owner holds it", message)
      failure("taken", client:acquire("r"))
      assert(first:release())
      assert.is_true(second:is_held())
      assert(second:release())
      assert(client:acquire("r")):release()
      local mine = reentrant_client()
      local held = assert(mine:acquire("r"))
      failure("taken", mine:acquire("r", { reentrant = false }))
      assert(held:release())
      mine:close()
    end)

    test("reentrant: more than is held is refused, for it would wait for itself", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire({ "a", "b" }, { ttl = 60000 }))
      local part = assert(mine:acquire("b", { ttl = 60000 }))
      local message = failure("held", mine:acquire({ "b", "c" }))
      assert.is_truthy(message:find("its owner holds a part of it already", 1, true), message)
      assert(outer:release())
      failure("taken", other:acquire("a"))
      assert(part:release())
      assert(other:acquire("a")):release()
      mine:close()
    end)

    test("reentrant: a lease that has run out, or is lost, is no place to count", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 60 }))
      run_out(outer)
      local message = failure("expired", mine:acquire("r"))
      assert.is_truthy(message:find("has run out or is lost, and is to be released first", 1, true), message)
      outer:release()
      outer = assert(mine:acquire("r", { ttl = 60000 }))
      local inner = assert(mine:acquire("r", { ttl = 60000 }))
      eventually_on_all(outer, "r", mine)
      for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
      failure("lost", inner:extend())
      assert.is_false(outer:is_held())
      assert.are.equal("lost", (outer:lost()))
      failure("lost", mine:acquire("r"))
      failure("lost", outer:release())
      failure("lost", inner:release())
      mine:close()
    end)

    test("reentrant: what is counted cannot be detached", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 60000 }))
      local inner = assert(mine:acquire("r", { ttl = 60000 }))
      local message = failure("held", outer:detach())
      assert.are.equal("its owner has acquired it more than once: the others have to be released first", message)
      failure("held", inner:detach())
      assert(inner:release())
      assert.is_string(outer:detach())
      mine:close()
    end)

    test("reentrant: a nested lock that becomes garbage counts down, and no more", function()
      local mine = reentrant_client()
      local outer = assert(mine:acquire("r", { ttl = 60000 }))
      eventually_on_all(outer, "r", mine)
      local weak = setmetatable({}, { __mode = "v" })
      weak[1] = assert(mine:acquire("r", { ttl = 60000 }))
      helper.eventually(function()
        collectgarbage()
        return weak[1] == nil
      end)
      collectgarbage()
      driver.pump(mine)
      assert.is_true(outer:is_held())
      assert.are.equal(5, farm:count("r"))
      assert(outer:release())
      assert(other:acquire("r")):release()
      mine:close()
    end)

    test("reentrant: the option is checked", function()
      for _, value in ipairs { 1, {}, "", ("x"):rep(64) } do
        local ok, err = pcall(function() client:lock("r", { reentrant = value }) end)
        assert.is_false(ok)
        assert.is_truthy(err:find("behaviour.lua:%d+: redlock: option 'reentrant' must "), err)
      end
      assert(client:lock("r", { reentrant = ("x"):rep(63) }):acquire())
      local ok, err = pcall(driver.new, farm.addresses, { reentrant = "job" })
      assert.is_false(ok)
      assert.is_truthy(err:find("option 'reentrant' must be true or false, got a string", 1, true), err)
    end)

    test("survives that the scripts are flushed", function()
      local lock = assert(client:acquire("r"))
      for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
      assert(lock:extend())
      for index = 1, 5 do farm[index]:command("SCRIPT", "FLUSH") end
      assert(lock:release())
      eventually_free("r")
    end)
  end)
end
