-- Re-entrance outside of nginx: the owner is the coroutine that acquires, the main one included.
-- The chapter of all drivers is spec/behaviour/reentrant.lua.

local helper = require "spec.helper"

local cqueues = require "cqueues"

describe("re-entrance of coroutines", function()
  local farm
  local OPTIONS = { ttl = 60000, retry_count = 0, node_timeout = 20000, reentrant = true }

  setup(function() farm = helper.farm(3) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  it("each_coroutine_is_an_owner", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local outer = assert(client:acquire("r"))
    local co = coroutine.wrap(function()
      local _, _, code = client:acquire("r")
      coroutine.yield(code)
      local mine = assert(client:acquire("mine"))
      coroutine.yield(client:acquire("mine") ~= nil)
      mine:release()
    end)
    assert.are.equal("taken", co())
    assert.is_true(co())
    assert.are.equal("taken", coroutine.wrap(function() return (select(3, client:acquire("mine"))) end)())
    assert.are.equal("taken", (select(3, client:acquire("mine"))))
    assert(client:acquire("r")):release()
    assert(outer:release())
    client:close()
  end)

  it("new_coroutine_is_not_owner_of_lock_of_collected_one", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local held = coroutine.wrap(function() return assert(client:acquire("r")) end)()
    for _ = 1, 200 do
      collectgarbage("step")
      coroutine.wrap(function() assert.are.equal("taken", (select(3, client:acquire("r")))) end)()
    end
    assert.is_true(held:is_held())
    assert(held:release())
    client:close()
  end)

  it("lock_object_held_by_another_coroutine_is_refused", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local lock = client:new_lock("r")
    assert(lock:acquire())
    local _, message, code = coroutine.wrap(function() return lock:acquire() end)()
    assert.are.same({ "'r': another owner holds it", "held" }, { message, code })
    assert(lock:acquire())
    assert(lock:release())
    assert(lock:release())
    assert.is_false(lock:is_held())
    client:close()
  end)

  it("lock_released_without_waiting_belongs_to_next_coroutine", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local lock = client:new_lock("r")
    assert(lock:acquire())
    assert(lock:release { wait = false })
    coroutine.wrap(function() assert(lock:acquire()) end)()
    assert.are.equal("taken", (select(3, client:acquire("r"))))
    assert(lock:release())
    client:close()
  end)

  it("token_of_refused_acquire_is_dropped", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local lock = client:new_lock("r")
    coroutine.wrap(function() assert(lock:acquire()) end)()
    assert.are.equal("held", (select(3, lock:acquire { token = "given" })))
    assert(lock:release())
    assert(lock:acquire())
    assert.are_not.equal("given", lock:token())
    assert(lock:release())
    client:close()
  end)

  it("nested_acquire_keeps_on_lost_of_outer_one", function()
    local client = require("redlock").new(farm.addresses, OPTIONS)
    helper.warm(client, farm, client.process)
    local reported = {}
    local lock = client:new_lock("r")
    assert(lock:acquire { on_lost = function(_, reason) reported[#reported + 1] = "outer " .. reason end })
    assert(lock:acquire())
    for _, node in ipairs(farm) do node:command("DEL", "r") end
    assert.are.equal("lost", (select(3, lock:extend())))
    lock:is_held()
    client:process()
    assert.are.same({ "outer lost" }, reported)
    client:close()
  end)

  it("each_coroutine_of_cqueues_is_an_owner", function()
    local client = require("redlock.cqueues").new(farm.addresses, OPTIONS)
    local seen = {}
    local controller = cqueues.new()
    controller:wrap(function()
      local outer = assert(client:acquire("r"))
      controller:wrap(function()
        seen.other = select(3, client:acquire("r"))
        seen.done = true
      end)
      local inner = assert(client:acquire("r"))
      repeat cqueues.sleep(0.002) until seen.done
      assert(inner:release())
      seen.held = outer:is_held()
      assert(outer:release())
      seen.free = assert(client:acquire("r")):release()
    end)
    assert(controller:loop(60))
    assert.are.same({ other = "taken", done = true, held = true, free = true }, seen)
    client:close()
  end)
end)
