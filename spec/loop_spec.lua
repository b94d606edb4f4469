-- A caller-owned loop over lock:start() and client:process(), as in docs/loops.md.

local helper = require "spec.helper"

local socket = require "socket"
local redlock = require "redlock"

describe("caller-owned loop", function()
  local farm, client

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function()
    farm:reset()
    client = redlock.new(farm.addresses, { retry_count = 0, node_timeout = 20000 })
  end)
  after_each(function() client:close() end)

  -- Waits for the one descriptor and nothing else, until `is_done()`.
  local function run(is_done, on_ended)
    local source = { getfd = function() return client:pollfd() end, dirty = function() return false end }
    local deadline = helper.now() + 60
    while not is_done() do
      socket.select({ source }, nil, deadline - helper.now())
      assert(helper.now() < deadline, "the loop does not end")
      assert(client:process())
      local lock = client:next_ended()
      while lock do
        on_ended(lock)
        lock = client:next_ended()
      end
    end
  end

  it("next_ended_returns_each_ended_lock_once", function()
    local locks, ended = {}, {}
    for index = 1, 64 do
      locks[index] = client:new_lock("r" .. index)
      assert(locks[index]:start("acquire"))
    end
    assert.is_nil(client:next_ended())
    local count = 0
    run(function() return count == 128 end, function(lock)
      count = count + 1
      ended[lock] = (ended[lock] or 0) + 1
      assert(lock:result())
      if ended[lock] == 1 then assert(lock:start("release")) end
    end)
    for index = 1, 64 do assert.are.equal(2, ended[locks[index]]) end
    assert.is_nil(client:next_ended())
  end)

  it("next_ended_skips_collected_locks_and_blocking_calls", function()
    local kept = client:new_lock("kept")
    assert(assert(client:acquire("blocking")):release())
    for index = 1, 10 do client:new_lock("dropped" .. index):start("acquire") end
    collectgarbage()
    collectgarbage()
    assert(kept:start("acquire"))
    local reported
    run(function() return reported end, function(lock)
      if lock:resource() == "kept" then reported = lock end
    end)
    assert.are.equal(kept, reported)
  end)

  it("next_ended_without_client_is_raised_at_callers_line", function()
    local function wrong() local lock = client.next_ended() return lock end
    local ok, err = pcall(wrong)
    assert.is_false(ok)
    assert.is_truthy(err:find("loop_spec.lua:" .. debug.getinfo(wrong, "S").linedefined .. ": ", 1, true), err)
    assert.is_truthy(err:find("client:next_ended()", 1, true), err)
  end)
end)
