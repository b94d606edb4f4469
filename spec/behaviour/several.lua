--- One lock on several resources.

local assert = require "luassert"

return function(behaviour)
  local test = behaviour.test
  local once = behaviour.once
  local failure = behaviour.failure
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free

  test("lock_on_several_resources_takes_all_or_none", function(client, other, farm)
    local lock = client:new_lock({ "s:a", "s:b", "s:c" }, { ttl = 60000 })
    local validity = assert(lock:acquire())
    assert.is_true(validity > 30000 and validity <= 60000 - 600 - 2, "validity " .. validity)
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
    assert(lock:extend(120000))
    for index = 1, 5 do
      local left = farm[index]:command("PTTL", "s:b")
      assert.is_true(left > 60000, "pttl " .. left)
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

  once("extend_restores_one_of_several_resources",
    function(client, _, farm)
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

  once("release_of_several_resources_leaves_foreign_keys",
    function(client, other, farm)
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

  test("acquires_in_opposite_order_do_not_deadlock", function(client, other)
    local first = client:new_lock({ "s:a", "s:b" }, { wait = 60000, retry_delay = 10, retry_jitter = 5 })
    local second = other:new_lock({ "s:b", "s:a" }, { wait = 60000, retry_delay = 10, retry_jitter = 5 })
    for _ = 1, 3 do
      assert(first:acquire())
      failure("taken", second:acquire { wait = 0 })
      assert(first:release())
      assert(second:acquire())
      failure("taken", first:acquire { wait = 0 })
      assert(second:release())
    end
  end)

  once("lock_on_several_resources_works_after_script_flush", function(client, _, farm)
    local lock = client:new_lock { "s:a", "s:b" }
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

  once("lock_has_at_most_64_resources_of_any_bytes", function(client, other)
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
      local ok, err = pcall(client.new_lock, client, ...)
      assert.is_false(ok)
      assert.is_truthy(err:find(text, 1, true), err)
    end
    misuse("a lock has at most 64 resources, got 65", names)
    misuse("resources 1 and 3 of the list are the same", { "a", "b", "a" })
    misuse("resource 2 of the list must be a string, got 7", { "a", 7 })
    misuse("resource 2 of the list must be a string, got nil", { "a", a = "b" })
    misuse("the list of resources is empty; name at least one", {})
    misuse("resource must be a string, or a list of strings, got a table without [1]", { ttl = 1000 })
    misuse("resource is too long: it has 4097 bytes", { "a", ("x"):rep(4097) })
    misuse("resource must be a string, got a boolean", true)
  end)

  test("collected_lock_on_several_resources_leaves_no_key", function(client)
    do
      local lock = assert(client:acquire { "s:a", "s:b" })
      eventually_on_all(lock, "s:b")
    end
    collectgarbage()
    collectgarbage()
    eventually_free("s:a")
    eventually_free("s:b")
  end)
end
