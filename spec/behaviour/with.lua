--- with().

local assert = require "luassert"
local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

return function(behaviour)
  local test = behaviour.test
  local failure = behaviour.failure
  local run_out = behaviour.run_out
  local eventually_on_all = behaviour.eventually_on_all
  local eventually_free = behaviour.eventually_free

  local function pack(...) return { n = select("#", ...), ... } end

  test("with_runs_function_passes_values_and_releases", function(client)
    local inside
    local results = pack(client:with("r", { ttl = 30000 }, function(lock, ...)
      inside = { lock:is_held(), lock:ttl(), select("#", ...), ... }
      return nil, 2, nil
    end, "a", nil, "c", nil))
    assert.are.same({ n = 4, true, nil, 2, nil }, results)
    assert.are.same({ true, 30000, 4, "a", nil, "c", nil }, inside)
    eventually_free("r")
    assert.are.same({ n = 2, true, 0 }, pack(client:with("r", function(...) return select("#", ...) - 1 end)))
    assert.are.same({ n = 2, true, 1 },
      pack(client:with("r", nil, function(_, ...) return select("#", ...) end, nil)))
  end)

  test("with_returns_true_before_the_results_of_the_function", function(client)
    assert.are.same({ n = 1, true }, pack(client:with("r", function() end)))
    assert.is_true((assert(client:with("r", function() end))))
    assert.are.same({ n = 4, true, nil, "x", "taken" },
      pack(client:with("r", function() return nil, "x", "taken" end)))
    assert.are.same({ n = 2, true, false }, pack(client:with("r", function() return false end)))
  end)

  test("with_returns_failure_of_acquire", function(client, other)
    local held = assert(other:acquire("r"))
    failure("taken", client:with("r", function() error("must not run") end))
    assert.is_true(held:is_held())
  end)

  test("with_accepts_callable_objects", function(client)
    local callable = setmetatable({}, { __call = function(self, lock, ...)
      return self, lock:is_held(), ...
    end })
    local locked = setmetatable({}, {
      __metatable = "none of yours",
      __call = function(_, lock) return lock:ttl() end,
    })
    assert.are.same({ n = 4, true, callable, true, "a" }, pack(client:with("r", callable, "a")))
    assert.are.same({ n = 4, true, callable, true, "a" }, pack(client:with("r", { ttl = 30000 }, callable, "a")))
    assert.are.same({ n = 2, true, 10000 }, pack(client:with("r", locked)))
    assert.are.same({ n = 2, true, 30000 }, pack(client:with("r", { ttl = 30000 }, locked)))
  end)

  -- A table that is no options, and options behind options, are the function's.
  test("with_refuses_options_after_the_function", function(client)
    local ok, err = pcall(function() client:with("r", function() error("must not run") end, { ttl = 30000 }) end)
    assert.is_false(ok)
    assert.is_truthy(err:find("with.lua:%d+: redlock: with%(%) takes the options before the function"), err)
    assert.is_truthy(err:find("client:with(name, options, fn)", 1, true), err)
    local given = { ttl = 30000 }
    assert.are.same({ n = 2, true, given }, pack(client:with("r", nil, function(_, first) return first end, given)))
    given = { ttl = 30000, name = "x" }
    assert.are.same({ n = 2, true, given }, pack(client:with("r", function(_, first) return first end, given)))
    assert.are.same({ n = 2, true, {} }, pack(client:with("r", function(_, first) return first end, {})))
  end)

  test("with_raises_error_of_function_after_release", function(client)
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
    assert.are.equal(select(2, pcall(error)), err) -- Lua 5.5 has an error object for no value.
    ok, err = pcall(function()
      client:with("r", function() error("where") end)
    end)
    assert.is_false(ok)
    assert.is_truthy(err:find("with%.lua:%d+: where"), err)
    eventually_free("r")
  end)

  test("with_keeps_traceback_of_error", function(client)
    local function deep_inside() error("boom") end
    local function work(lock) deep_inside(lock) return true end
    local ok, report = xpcall(function()
      client:with("r", work)
      return true
    end, debug.traceback)
    assert.is_false(ok)
    assert.is_truthy(report:find("with%.lua:%d+: boom"), report)
    local line = debug.getinfo(deep_inside, "S").linedefined
    assert.is_truthy(report:find("with.lua:" .. line .. ": in ", 1, true), report)
    assert.is_truthy(report:find("with.lua:" .. (line + 1) .. ": in ", 1, true), report)
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

  test("with_keeps_traceback_of_indexed_nil", function(client)
    local function index_nil(value) return value.field + 1 end
    local ok, report = pcall(function()
      client:with("r", function() return (index_nil(nil)) end)
    end)
    assert.is_false(ok)
    local line = debug.getinfo(index_nil, "S").linedefined
    if report:find("stack traceback", 1, true) then -- else it passed through as it was
      assert.is_truthy(report:find("\n[^\n]*with.lua:" .. line .. ": in "), report)
    end
    eventually_free("r")
  end)

  test("with_reports_that_lease_expired_during_function", function(client)
    -- A slow machine may not even grant a lease of 50 ms.
    local function with_short_lease(fn)
      local results
      helper.eventually(function()
        local ran = false
        results = pack(client:with("r", { ttl = 50 }, function(lock)
          ran = true
          return fn(lock)
        end))
        return ran
      end, "a lock of 50 ms")
      return unpack(results, 1, results.n)
    end
    local result, message, code, first, second = with_short_lease(function(lock)
      run_out(lock)
      return "first", "second"
    end)
    assert.is_nil(result)
    assert.is_string(message)
    assert.are.same({ "expired", "first", "second" }, { code, first, second })
    assert.are.equal("expired", (select(3, with_short_lease(function(lock)
      run_out(lock)
      lock:extend()
    end))))
  end)

  test("with_release_wait_false_does_not_wait_for_release", function(client)
    for _ = 1, 20 do
      assert.are.same({ n = 2, true, 30000 }, pack(client:with("r", { release_wait = false, ttl = 30000 },
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
    ok, err = pcall(function() client:new_lock("r", { release_wait = false }) end)
    assert.is_false(ok)
    assert.is_truthy(err:find("option 'release_wait' can only be given to client:with()", 1, true), err)
  end)

  test("with_succeeds_when_release_is_not_confirmed",
    function(client, _, farm)
    helper.unless_stalled(50, function()
      for index = 1, 3 do farm[index]:continue() end
      eventually_free("r")
      assert.are.same({ n = 2, true, "done" }, pack(client:with("r", { node_timeout = 100 }, function(lock)
        eventually_on_all(lock)
        for index = 1, 3 do farm[index]:stop() end
        return "done"
      end)))
    end)
  end)

  test("with_reports_loss_after_failed_extend", function(client, _, farm)
    local _, _, code, result = client:with("r", function(lock)
      eventually_on_all(lock)
      for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
      failure("lost", lock:extend())
      return "result"
    end)
    assert.are.same({ "lost", "result" }, { code, result })
  end)

  test("with_reports_loss", function(client, _, farm)
    local _, _, code, result = client:with("r", function(lock)
      eventually_on_all(lock)
      for index = 1, 5 do farm[index]:command("SET", "r", "somebody else") end
      return "result"
    end)
    assert.are.same({ "lost", "result" }, { code, result })
  end)

  test("function_of_with_releases_or_closes", function(client)
    assert.are.same({ true, "done" }, { client:with("r", function(lock)
      assert(lock:release())
      return "done"
    end) })
    assert.are.same({ true, "closed" }, { client:with("r", function()
      client:close()
      return "closed"
    end) })
  end)
end
