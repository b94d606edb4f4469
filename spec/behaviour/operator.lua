--- An operator's calls: inspect(), force_release(), doctor(), bootstrap().

local assert = require "luassert"
local helper = require "spec.helper"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local warm = behaviour.warm
  local eventually_on_all = behaviour.eventually_on_all
  local driver = behaviour.driver
  local PATIENCE = behaviour.patience

  test("inspect_returns_keys_of_all_nodes_and_the_holder", function(client, other, farm)
    local seen = assert(other:inspect("r"))
    assert.is_nil(seen.holder)
    assert.is_nil(seen.ttl)
    for index, row in ipairs(seen.nodes) do
      assert.are.same({ node = farm.addresses[index], state = "free" }, row)
    end
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock)
    seen = assert(other:inspect("r"))
    assert.are.equal(lock:token(), seen.holder)
    assert.is_true(seen.ttl > 30000 and seen.ttl <= 60000, "ttl " .. seen.ttl)
    assert.are.equal(5, #seen.nodes)
    for index, row in ipairs(seen.nodes) do
      assert.are.equal(farm.addresses[index], row.node)
      assert.are.equal("held", row.state)
      assert.are.equal(lock:token(), row.token)
      assert.is_true(row.ttl > 30000 and row.ttl <= 60000)
    end
    assert.is_true(lock:is_held())
    assert(lock:extend())
  end)

  once("inspect_reports_foreign_keys", function(client, _, farm)
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
    assert.is_true(seen.nodes[3].ttl > 30000 and seen.nodes[3].ttl <= 60000)
    assert.are.same({ node = farm.addresses[4], state = "held", token = "" }, seen.nodes[4])
    assert.are.same({ node = farm.addresses[5], state = "free" }, seen.nodes[5])
    failure("taken", client:acquire("r"))
  end)

  test("inspect_reports_unreachable_nodes", function(client, _, farm)
    local quick = driver.new(farm.addresses, { retry_count = 0, node_timeout = 200 })
    local lock = assert(client:acquire("r", { ttl = 60000 }))
    eventually_on_all(lock)
    farm[1]:kill()
    farm[2]:stop()
    local seen
    helper.unless_stalled(100, function()
      seen = assert(quick:inspect("r"))
      assert.are.equal(lock:token(), seen.holder)
    end)
    assert.are.equal("unknown", seen.nodes[1].state)
    assert.is_string(seen.nodes[1].error)
    assert.are.equal("unknown", seen.nodes[2].state)
    assert.is_string(seen.nodes[2].error)
    farm[3]:kill()
    helper.unless_stalled(100, function()
      seen = assert(quick:inspect("r"))
      assert.are.equal("held", seen.nodes[4].state)
    end)
    assert.is_nil(seen.holder)
    assert.are.equal("unknown", seen.nodes[3].state)
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
    local made = driver.new(behaviour.farm.addresses,
      { guard = guard or { max_ttl = 20000 }, retry_count = 0, node_timeout = PATIENCE })
    return made
  end

  test("guard_quarantines_new_nodes_until_bootstrap", function(_, _, farm)
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

  once("guard_quarantines_flushed_node_for_max_ttl",
    function(_, _, farm)
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
    assert.is_true(node.quarantined > 10000 and node.quarantined <= 24002, node.quarantined)
    assert.is_truthy(node.quarantine:find("^for %d+%.%d s more: it has no record"), node.quarantine)
    local second = assert(mine:acquire("second"))
    assert.are.equal("quarantined", second:votes()[2].vote)
    assert.is_truthy(second:votes()[2].error:find("it has no record", 1, true))
    assert(lock:release())
    assert(second:release())
    mine:close()
  end)

  once("guard_reports_clients_with_different_options", function()
    local mine, theirs = guarded(), guarded({ max_ttl = 15000 })
    assert.is_true((mine:bootstrap()))
    local message = failure("unavailable", theirs:acquire("r"))
    local said = "it is guarded for other clients: max_ttl=20000 (ours max_ttl=15000)"
    assert.is_truthy(message:find(said, 1, true), message)
    mine:close()
    theirs:close()
  end)

  once("node_after_swapdb_says_how_to_recover_and_recovers_so", function(_, _, farm)
    local mine = guarded()
    assert.is_true((mine:bootstrap()))
    assert(assert(mine:acquire("r")):release())
    for index = 1, 3 do farm[index]:command("SWAPDB", "0", "1") end
    -- Clients that know the record go on with its seal, which is in the other database now.
    local other = guarded()
    local hint = "guarded for other clients: prefix=da39a3ee/ database=1 (ours prefix=da39a3ee/); "
      .. "if it has no others, delete redlock:lineage* in all its databases"
    helper.eventually(function() return failure("unavailable", other:acquire("r")):find(hint, 1, true) end, "the hint")
    for index = 1, 3 do
      farm[index]:command("EVAL", "for db = 0, 15 do redis.call('SELECT', db) "
        .. "for _, key in ipairs(redis.call('KEYS', 'redlock:lineage*')) do redis.call('DEL', key) end end", "0")
    end
    helper.eventually(function()
      other:acquire("r")
      for index = 1, 3 do
        local node = other:nodes()[index]
        if not node.quarantine or node.quarantine:find("guarded for other", 1, true) then return false end
      end
      return true
    end, "the nodes to be quarantined, not refused")
    assert.is_true((other:bootstrap()))
    assert(assert(other:acquire("r")):release())
    mine:close()
    other:close()
  end)

  test("guard_option_is_checked", function(client, _, farm)
    local function complaint(fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("operator.lua:%d+: redlock: "), err)
      return err
    end
    local mine = guarded()
    assert.is_truthy(complaint(function() return (mine:new_lock("r", { ttl = 20001 })) end):find("max_ttl", 1, true))
    local lock = mine:new_lock("r")
    assert.is_truthy(complaint(function() local _ = lock:acquire({ ttl = 20001 }) end):find("max_ttl", 1, true))
    assert.is_truthy(complaint(function() local _ = lock:extend(20001) end):find("max_ttl", 1, true))
    assert.are.equal("not_held", select(3, lock:extend(20000)))
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

  -- A client of whose options the doctor has nothing to say.
  local function calm_client()
    return driver.new(behaviour.farm.addresses, { retry_count = 0, node_timeout = PATIENCE, ttl = 4 * PATIENCE })
  end

  test("doctor_finds_only_persistence_on_healthy_nodes", function(client, _, farm)
    local calm = calm_client()
    local findings = assert(calm:doctor())
    assert.are.equal("", names_of(findings))
    assert.are.equal("persistence", findings[1].name)
    assert.are.equal("warning", findings[1].severity)
    assert.are.equal(farm.addresses[1], findings[1].node)
    assert.is_truthy(findings[1].message:find(farm.addresses[1] .. " forgets its latest locks", 1, true))
    local lock = assert(client:acquire("redlock-doctor"))
    assert.are.equal("", names_of(assert(calm:doctor())))
    assert.is_true(lock:is_held())
    assert(lock:release())
    calm:close()
  end)

  once("doctor_reports_unreachable_evicting_refusing_nodes_and_endless_keys",
    function(_, _, farm)
    local calm = calm_client()
    farm[1]:kill()
    farm[2]:command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    farm[2]:command("CONFIG", "SET", "maxmemory", "100mb")
    farm[4]:command("SET", "lost", ("ab"):rep(20))
    farm[4]:command("SET", "taken", ("ab"):rep(20), "PX", "60000")
    farm[4]:command("SET", "a number", "12345678901234567890")
    assert.are.equal("error down " .. farm.addresses[1] .. "\nerror eviction " .. farm.addresses[2],
      names_of(assert(calm:doctor())))
    local findings = assert(calm:doctor({ keys = true }))
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
    calm:close()
  end)

  test("doctor_reports_without_majority_and_refuses_closed_client",
    function(client, _, farm)
    for index = 1, 3 do farm[index]:kill() end
    local findings = assert(client:doctor())
    assert.are.equal(3, select(2, names_of(findings):gsub("error down ", "")))
    client:close()
    failure("closed", client:doctor())
  end)

  test("doctor_options_are_checked", function(client)
    local function complaint(fn)
      local ok, err = pcall(fn)
      assert.is_false(ok)
      assert.is_truthy(err:find("operator.lua:%d+: redlock: "), err)
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

  once("doctor_reports_missing_rights_of_ACL", function(_, _, farm)
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

  test("force_release_deletes_only_the_given_token", function(client, other, farm)
    local lock = assert(client:acquire("r"))
    eventually_on_all(lock)
    local message = failure("not_held", other:force_release("r", "not the token"))
    assert.is_truthy(message:find("no node that answered has such a key: the lock is free", 1, true), message)
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

  once("force_release_any_deletes_every_token", function(client, _, farm)
    for index = 1, 5 do farm[index]:command("HSET", "r", "field", "1") end
    failure("taken", client:acquire("r"))
    assert.are.equal(5, (client:force_release("r", "any")))
    failure("not_held", client:force_release("r", "any"))
    assert(client:acquire("r"))
  end)

  test("force_release_needs_token_and_majority", function(client, _, farm)
    for _, wrong in ipairs { false, 5, {}, ("x"):rep(257) } do
      local ok, err = pcall(function() client:force_release("r", wrong or nil) end)
      assert.is_false(ok)
      assert.is_truthy(err:find("operator.lua:%d+: redlock: client:force_release%(%): token "), err)
    end
    local ok, err = pcall(function() client:inspect(nil) end)
    assert.is_false(ok)
    assert.is_truthy(err:find("operator.lua:%d+: redlock: resource must be a string"), err)
    for index = 1, 3 do farm[index]:kill() end
    local message = failure("unavailable", client:force_release("r", "any"))
    assert.is_truthy(message:find(farm.addresses[1], 1, true), message)
  end)
end
