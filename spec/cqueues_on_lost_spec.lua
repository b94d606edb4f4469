-- on_lost in cqueues, in all versions of Lua: that of 5.1 has no pcall that can be yielded across.

local helper = require "spec.helper"

local cqueues = require "cqueues"
local core = require "redlock.core"
local redlock = require "redlock.cqueues"

describe("on_lost in a coroutine of cqueues", function()
  local farm

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  local function run(fn)
    local controller = cqueues.new()
    controller:wrap(fn)
    assert(controller:loop(100))
    assert.is_true(controller:empty())
  end

  it("on_lost_yields_in_lua_5_1", function()
    local client = redlock.new(farm.addresses, { ttl = 60000, node_timeout = 20000 })
    local seen = {}
    run(function()
      local lock = assert(client:acquire("r", { ttl = 300, wait = 60000, on_lost = function(lost, reason)
        seen.reason = reason
        cqueues.sleep(0.05)
        seen.validity = lost:acquire({ ttl = 60000 })
        seen.other = client:acquire("other")
        seen.released = lost:release()
      end }))
      repeat cqueues.sleep(0.01) until seen.released ~= nil
      seen.again = lock:acquire({ ttl = 60000 })
      assert(lock:release())
      assert(seen.other:release())
    end)
    assert.are.equal("expired", seen.reason)
    assert.is_number(seen.validity)
    assert.is_table(seen.other)
    assert.is_true(seen.released)
    assert.is_number(seen.again)
    client:close()
  end)

  it("nested_loop_ends_while_outer_loop_auto_extends", function()
    local client = redlock.new(farm.addresses, { ttl = 60000, node_timeout = 20000, auto_extend = { every = 50 } })
    run(function()
      local outer = assert(client:acquire("outer"))
      local inner = cqueues.new()
      inner:wrap(function() assert(assert(client:acquire("inner")):release()) end)
      assert(inner:loop(60))
      assert.is_true(inner:empty())
      local left = outer:remaining()
      repeat -- until it is extended
        cqueues.sleep(0.01)
        local before = left
        left = outer:remaining()
      until left > before
      assert(outer:release())
    end)
    client:close()
  end)

  it("next_call_reports_loss_outside_controller", function()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local reported
    local function on_lost(lost, reason) reported = { lost, reason } end
    local lock = assert(client:acquire("r", { ttl = 100, wait = 60000, on_lost = on_lost }))
    helper.eventually(function()
      lock:result()
      return reported
    end, "the loss to be reported")
    assert.are.same({ lock, "expired" }, reported)
    client:close()
  end)

  it("error_in_serving_coroutine_stops_no_waiter", function()
    local client, ended = redlock.new(farm.addresses, { node_timeout = 20000 }), 0
    local controller, process, callers, raised = cqueues.new(), core.client_methods.process, {}, false
    for index = 1, 10 do
      controller:wrap(function()
        callers[coroutine.running()] = true
        for _ = 1, 10 do assert(assert(client:acquire("r" .. index)):release()) end
        ended = ended + 1
      end)
    end
    -- A coroutine that waits alone calls this, too: an error there is its own, and ends no other
    -- wait.
    core.client_methods.process = function(handle)
      if not raised and not callers[coroutine.running()] then
        raised = true
        error("interrupted!", 0)
      end
      return process(handle)
    end
    local ok, err = controller:loop(60)
    core.client_methods.process = process
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("interrupted!", 1, true), err)
    assert(controller:loop(60))
    assert.are.equal(10, ended)
    client:close()
  end)

  it("lease_that_ends_right_after_a_turn_is_reported", function()
    local client = redlock.new(farm.addresses, { node_timeout = 20000 })
    local reported = false
    run(function()
      local lock = assert(client:acquire("r", { ttl = 2000, wait = 60000, on_lost = function() reported = true end }))
      -- The machine stalls between a turn, after a second, and the question whether the loop must
      -- still serve the lease.
      for _, seat in pairs(client.seats) do
        local turn = seat.turn
        seat.turn = function()
          turn()
          if not reported then helper.eventually(function() return lock:remaining() == 0 end, "the end") end
        end
      end
    end)
    assert.is_true(reported)
    client:close()
  end)

  it("error_of_on_lost_is_written_to_stderr_and_controller_goes_on", function()
    local output = helper.run_script([[
      local cqueues = require "cqueues"
      local client = require("redlock.cqueues").new({ ... }, { ttl = 2000, wait = 60000 }) -- outlasts a stall
      local controller, failed = cqueues.new(), 0
      controller:wrap(function()
        local held = {}
        local function fail(value)
          return function()
            cqueues.sleep(0.01)
            failed = failed + 1
            error(value)
          end
        end
        held[1] = assert(client:acquire("text", { on_lost = fail("boo") }))
        held[2] = assert(client:acquire("table", { on_lost = fail({}) }))
        held[3] = assert(client:acquire("nothing", { on_lost = fail(nil) }))
        held[4] = assert(client:acquire("worse", {
          on_lost = fail(setmetatable({}, { __tostring = function() error("worse") end })),
        }))
        repeat cqueues.sleep(0.01) until failed == 4
        cqueues.sleep(0.01)
        print("went on", #held)
      end)
      assert(controller:loop())
      client:close()
    ]], farm.addresses[1], farm.addresses[2], farm.addresses[3])
    local function says(text) assert.is_truthy(output:find(text, 1, true), output) end
    says("went on\t4")
    says("redlock: error in on_lost: ")
    says("boo\nstack traceback:\n")
    says("redlock: error in on_lost: table: ")
    says("worse")
  end)
end)
