local helper = require "spec.helper"
local redlock = require "redlock"

describe("<close>", function()
  local farm, client

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function()
    farm:reset()
    client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
  end)
  after_each(function() client:close() end)

  it("end_of_scope_waits_for_release", function()
    local kept
    do
      local lock <close> = assert(client:acquire("r"))
      kept = lock
      assert.is_true(lock:is_held())
    end
    assert.is_true(farm:count("r") <= 2, "a majority has to be free at once")
    assert.is_false(kept:is_held())
    assert.are.equal("redlock.lock r (not held)", tostring(kept))
    assert.are.equal("not_held", select(3, kept:release()))
    farm:eventually_free("r")
  end)

  it("break_return_and_error_release_and_keep_the_error", function()
    for index = 1, 2 do
      local lock <close> = assert(client:acquire("break"))
      if index == 1 and lock then break end
    end
    local function leave()
      local lock <close> = assert(client:acquire("return"))
      return lock:resource()
    end
    assert.are.equal("return", leave())
    local problem = {}
    local ok, err = pcall(function()
      local lock <close> = assert(client:acquire("error"))
      error(lock and problem)
    end)
    assert.is_false(ok)
    assert.are.equal(problem, err)
    for _, name in ipairs { "break", "return", "error" } do farm:eventually_free(name) end
  end)

  it("close_accepts_nil_of_failed_acquire", function()
    local held <close> = assert(client:acquire("r"))
    local lock <close> = client:acquire("r")
    assert.is_nil(lock)
    assert.is_true(held:is_held())
  end)

  it("end_of_scope_is_bounded_by_node_timeout", function()
    local before
    do
      local lock <close> = helper.eventually(function() return (client:acquire("r", { node_timeout = 50 })) end)
      assert(lock)
      for index = 1, 3 do farm[index]:stop() end
      before = helper.now()
    end
    local took = helper.now() - before
    for index = 1, 3 do farm[index]:continue() end
    assert.is_true(took < 10, "took " .. took)
  end)

  it("end_of_scope_ignores_lock_that_is_not_held", function()
    do
      local released <close> = assert(client:acquire("a"))
      assert(released:release())
      local lost <close> = assert(client:acquire("b"))
      assert(lost)
      for index = 1, 5 do farm[index]:command("SET", "b", "somebody else") end
      local never <close> = client:new_lock("c")
      assert(never)
    end
    assert.are.equal("somebody else", farm[1]:command("GET", "b"))
  end)

  it("end_of_scope_cancels_acquire_in_flight", function()
    do
      local lock <close> = client:new_lock("r")
      assert(lock:start("acquire"))
      client:process()
    end
    helper.eventually(function()
      client:process()
      return farm:count("r") == 0
    end)
  end)

  it("end_of_scope_releases_lock_whose_extend_is_in_flight", function()
    local kept
    do
      local lock <close> = assert(client:acquire("r"))
      kept = lock
      assert(lock:start("extend", 30000))
      client:process()
    end
    assert.is_false(kept:is_held())
    assert.are.equal("redlock.lock r (not held)", tostring(kept))
    assert.is_true(farm:count("r") <= 2, "a majority has to be free at once")
    assert.are.equal("not_held", select(3, kept:release()))
    farm:eventually_free("r")
  end)

  it("end_of_scope_completes_release_in_flight", function()
    do
      local lock <close> = assert(client:acquire("r"))
      assert(lock:start("release"))
    end
    helper.eventually(function()
      client:process()
      return farm:count("r") == 0
    end)
  end)

  it("end_of_scope_is_bounded_with_operation_in_flight", function()
    for _, operation in ipairs { "acquire", "extend", "release" } do
      local before
      do
        local lock <close> = client:new_lock("r", { node_timeout = 50 })
        if operation ~= "acquire" then helper.eventually(function() return (lock:acquire()) end, "a lock") end
        for index = 1, 3 do farm[index]:stop() end
        before = helper.now()
        assert(lock:start(operation))
        client:process()
      end
      local took = helper.now() - before
      for index = 1, 3 do farm[index]:continue() end
      assert.is_true(took < 10, operation .. " took " .. took)
      helper.eventually(function()
        client:process()
        return farm:count("r") == 0
      end, "the key to be gone after " .. operation)
    end
  end)

  it("end_of_scope_keeps_error_with_operation_in_flight", function()
    local problem = {}
    local ok, err = pcall(function()
      local lock <close> = assert(client:acquire("r"))
      assert(lock:start("extend"))
      error(problem)
    end)
    assert.is_false(ok)
    assert.are.equal(problem, err)
    farm:eventually_free("r")
  end)

  it("end_of_scope_releases_lock_of_waiting_coroutine", function()
    local cqueues = require "cqueues"
    for _, operation in ipairs { "acquire", "extend" } do
      local waiting = require("redlock.cqueues").new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
      local controller, results, kept = cqueues.new(), nil, nil
      controller:wrap(function()
        do
          local lock <close> = waiting:new_lock("r")
          kept = lock
          if operation == "extend" then assert(lock:acquire()) end
          for index = 1, 3 do farm[index]:stop() end
          cqueues.running():wrap(function() results = { lock[operation](lock) } end)
          cqueues.sleep(0.02)
          for index = 1, 3 do farm[index]:continue() end
        end
        assert.is_false(kept:is_held())
      end)
      assert(controller:loop(60))
      assert.is_nil(results[1])
      assert.are.equal("cancelled", results[3])
      helper.eventually(function()
        waiting.handle:process()
        return farm:count("r") == 0
      end)
      waiting:close()
    end
  end)

  it("end_of_scope_closes_client", function()
    local lock
    do
      local scoped <close> = redlock.new(farm.addresses, { node_timeout = 20000 })
      lock = assert(scoped:acquire("r"))
    end
    assert.are.equal("closed", select(3, lock:acquire()))
    farm:eventually_free("r")
  end)

  it("closing_coroutine_inside_with_releases", function()
    local kept -- or it would be garbage
    local co = coroutine.create(function()
      client:with("r", function(lock)
        kept = lock
        coroutine.yield()
      end)
    end)
    assert(coroutine.resume(co))
    assert.is_true(farm:count("r") >= 3)
    assert(coroutine.close(co))
    assert.is_false(kept:is_held())
    assert.is_true(farm:count("r") <= 2, "a majority has to be free at once")
    farm:eventually_free("r")
  end)
end)
