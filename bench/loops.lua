-- Many locks in flight in each loop of Lua programs, and in a hand-written loop over lock:start()
-- and client:process().
--
--     lua loops.lua <own, cqueues, luv or copas> <locks in flight> <host:port> ...
--
-- SPDX-License-Identifier: MIT

local unpack = table.unpack or unpack -- luacheck: ignore

local kind, count = arg[1], tonumber(arg[2])
assert(kind and count and arg[3], "usage: loops.lua <own, cqueues, luv or copas> <locks in flight> <host:port> ...")
local options = { retry_count = 0 }
local nodes = { unpack(arg, 3) }

local measure = require "bench_measure"
local now, record = measure.now, measure.record

local kinds = {}

-- The control is the same once more: the distance of its ratio from 1 is the error of all ratios.
function kinds.own()
  local socket = require "socket"
  local client = require("redlock").new(nodes, options)
  local source = { { getfd = function() return client:pollfd() end, dirty = function() return false end } }
  local begun, held = {}, {}
  local locks, active = {}, 0
  for index = 1, count do locks[index] = client:new_lock(measure.name(index)) end

  local function on_ended(lock)
    local ok = lock:result()
    if ok and not held[lock] then
      held[lock] = now()
      assert(lock:start("release"))
      return
    end
    local more = record(begun[lock], held[lock] or now(), ok)
    held[lock] = nil
    if more then
      begun[lock] = now()
      assert(lock:start("acquire"))
    else
      active = active - 1
    end
  end

  return function()
    active = count
    for _, lock in ipairs(locks) do
      begun[lock] = now()
      assert(lock:start("acquire"))
    end
    while active > 0 do
      socket.select(source)
      client:process()
      local lock = client:next_ended()
      while lock do
        on_ended(lock)
        lock = client:next_ended()
      end
    end
  end
end

kinds.control = kinds.own

-- Runs one coroutine with its lock, and calls on_end() at its end.
local function work(lock, on_end)
  return function()
    local more
    repeat
      local begun = now()
      local validity = lock:acquire()
      local held = now()
      more = record(begun, held, validity and lock:release())
    until not more
    on_end()
  end
end

-- `module` makes clients; `run(workers, left)` runs them until left() is 0.
local function in_coroutines(module, run)
  local client = require(module).new(nodes, options)
  local locks = {}
  for index = 1, count do locks[index] = client:new_lock(measure.name(index)) end
  return function()
    local active, workers = count, {}
    for index = 1, count do workers[index] = work(locks[index], function() active = active - 1 end) end
    run(workers, function() return active end)
  end
end

function kinds.cqueues()
  local cqueues = require "cqueues"
  return in_coroutines("redlock.cqueues", function(workers)
    local controller = cqueues.new()
    for _, worker in ipairs(workers) do controller:wrap(worker) end
    assert(controller:loop())
  end)
end

function kinds.luv()
  local uv = require "luv"
  return in_coroutines("redlock.luv", function(workers)
    for _, worker in ipairs(workers) do coroutine.wrap(worker)() end
    uv.run()
  end)
end

function kinds.copas()
  local copas = require "copas"
  return in_coroutines("redlock.copas", function(workers, left)
    for _, worker in ipairs(workers) do copas.addthread(worker) end
    repeat copas.step(1) until left() == 0
  end)
end

local run = assert(kinds[kind], "no such loop")()

print("ready")
io.stdout:flush()
for line in io.lines() do
  if not measure.start(line) then break end
  run()
  measure.print()
end
