local behaviour = require "spec.behaviour"
local helper = require "spec.helper"

local cqueues = require "cqueues"
local redlock = require "redlock.cqueues"

-- The pcall of PUC Lua 5.1 cannot be yielded across, which is what with() would have to do.
if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then return end

describe("redlock.cqueues", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)

  local function run(...)
    local controller = cqueues.new()
    for index = 1, select("#", ...) do controller:wrap((select(index, ...))) end
    local deadline = helper.now() + 9
    while not controller:empty() do
      local ok, err = controller:step(1)
      if not ok then error(err, 0) end
      if helper.now() > deadline then error("the coroutines did not come to an end", 0) end
    end
  end

  behaviour("waiting in a coroutine", {
    new = redlock.new,
    run = run,
    pump = function(client) client.handle:process() end,
    farm = function() return farm end,
    describe = describe,
    it = it,
  })

  it("raises at the caller's line", function()
    local client = redlock.new(farm.addresses)
    local lock = client:lock("r")
    local bad = { ttl = -5 }
    local text = "option 'ttl' must be an integer >= 1 (milliseconds), got -5"
    for _, fn in ipairs {
      function() redlock.new(farm.addresses, bad) end,
      function() client:lock("r", bad) end,
      function() client:acquire("r", bad) end,
      function() client:with("r", bad, print) end,
      function() lock:acquire(bad) end,
    } do
      local ok, err = pcall(fn)
      local line = debug.getinfo(fn, "S").linedefined
      assert.is_false(ok)
      assert.are.equal("spec/cqueues_spec.lua:" .. line .. ": redlock: " .. text, (err:gsub("^%./", "")))
    end
    for _, fn in ipairs {
      function() lock.acquire() end,
      function() lock.release({}) end,
      function() lock.remaining(5) end,
      function() lock:extend(-1) end,
    } do
      local ok, err = pcall(fn)
      local line = debug.getinfo(fn, "S").linedefined
      assert.is_false(ok)
      assert.is_truthy(err:find("cqueues_spec.lua:" .. line .. ": redlock: lock:", 1, true), err)
    end
  end)

  it("twenty coroutines share a client, and other coroutines run meanwhile", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 2000 })
    local done, ticks, workers = 0, 0, {}
    for index = 1, 20 do
      workers[index] = function()
        for round = 1, 10 do
          local lock = assert(client:acquire("r" .. index .. ":" .. round))
          assert(lock:extend())
          assert(lock:release())
        end
        done = done + 1
      end
    end
    workers[21] = function()
      while done < 20 do
        ticks = ticks + 1
        cqueues.sleep(0.001)
      end
    end
    run((table.unpack or unpack)(workers))
    assert.are.equal(20, done)
    assert.is_true(ticks > 3, "ticks " .. ticks)
    helper.eventually(function() return farm[1]:command("DBSIZE") == 0 end)
    client:close()
  end)

  it("twenty coroutines fight for one name, and never two have it", function()
    farm:reset()
    local client = redlock.new(farm.addresses)
    local holders, most, count, workers = 0, 0, 0, {}
    for index = 1, 20 do
      workers[index] = function()
        assert(client:with("r", { wait = 9000, retry_delay = 5, retry_jitter = 5 }, function()
          holders = holders + 1
          most = math.max(most, holders)
          cqueues.sleep(0.002)
          holders = holders - 1
          count = count + 1
          return true
        end))
      end
    end
    run((table.unpack or unpack)(workers))
    assert.are.equal(20, count)
    assert.are.equal(1, most)
    client:close()
  end)

  it("a waiting coroutine does not hold up the others when nodes hang", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 400 })
    local slow, quick
    run(function()
      assert(assert(client:acquire("warm")):release())
      for index = 1, 3 do farm[index]:stop() end
      local started = helper.now()
      cqueues.running():wrap(function()
        cqueues.sleep(0.05)
        quick = helper.now() - started
      end)
      assert.are.equal("unavailable", select(3, client:acquire("r")))
      slow = helper.now() - started
    end)
    for index = 1, 3 do farm[index]:continue() end
    assert.is_true(slow > 0.3, "slow " .. slow)
    assert.is_true(quick < 0.3, "quick " .. quick)
    client:close()
  end)

  it("a controller that gets no turn does not hold up the coroutines of another", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 3000 })
    run(function() assert(assert(client:acquire("warm")):release()) end)
    local outer, outcome = cqueues.new(), nil
    for index = 1, 5 do farm[index]:stop() end
    outer:wrap(function() outcome = { client:acquire("outer") } end)
    assert(outer:step(0))
    for index = 1, 5 do farm[index]:continue() end
    local started = helper.now()
    run(function()
      for round = 1, 10 do
        local lock = assert(client:acquire("inner" .. round))
        assert(lock:release())
      end
    end)
    assert.is_true(helper.now() - started < 1.5, "took " .. helper.now() - started)
    assert.is_nil(outcome)
    helper.eventually(function()
      assert(outer:step(0))
      return outcome
    end)
    assert.is_true(outcome[1]:is_held())
    client:close()
  end)

  it("clients come and go in a running controller, closed or collected", function()
    farm:reset()
    run(function()
      for round = 1, 10 do
        local client = redlock.new(farm.addresses)
        local lock = assert(client:acquire("r" .. round))
        if round % 2 == 0 then assert(client:close()) end
        assert.are.equal("r" .. round, lock:resource())
        client, lock = nil, nil -- luacheck: ignore
        collectgarbage()
        collectgarbage()
        cqueues.sleep(0.001) -- the controller looks at its descriptors
      end
    end)
    local other = redlock.new(farm.addresses)
    helper.eventually(function()
      other.handle:process()
      for _, node in ipairs(farm) do
        if node:command("DBSIZE") ~= 0 then return false end
      end
      return true
    end, "all keys to be gone")
    other:close()
  end)

  it("cancels and closes from another coroutine", function()
    farm:reset()
    local client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 1000 })
    local lock, codes, took = client:lock("r"), {}, {}
    for index = 1, 5 do farm[index]:stop() end
    local started = helper.now()
    run(function()
      codes[1] = select(3, lock:acquire())
      took[1] = helper.now() - started
    end, function()
      codes[2] = select(3, client:acquire("other"))
      took[2] = helper.now() - started
    end, function()
      cqueues.sleep(0.02)
      lock:cancel()
      cqueues.sleep(0.02)
      client:close()
    end)
    assert.are.same({ "cancelled", "closed" }, codes)
    assert.is_true(took[1] < 0.5 and took[2] < 0.5, "not ended at once")
    assert.is_true(helper.now() - started < 3, "closing waits for one node timeout")
    for index = 1, 5 do farm[index]:continue() end
    farm:eventually_free("r")
    farm:eventually_free("other")
  end)
end)
