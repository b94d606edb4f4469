--- Loads the module, locks, releases and drops; for each interpreter that spec/all_luas.sh is
--- given.

local redlock = require "redlock"

local nodes = { ... }
local client = redlock.new(nodes, { retry_count = 0, node_timeout = 20000 })
local other = redlock.new(nodes, { retry_count = 0, node_timeout = 20000 })

local lock = client:new_lock("all", { ttl = 60000 })
local validity = assert(lock:acquire())
assert(validity > 30000 and validity < 60000)
assert(select(3, other:acquire("all")) == "taken")
assert(lock:extend(120000) > 60000)
assert(#lock:votes() == #nodes and #client:nodes() == #nodes)
assert(tostring(lock):match("^redlock%.lock all %(held, %d+ ms left%)$"))
assert(lock:release() == true)
assert(select(3, lock:release()) == "not_held")

local ok, err = pcall(function() client:new_lock("r", { ttl = 0 }) end)
assert(not ok and err:match("all_luas%.lua:%d+: redlock: option 'ttl' must be an integer >= 1"), err)

assert(select("#", other:with("all", function(held, ...) return held:is_held(), nil, ... end, 1, nil)) == 5)
assert(not pcall(other.with, other, "all", function(held) error(held:is_held() and "raised", 0) end))

assert(select(2, other:lead("led", function(term) return "resign", term:fence() end)) > 0)
assert(select(3, other:leader("led")) == "not_held")

lock = assert(client:acquire("dropped"))
assert(lock:is_held())
lock = nil -- luacheck: ignore
collectgarbage()
collectgarbage()
assert(other:acquire("dropped", { wait = 40000, retry_delay = 5, retry_jitter = 0 }))

-- The fake.
local fake = require "redlock.fake"
local played = fake.new()
local mine = assert(played:acquire("all", { ttl = 1000, auto_extend = true }))
local waited
fake:spawn(function() waited = played:acquire("all", { wait = 9000 }) end)
fake:advance(5000)
assert(mine:is_held() and mine:release() and not waited)
fake:advance()
assert(waited:is_held())
assert(select(3, played:acquire("all")) == "taken")

-- The figures of both.
local page = require("redlock.prometheus").render { real = client, fake = played }
assert(page:find('\nredlock_operations_total{client="real",operation="acquire",outcome="ok"} 2\n', 1, true), page)
assert(page:find('\nredlock_operations_total{client="fake",operation="acquire",outcome="ok"} 2\n', 1, true), page)
assert(page:find('\nredlock_node_latency_seconds_bucket{client="real",node="[%d.:]+",le="%+Inf"} [1-9]'), page)

-- The loops that this Lua has.
local function twenty(name, run)
  local here, loop = pcall(require, name)
  if not here then return end
  local shared, count, workers = require("redlock." .. name).new(nodes, { node_timeout = 20000 }), 0, {}
  for index = 1, 20 do
    workers[index] = function()
      local own = assert(shared:acquire(name .. index))
      assert(own:extend())
      assert(own:release())
      count = count + 1
      if count == 20 then assert(shared:close()) end
    end
  end
  run(loop, workers, function() return count == 20 end)
  assert(count == 20, name)
end

twenty("copas", function(copas, workers, is_over)
  for _, worker in ipairs(workers) do copas.addthread(worker) end
  while not is_over() do copas.step() end
end)
twenty("cqueues", function(cqueues, workers)
  local controller = cqueues.new()
  for _, worker in ipairs(workers) do controller:wrap(worker) end
  assert(controller:loop())
end)
twenty("luv", function(uv, workers)
  for _, worker in ipairs(workers) do coroutine.wrap(worker)() end
  uv.run()
end)

-- A coroutine that could not wait, which Lua 5.1 and 5.2 learn from yield alone, is not resumed
-- elsewhere for it.
local has_luv, uv = pcall(require, "luv")
if has_luv then
  local shared = require("redlock.luv").new(nodes, { node_timeout = 20000 })
  local slept, resumed
  local thread = coroutine.create(function()
    assert(not pcall(string.gsub, "a", "a", function() shared:acquire("cannot wait") end))
    coroutine.yield()
    resumed = slept
  end)
  assert(coroutine.resume(thread))
  local timer = uv.new_timer()
  timer:start(200, 0, function()
    timer:close()
    slept = true
    coroutine.resume(thread)
  end)
  uv.run()
  assert(resumed, "a coroutine that waited for something else was resumed")
  shared:close()
end

assert(client:close() == true and client:close() == true)
assert(select(3, client:acquire("all")) == "closed")
io.write("ok ", _VERSION, rawget(_G, "jit") and " (" .. jit.version .. ")" or "", "\n")
