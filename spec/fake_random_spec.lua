--- Random calls have the same results on redlock.fake as on the library with one node: the same
--- codes, messages and state of each lock.

local fake = require "redlock.fake"
local helper = require "spec.helper"
local redlock = require "redlock"

local CALLS, SEEDS = tonumber(os.getenv("FAKE_CALLS")) or 120, tonumber(os.getenv("FAKE_SEEDS")) or 12
local RESOURCES = { "a", "b", { "a", "b" }, { "b", "c" }, "c" }

local function random_of(seed)
  local state = seed
  return function(most)
    state = state * 16807 % 2147483647
    return state % most + 1
  end
end

-- Returns the results of a call as a text without figures that differ.
local function text_of(...)
  local words = {}
  for index = 1, select("#", ...) do
    local value = (select(index, ...))
    local kind = type(value)
    words[index] = (kind == "table" or kind == "userdata") and "object"
      or kind == "number" and "number"
      or tostring(value):gsub("^[^\n]-:%d+: ", ""):gsub("%x%x%x%x%x%x%x%x+", "TOKEN"):gsub("%d+ ms", "N ms")
  end
  return table.concat(words, " | ")
end

-- A player makes calls, and keeps its clients and locks. No lock becomes garbage, because the
-- collector would release it at another time on each side.
local function new_player(module, address)
  local player = { clients = {}, locks = {}, texts = {}, all = {}, client_of = {} }
  for index = 1, 3 do
    player.clients[index] = module.new({ address }, { ttl = 60000, retry_count = 0, node_timeout = 20000,
      reentrant = index == 3, fence = index == 2 })
  end
  return player
end

local function keep(player, at, lock, client)
  player.locks[at], player.client_of[lock] = lock, client
  player.all[#player.all + 1] = lock
end

local calls = {}

function calls.new_lock(player, random)
  local client = player.clients[random(3)]
  local lock = client:new_lock(RESOURCES[random(#RESOURCES)], { reentrant = random(4) == 1 and "me" or nil })
  keep(player, random(6), lock, client)
  return lock
end

function calls.acquire_new(player, random)
  local client, resource, at = player.clients[random(3)], RESOURCES[random(#RESOURCES)], random(6)
  local lock, message, code = client:acquire(resource, { label = random(3) == 1 and "label" or nil })
  if lock then keep(player, at, lock, client) end
  return lock, message, code
end

function calls.section(player, random)
  local client, resource, ending = player.clients[random(3)], RESOURCES[random(#RESOURCES)], random(4)
  return client:with(resource, { release_wait = random(2) == 1 }, function(lock)
    if ending == 1 then error("the function's own", 0) end
    if ending == 2 then return lock:release() end
    if ending == 3 then return lock:extend(90000) ~= nil, lock:is_held() end
    return "done"
  end)
end

function calls.inspect(player, random)
  local seen = player.clients[random(3)]:inspect(({ "a", "b", "c" })[random(3)])
  return seen.nodes[1].state, seen.label, seen.holder ~= nil, seen.ttl ~= nil
end

function calls.force_release(player, random)
  local name, token = ({ "a", "b", "c" })[random(3)], random(3) == 1 and "any" or "no token"
  return player.clients[random(3)]:force_release(name, token)
end

function calls.attach(player, random)
  local text = player.texts[random(3)]
  local client, at = player.clients[random(2) * 2 - 1], random(6)
  local lock, message, code = client:attach(text or "redlock1.nothing")
  if lock then keep(player, at, lock, client) end
  return lock, message, code
end

local function of_lock(name, fn)
  calls[name] = function(player, random)
    local lock = player.locks[random(6)]
    if not lock then return "no lock" end
    return fn(lock, random, player)
  end
end

of_lock("acquire", function(lock, random)
  return lock:acquire({ token = random(6) == 1 and "given" or nil, fence = random(5) == 1 or nil,
    reentrant = ({ [1] = false, [2] = "me", [3] = true })[random(8)] })
end)
of_lock("extend", function(lock, random) return lock:extend(random(2) == 1 and 70000 or nil) end)
of_lock("release", function(lock) return lock:release() end)
of_lock("release_again", function(lock) return lock:release() end)
of_lock("release_late", function(lock)
  local ok, message, code = lock:release({ wait = false })
  if not ok then return ok, message, code end
  return lock:release()
end)
of_lock("detach", function(lock, random, player)
  local at = random(3)
  local text, message, code = lock:detach()
  if text then player.texts[at] = text end
  return text and "text", message, code
end)
of_lock("started", function(lock, random, player)
  local client = player.client_of[lock]
  local ok, message, code = lock:start(({ "acquire", "extend", "release" })[random(3)])
  if not ok then return ok, message, code end
  local ended = false
  helper.eventually(function()
    client:process()
    local found = client:next_ended()
    while found do
      ended = ended or found == lock
      found = client:next_ended()
    end
    return ended and select(3, lock:result()) ~= "pending"
  end, "the end of the operation")
  return lock:result()
end)
of_lock("cancelled", function(lock, random, player)
  local ok, message, code = lock:start(({ "acquire", "extend" })[random(2)])
  if not ok then return ok, message, code end
  lock:cancel()
  local result, why, now = lock:result()
  helper.eventually(function()
    player.client_of[lock]:process()
    return player.client_of[lock]:next_ended() == nil
  end)
  return result ~= nil, why, now
end)
of_lock("check", function(lock) return lock:check() end)

local names = {}
for name in pairs(calls) do names[#names + 1] = name end
table.sort(names)

local function state_of(player)
  local words = {}
  for index = 1, 6 do
    local lock = player.locks[index]
    words[index] = lock and text_of(lock:is_held(), (lock:lost()), lock:margin(), lock:fence() ~= nil,
      lock:token() and #lock:token(), tostring(lock), #lock:resources()) or "-"
  end
  return table.concat(words, "\n")
end

describe("redlock.fake and the library", function()
  local farm

  setup(function() farm = helper.farm(1) end)
  teardown(function() farm:shut() end)

  for seed = 1, SEEDS do
    it("random_calls_have_the_same_results_" .. seed, function()
      helper.limit(300)
      farm:reset()
      fake:reset()
      local first, second = random_of(seed * 7919), random_of(seed * 7919)
      local real, other = new_player(redlock, farm.addresses[1]), new_player(fake, farm.addresses[1])
      local history = {}
      for _ = 1, CALLS do
        local name = names[first(#names)]
        second(#names)
        local expected, got = text_of(pcall(calls[name], real, first)), text_of(pcall(calls[name], other, second))
        history[#history + 1] = name .. ": " .. expected
        local log = table.concat(history, "\n", math.max(1, #history - 12))
        assert.are.equal(expected, got, log)
        assert.are.equal(state_of(real), state_of(other), log)
      end
      for index = 1, 3 do
        local expected, got = real.clients[index]:stats(), other.clients[index]:stats()
        -- Not releases, whose replies may come after their caller has gone on; and not "another
        -- owner holds it", which the library does not count.
        for _, name in ipairs { "acquire", "extend", "auto_extend" } do
          expected.operations[name].held, got.operations[name].held = nil, nil
          assert.are.same(expected.operations[name], got.operations[name], name .. " of client " .. index)
        end
        assert.are.same({ expected.attempts, expected.held, expected.waiting, expected.lost },
          { got.attempts, got.held, got.waiting, got.lost })
        assert.is_true((real.clients[index]:close()))
        assert.is_true((other.clients[index]:close()))
      end
    end)
  end
end)
