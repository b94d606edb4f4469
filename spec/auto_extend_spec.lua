-- A script whose lease keeps itself, whatever the script does. HOLD_SECONDS [1] says for how long
-- it holds.

local helper = require "spec.helper"

local unpack = table.unpack or unpack -- luacheck: ignore

describe("a script with auto_extend", function()
  local farm

  setup(function() farm = helper.farm(5) end)
  teardown(function() farm:shut() end)
  before_each(function() farm:reset() end)

  local rivals = ""
  after_each(function()
    if rivals ~= "" then os.execute("kill -KILL" .. rivals .. " 2>/dev/null") end
    rivals = ""
  end)

  local hold_seconds = tonumber(os.getenv("HOLD_SECONDS")) or 1
  local sleep_seconds = hold_seconds < 60 and 1.2 or 5

  -- Another process that asks all the time until there is a file. Returns a function that ends it,
  -- and tells how often it was granted, and how often it has asked.
  local function rival()
    local path, output, done = helper.directory .. "/rival.lua", helper.directory .. "/rival.txt",
      helper.directory .. "/rival.done"
    os.remove(done)
    helper.write_file(output, "")
    helper.write_file(path, string.format([[
      io.stdout:setvbuf("no")
      local function exists(path) return os.rename(path, path) end
      local client = require("redlock").new({ ... }, { retry_count = 0, ttl = 60000, node_timeout = 10000 })
      local granted, asked = 0, 0
      io.write("begun\n")
      repeat
        if client:acquire("r") then
          granted = granted + 1
          io.write("got it\n")
        end
        asked = asked + 1
      until exists(%q) or not exists(%q) -- The directory goes with the process of the specs.
      client:close()
      io.write("granted ", granted, " of ", asked, "\n")
    ]], done, path))
    local pid = helper.start_file(path, output, unpack(farm.addresses))
    rivals = rivals .. " " .. pid
    local function written()
      local file = assert(io.open(output))
      local all = file:read("*a")
      file:close()
      return all
    end
    helper.eventually(function() return written():find("begun", 1, true) end, "the rival to begin")
    return function()
      helper.write_file(done, "")
      helper.eventually(function() return written():find("granted", 1, true) end, "the rival to end")
      local granted, asked = written():match("granted (%d+) of (%d+)")
      return tonumber(granted), tonumber(asked)
    end, written
  end

  local function compute(seconds)
    local sum, ending = 0, helper.now() + seconds
    repeat for i = 1, 10000 do sum = sum + i end until helper.now() > ending
    return sum
  end

  local function litter(client, seconds)
    local ending = helper.now() + seconds
    repeat
      for _ = 1, 10 do client:new_lock("garbage") end
      collectgarbage()
      compute(0.05)
    until helper.now() > ending
  end

  local function hold()
    farm:reset()
    local client = require("redlock").new(farm.addresses)
    local lock = assert(client:acquire("r", { ttl = 900, auto_extend = true, wait = 30000 }))
    local ended, begun = rival(), helper.now()
    local step = sleep_seconds / 5
    local function holds(what)
      assert.is_true(lock:is_held(), what)
      assert.is_nil(lock:lost(), what)
    end
    local function healed(what)
      holds(what)
      helper.eventually(function() return farm:count("r", lock:token()) == 5 end, "the key on all nodes: " .. what)
    end
    repeat
      compute(4 * step)
      holds("a loop")
      os.execute("sleep " .. sleep_seconds)
      holds("os.execute")
      farm[5]:stop()
      litter(client, 2 * step)
      farm[5]:continue()
      healed("a hung node")
      farm[1]:kill()
      compute(step)
      farm[1]:restart()
      healed("a restart")
    until helper.now() > begun + hold_seconds
    local seconds = helper.now() - begun
    local granted, asked = ended()
    holds("all of it")
    if os.getenv("HOLD_SECONDS") then
      print(("held for %.1f s; the rival asked %d times, granted %d times"):format(seconds, asked, granted))
    end
    assert.are.equal(0, granted)
    assert.is_true(asked > 0)
    assert.is_true(lock:release())
    client:close()
  end

  it("lease_survives_loop_os_execute_hanging_node_and_collector", function()
    helper.limit(30 + 2 * hold_seconds)
    helper.unless_stalled(200, hold)
  end)

  it("lease_without_auto_extend_goes_to_rival", function()
    local client = require("redlock").new(farm.addresses)
    local lock = assert(client:acquire("r", { ttl = 900, wait = 30000 }))
    local ended, written = rival()
    helper.eventually(function() return written():find("got it", 1, true) end, "the rival to be granted the lock")
    assert.is_false(lock:is_held())
    ended()
    client:close()
  end)

  it("script_leaves_no_key_however_it_ends", function()
    for _, ending in ipairs { "", "os.exit(0)", "os.exit(0, true)", "client:close()", "lock:release()" } do
      local output, ok = helper.run_script([[
        local client = require("redlock").new({ ... })
        local lock = assert(client:acquire("ended", { ttl = 900, auto_extend = true, wait = 30000 }))
        io.write("held ")
      ]] .. ending, unpack(farm.addresses))
      assert.is_true(ok, ending .. ": " .. tostring(output))
      helper.eventually(function() return farm:count("ended") == 0 end, "the key to go after " .. ending)
    end
  end)
end)
