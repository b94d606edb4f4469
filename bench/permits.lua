--- Commands and bytes of an acquire of a semaphore, on one of three nodes.
---
---     bench/permits
---
--- The nodes count (INFO). For each number of permits: no slot is taken; and all but one are, where
--- the free slot is one that the client released last ("known"), another one ("unknown"), or
--- another one a moment after the client has asked ("after asking"). A lock is the reference.
---
--- SPDX-License-Identifier: MIT

local redlock = require "redlock"

local ports = {}
for port in arg[1]:gmatch("%d+") do ports[#ports + 1] = port end
local ROUNDS = tonumber(arg[2] or 20)
local nodes = {}
for index, port in ipairs(ports) do nodes[index] = "127.0.0.1:" .. port end

local function info()
  local pipe = assert(io.popen("redis-cli -p " .. ports[1] .. " info all"))
  local text = pipe:read("*a")
  pipe:close()
  local counted = { calls = {}, input = tonumber(text:match("total_net_input_bytes:(%d+)")),
    output = tonumber(text:match("total_net_output_bytes:(%d+)")) }
  for name, calls in text:gmatch("cmdstat_([%w|_]+):calls=(%d+)") do counted.calls[name] = tonumber(calls) end
  return counted
end

-- The cost of a question alone: its bytes, without commands of locks.
local function own_bytes()
  local one, two = info(), info()
  return two.input - one.input, two.output - one.output
end

local function wait(seconds)
  os.execute("sleep " .. seconds)
end

-- Returns a function that measures fn() and adds it to a sum.
local function meter()
  local sum = { rounds = 0, set = 0, evalsha = 0, input = 0, output = 0 }
  return sum, function(fn)
    local input, output = own_bytes()
    local before = info()
    fn()
    wait(0.02) -- releases of failed attempts
    local after = info()
    sum.rounds = sum.rounds + 1
    for _, name in ipairs({ "set", "evalsha", "eval" }) do
      local key = name == "eval" and "evalsha" or name
      sum[key] = sum[key] + (after.calls[name] or 0) - (before.calls[name] or 0)
    end
    sum.input = sum.input + after.input - before.input - input
    sum.output = sum.output + after.output - before.output - output
  end
end

local function print_sum(what, sum)
  print(("%-28s %6.2f %6.2f %8.0f %8.0f"):format(what, sum.set / sum.rounds, sum.evalsha / sum.rounds,
    sum.input / sum.rounds, sum.output / sum.rounds))
end

local options = { ttl = 300000, retry_count = 0, node_timeout = 5000 }

local function with(permits)
  local own = { permits = permits }
  for name, value in pairs(options) do own[name] = value end
  return own
end

print(("%-28s %6s %6s %8s %8s"):format("acquire", "SET", "EVAL", "bytes", "replies"))
local client = redlock.new(nodes)

local function warm(permits) -- Later commands name the scripts.
  local first = assert(client:acquire("warm", with(permits)))
  assert(first:release())
end

local function uncontended(what, permits)
  local sum, measure = meter()
  warm(permits)
  for round = 1, ROUNDS do
    local lock
    measure(function() lock = assert(client:acquire("bench" .. round, with(permits))) end)
    assert(lock:release())
  end
  print_sum(what, sum)
end

uncontended("lock", nil)
for _, permits in ipairs({ 3, 64, 1024 }) do
  uncontended(permits .. " permits, all free", permits)
  local other = redlock.new(nodes)
  local held, name = {}, "full" .. permits
  for _ = 1, permits do
    local lock = assert(other:acquire(name, with(permits)))
    held[lock:slot()] = lock
  end
  -- Frees a slot, and returns its number.
  local function free()
    local slot = math.random(permits)
    assert(held[slot]:release())
    wait(0.02)
    return slot
  end
  local function take(slot)
    held[slot] = assert(other:acquire(name, with(permits)))
    assert(held[slot]:slot() == slot)
  end
  assert(held[1]:release())
  local mine = assert(client:acquire(name, with(permits)))
  assert(mine:release())
  local sum, measure = meter()
  for _ = 1, ROUNDS do
    measure(function() mine = assert(client:acquire(name, with(permits))) end)
    assert(mine:release())
  end
  print_sum(permits .. " permits, known slot", sum)
  take(1)
  local random, measure_random = meter()
  local again, measure_again = meter()
  for _ = 1, ROUNDS do
    local slot = free()
    local own = redlock.new(nodes)
    warm(permits)
    local warmed = assert(own:acquire("warm", with(permits)))
    assert(warmed:release())
    measure_random(function() mine = assert(own:acquire(name, with(permits))) end)
    -- The client has asked, and has a slot in use: the next acquire asks first.
    local next_slot = slot % permits + 1
    assert(held[next_slot]:release())
    wait(0.02)
    local more
    measure_again(function() more = assert(own:acquire(name, with(permits))) end)
    assert(more:release())
    wait(0.02)
    take(next_slot)
    assert(mine:release())
    wait(0.02)
    take(slot)
    own:close()
  end
  print_sum(permits .. " permits, unknown slot", random)
  print_sum(permits .. " permits, after asking", again)
  for _, lock in pairs(held) do assert(lock:release()) end
end
