local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

-- Seconds. A wait that is not interrupted lasts for 40.
local SOON = 20

describe("Ctrl-C", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  -- Starts a script until it has said that it waits. Returns a function that tells what it has
  -- written, and one that interrupts it and tells how long it took to end after that.
  local function interrupt(text, when_held)
    local path = helper.directory .. "/interrupted.lua"
    local output = helper.directory .. "/interrupted.txt"
    helper.write_file(path, [[
      io.stdout:setvbuf("no")
      local redlock = require "redlock"
      local client = redlock.new({ ... }, { node_timeout = 40000, ttl = 120000, retry_count = 0 })
    ]] .. text)
    helper.write_file(output, "")
    local pid = helper.start_file(path, output, unpack(farm.addresses))
    finally(function() os.execute("kill -KILL " .. pid .. " 2>/dev/null") end)
    local function written()
      local file = assert(io.open(output))
      local all = file:read("*a")
      file:close()
      return all
    end
    if when_held then
      helper.eventually(function() return written():find("held", 1, true) end, "the script to hold its lock")
      when_held()
    end
    helper.eventually(function() return written():find("waiting", 1, true) end, "the script to wait")
    return written, function()
      local before = helper.now()
      os.execute("kill -INT " .. pid)
      helper.eventually(function() return written():find("ended", 1, true) end, "the script to end: " .. written())
      return helper.now() - before
    end
  end

  local ENDING = [[
    local ok, err = pcall(wait)
    io.write(tostring(ok), " ", tostring(err), "\n")
    after()
    io.write("ended\n")
  ]]

  -- Three of five nodes have taken no part when the script waits.
  local function hang()
    for index = 3, 5 do farm[index]:stop() end
  end

  it("interrupt_ends_acquire_and_releases", function()
    hang()
    local written, send = interrupt([[
      local lock = client:new_lock("r")
      function wait() io.write("waiting\n") lock:acquire() end
      function after()
        assert(not lock:is_held())
        assert(select(3, lock:release()) == "not_held")
      end
    ]] .. ENDING)
    helper.eventually(function() return farm:count("r") == 2 end, "two nodes to have the key")
    assert.is_true(send() < SOON)
    assert.is_truthy(written():find("false interrupted!", 1, true), written())
    helper.eventually(function() return farm:count("r") == 0 end, "what was begun to be released")
    for index = 3, 5 do farm[index]:continue() end
    farm:eventually_free("r")
  end)

  it("interrupt_ends_wait_between_attempts", function()
    local redlock = require "redlock"
    local other = redlock.new(farm.addresses, { node_timeout = 20000 })
    local held = assert(other:acquire("r", { ttl = 120000 }))
    local written, send = interrupt([[
      local lock = client:new_lock("r", { wait = 60000, retry_delay = 50000, poll_interval = 50000, retry_jitter = 0 })
      function wait() io.write("waiting\n") lock:acquire() end
      function after()
        assert(select(3, lock:acquire({ wait = 0 })) == "taken")
      end
    ]] .. ENDING)
    assert.is_true(send() < SOON)
    assert.is_truthy(written():find("false interrupted!", 1, true), written())
    assert.is_true(held:is_held())
    other:close()
  end)

  it("interrupt_of_extend_leaves_lock_held", function()
    local go = helper.directory .. "/go"
    local written, send = interrupt(string.format([[
      local lock = assert(client:acquire("r"))
      function wait()
        io.write("held\n")
        repeat local file = io.open(%q) until file
        io.write("waiting\n")
        lock:extend(20000)
      end
      function after() assert(lock:is_held()) end
    ]], go) .. ENDING, function()
      hang()
      helper.write_file(go, "")
    end)
    assert.is_true(send() < SOON)
    assert.is_truthy(written():find("false interrupted!", 1, true), written())
  end)

  it("interrupt_in_with_releases", function()
    local written, send = interrupt([[
      local redlock = require "redlock"
      local second = redlock.new({ ... }, { retry_delay = 50000, poll_interval = 50000, wait = 60000 })
      function wait()
        client:with("outer", function()
          client:with("inner", function()
            io.write("waiting\n")
            second:acquire("outer")
          end)
        end)
      end
      function after() assert(client:acquire("outer") and client:acquire("inner")) end
    ]] .. ENDING)
    assert.is_true(send() < SOON)
    assert.is_truthy(written():find("false [^\n]*interrupted!"), written())
    farm:eventually_free("outer")
    farm:eventually_free("inner")
  end)

  -- `wait` has a lock "r", and the nodes hang before it goes on.
  local function while_held(wait)
    local go = helper.directory .. "/go"
    os.remove(go)
    return interrupt(string.format([[
      local lock = assert(client:acquire("r"))
      local function hung()
        io.write("held\n")
        repeat local file = io.open(%q) until file
        io.write("waiting\n")
      end
    ]], go) .. wait .. "\nfunction after() end\n" .. ENDING, function()
      hang()
      helper.write_file(go, "")
    end)
  end

  it("interrupt_ends_close", function()
    local written, send = while_held("function wait() hung() client:close() end")
    assert.is_true(send() < SOON)
    assert.is_truthy(written():find("false [^\n]*interrupted!"), written())
  end)

  -- LuaJIT calls no hook for the functions of the library.
  if not rawget(_G, "jit") then
    it("hook_that_a_signal_set_just_before_the_wait_ends_it", function()
      local redlock = require "redlock"
      local other = redlock.new(farm.addresses, { node_timeout = 20000 })
      local held = assert(other:acquire("r", { ttl = 120000 }))
      local client = redlock.new(farm.addresses, { node_timeout = 20000, wait = 60000, poll_interval = 40000 })
      local lock = client:new_lock("r")
      local began = helper.now()
      debug.sethook(function()
        if helper.now() - began > 0.05 then
          debug.sethook()
          error("interrupted!", 0)
        end
      end, "r")
      local ok, message = pcall(lock.acquire, lock)
      debug.sethook()
      assert.are.same({ false, "interrupted!" }, { ok, message })
      assert.is_true(helper.now() - began < SOON)
      assert(held:release())
      client:close()
      other:close()
    end)
  end

  it("hook_that_was_set_before_ends_no_wait", function()
    local pids = table.concat({ farm[1].pid, farm[2].pid, farm[3].pid }, " ")
    local output, ok = helper.run_script(([[
      local client = require("redlock").new({ ... }, { node_timeout = 20000, ttl = 60000 })
      assert(client:acquire("r"))
      debug.sethook(function() end, "", 1000000000)
      os.execute("kill -STOP PIDS; (sleep 0.4; kill -CONT PIDS) >/dev/null 2>&1 &")
      print(client:close())
    ]]):gsub("PIDS", pids), unpack(farm.addresses))
    assert.is_true(ok, output)
    assert.are.equal("true", output)
  end)

  if _VERSION == "Lua 5.4" then
    it("interrupt_ends_end_of_scope", function()
      local written, send = while_held("function wait() local scoped <close> = lock hung() end")
      assert.is_true(send() < SOON)
      assert.is_truthy(written():find("false [^\n]*interrupted!"), written())
    end)
  end

  -- There the main thread, whose hook it is, cannot be found.
  if _VERSION ~= "Lua 5.1" or rawget(_G, "jit") then
    it("interrupt_ends_wait_in_coroutine", function()
      hang()
      local written, send = interrupt([[
        local co = coroutine.create(function() io.write("waiting\n") client:acquire("r") end)
        function wait() local ok, err = coroutine.resume(co) error(err or ok, 0) end
        function after() end
      ]] .. ENDING)
      assert.is_true(send() < SOON)
      assert.is_truthy(written():find("false [^\n]*interrupted!"), written())
    end)
  end
end)
