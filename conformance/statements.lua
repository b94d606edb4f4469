-- The statements of the suite. Each runs against one library, on nodes of its own.
--
-- run(world) returns an observation, or raises a verdict: World.fails, World.not_applicable or
-- World.untested. |several| marks a statement about a majority of nodes.
--
-- SPDX-License-Identifier: MIT

local World = require "conformance.world"
local contest = require "conformance.contest"
local task = require "conformance.task"

local LONG, SHORT = World.LONG, World.SHORT
local statements = {}

local function statement(name, says, run) table.insert(statements, { name = name, says = says, run = run }) end
local function of_several(name, says, run)
  local entry = { name = name, says = says, run = run, several = true }
  table.insert(statements, entry)
  return entry
end

-- Holds the replies of the nodes from the second on, so that a client which asks one node after the
-- other reaches a majority, too.
local function hold_deciding_replies(world)
  for node = math.min(2, world.nodes), world.nodes do world.relays[node]:hold_replies() end
end

local function let_all(world)
  for _, relay in ipairs(world.relays) do relay:let() end
end

-- Waits until a call has ended, at most |ms|.
local function await_end(call, ms) return task.eventually(ms, function() return call.answer end) end

-- ---------------------------------------------------------------------------------- exclusion

statement("exclusion", "While a client holds the lock, no other client gets it.", function(world)
  local holder, other = world:client(), world:client()
  holder:must_acquire(LONG)
  other:must_be_refused("while the first held it")
end)

statement("release", "A release frees the lock on all nodes.", function(world)
  local holder, other = world:client(), world:client()
  holder:must_acquire(LONG)
  holder:release()
  world:must_vanish("released")
  if not other:acquire(LONG).ok then World.fails("the next client did not get the free lock") end
end)

statement("untouched", "A refused acquire leaves the holder's keys as they are.", function(world)
  local holder, other = world:client(), world:client()
  holder:must_acquire(LONG)
  local values, ends = world:snapshot()
  other:acquire(2 * LONG)
  world:must_be_unchanged(values, ends, "a refused acquire")
end)

statement("tokens", "Each acquire has a token of its own.", function(world)
  local seen, clients = {}, { world:client(), world:client() }
  for turn = 1, 4 do
    local client = clients[turn % 2 + 1]
    client:must_acquire(LONG)
    local token = world.farm:value(1, world.key) or "none"
    if seen[token] then World.fails("two acquires used the token %s", token:sub(1, 40)) end
    seen[token] = true
    client:release()
    world:must_vanish("released")
  end
end)

statement("contest", "No two leases overlap while clients compete under faults.", function(world)
  local counts = contest.run(world, { world.kind, world.kind, world.kind }, world.settings.seconds, true)
  return ("%d grants"):format(counts[1] + counts[2] + counts[3])
end)

-- ----------------------------------------------------------------------------------- majority

of_several("minority-dead", "One dead node of three does not prevent a lock.", function(world)
  local client, other = world:client(), world:client()
  world.relays[3]:refuse()
  local answer = client:acquire(LONG)
  if not answer.ok then World.fails("no lock: %s", answer.error or "no reason") end
  other:must_be_refused("while the first held it on two nodes")
end)

of_several("majority-dead", "One node of three that answers is no majority; its key is deleted.", function(world)
  local client = world:client()
  world.relays[2]:refuse()
  world.relays[3]:refuse()
  if client:acquire(LONG).ok then World.fails("one node of three granted a lock") end
  world:must_vanish("after a failed acquire")
end)

of_several("minority-taken", "A key on one node of three does not prevent a lock, and stays.", function(world)
  local client = world:client()
  world:occupy(3)
  local answer = client:acquire(LONG)
  if not world:occupied(3) then World.fails("the key of another client was changed") end
  if not answer.ok then World.fails("no lock: %s", answer.error or "no reason") end
end)

of_several("majority-taken", "If two nodes of three refuse, the grant of the third is deleted.", function(world)
  local client = world:client()
  world:occupy(1, 2)
  if client:acquire(LONG).ok then World.fails("one node of three granted a lock") end
  if not world:occupied(1, 2) then World.fails("the key of another client was changed") end
  world:must_vanish("after a failed acquire", { 3 })
end)

of_several("tie", "With two nodes, of which one refuses, an acquire ends without a lock.", function(world)
  local client = world:client()
  world:occupy(1)
  if client:acquire(LONG).ok then World.fails("one node of two granted a lock") end
  world:must_vanish("after a failed acquire", { 2 })
end).nodes = 2

of_several("reply-lost", "A grant whose reply is lost is deleted after a failed acquire.", function(world)
  local client = world:client()
  world:occupy(1, 2)
  world.relays[3]:hold_replies()
  local call = client:begin_acquire(LONG)
  if not task.eventually(client.deadline, function() return world:exists(3) or call.answer end) then
    World.untested("the third node got no request")
  end
  await_end(call, 2 * World.TIMEOUT)
  world.relays[3]:lose_replies()
  if client:settle(call, "acquire").ok then World.fails("one node of three granted a lock") end
  world:must_vanish("after a failed acquire", { 3 })
end)

of_several("late-request", "A node that executes the acquire after its failure keeps no key.", function(world)
  local client = world:client()
  world:occupy(1, 2)
  world.relays[3]:hold_requests()
  local call = client:begin_acquire(LONG)
  await_end(call, 2 * World.TIMEOUT)
  task.eventually(3000, function() return world.relays[3].seen > 0 end)
  world.relays[3]:let()
  if client:settle(call, "acquire").ok then World.fails("one node of three granted a lock") end
  world:must_vanish("after a failed acquire", { 3 })
end)

-- ------------------------------------------------------------------------------------- time

statement("slow", "Slow nodes (300 ms each way) do not prevent a lock and its release.", function(world)
  local client = world:client()
  for _, relay in ipairs(world.relays) do relay:slow(300) end
  local answer = client:acquire(LONG)
  if not answer.ok then World.fails("no lock: %s", answer.error or "no reason") end
  client:release()
  world:must_vanish("released")
  return ("%.0f ms"):format(answer.received - answer.sent)
end)

statement("elapsed", "The validity does not include the time that the acquire took.", function(world)
  local client = world:client { timeout = 5000 }
  hold_deciding_replies(world)
  local call = client:begin_acquire(LONG)
  if not task.eventually(client.deadline, function() return world:holders() >= world:majority() or call.answer end) then
    World.untested("the nodes got no request")
  end
  task.sleep(1000)
  local earliest = call.answer and call.answer.received or task.now()
  let_all(world)
  local answer = client:settle(call, "acquire")
  if not answer.ok then return "refused a lock that took a second" end
  if not answer.validity then World.not_applicable("the library tells no validity") end
  local excess = earliest + answer.validity - (world:majority_end() or 0)
  if excess > 100 then World.fails("the lease ends %.0f ms after the keys of a majority", excess) end
end)

statement("drift", "The validity leaves an allowance for clock drift.", function(world)
  local ttl = 600000
  local answer = world:client():must_acquire(ttl)
  if not answer.validity then World.not_applicable("the library tells no validity") end
  if answer.validity > ttl * 0.995 then World.fails("the validity of a ttl of %d is %.0f ms", ttl, answer.validity) end
  return ("%.1f %%"):format(100 - answer.validity * 100 / ttl)
end)

statement("late-grant", "A grant that arrives after the keys have ended is refused.", function(world)
  local client = world:client { timeout = 10000 }
  hold_deciding_replies(world)
  local call = client:begin_acquire(SHORT)
  if not task.eventually(client.deadline, function() return world:holders() >= world:majority() or call.answer end) then
    World.untested("the nodes got no request")
  end
  world:await_expiry()
  let_all(world)
  local answer = client:settle(call, "acquire")
  if answer.ok then
    World.fails("granted after the keys had ended%s",
      answer.validity and (", with a validity of %.0f ms"):format(answer.validity) or "")
  end
end)

of_several("minority-hung", "One hung node of three does not prevent a lock.", function(world)
  local client = world:client()
  world.relays[3]:hang()
  local answer = client:acquire(LONG)
  if not answer.ok then World.fails("no lock: %s", answer.error or "no reason") end
  return ("%.0f ms"):format(answer.received - answer.sent)
end)

of_several("majority-hung", "With two hung nodes an acquire ends, and leaves no key.", function(world)
  local client = world:client()
  world.relays[2]:hang()
  world.relays[3]:hang()
  local answer = client:acquire(LONG)
  if answer.ok then World.fails("one node of three granted a lock") end
  world:must_vanish("after a failed acquire", { 1 })
  return ("%.0f ms"):format(answer.received - answer.sent)
end)

of_several("release-hung", "A hung node does not delay a release.", function(world)
  local client = world:client()
  client:must_acquire(LONG)
  world.relays[1]:hang()
  local answer = client:release()
  world:must_vanish("released", { 2, 3 })
  return ("%.0f ms"):format(answer.received - answer.sent)
end)

of_several("extend-hung", "A hung node does not prevent an extend.", function(world)
  local client = world:client()
  client:must_acquire(LONG)
  world.relays[1]:hang()
  local answer = client:extend(LONG)
  if not answer.ok then World.fails("not extended: %s", answer.error or "no reason") end
  return ("%.0f ms"):format(answer.received - answer.sent)
end)

statement("wall-clock", "A lease ends although the client's wall clock is set back.", function(world)
  local environment, step = world:stepped_clock()
  local client = world:client { environment = environment }
  client:must_acquire(SHORT)
  step(-3600000)
  world:await_expiry()
  local validity = client:validity()
  if not validity then World.not_applicable("the library cannot tell whether its lease is over") end
  if validity > 0 then World.fails("after the keys had ended, the lease lasted %.0f ms more", validity) end
end)

of_several("node-clock", "A node whose clock jumps ahead gives no second holder.", function(world)
  local holder, other = world:client(), world:client()
  holder:must_acquire(LONG)
  if world:holders() < 3 then World.untested("the lock is not on three nodes") end
  world.farm:ask(1, "PEXPIRE", world.key, 1)
  task.eventually(60000, function() return not world:exists(1) end)
  other:must_be_refused("after one key of three had ended early")
  world:must_vanish("after a failed acquire", { 1 })
end)

-- ------------------------------------------------------------------------------------- extend

statement("extend", "An extend prolongs the keys of a majority.", function(world)
  local holder, other = world:client(), world:client()
  holder:must_acquire(LONG)
  local before = world:majority_end()
  local answer = holder:extend(2 * LONG)
  if not answer.ok then World.fails("not extended: %s", answer.error or "no reason") end
  if (world:majority_end() or 0) < before + LONG / 2 then World.fails("the keys do not live longer") end
  other:must_be_refused("after an extend")
end)

statement("revive", "An extend does not bring back a lease that is over.", function(world)
  local client = world:client()
  client:must_acquire(SHORT)
  world:await_expiry()
  local answer = client:extend(LONG)
  local left = world:holders()
  if answer.ok then World.fails("extended a lease that was over") end
  if left > 0 then World.fails("a failed extend created the key on %d nodes", left) end
end)

statement("extend-other", "An extend leaves the keys of the next holder as they are.", function(world)
  local first, second = world:client(), world:client()
  first:must_acquire(SHORT)
  world:await_expiry()
  second:must_acquire(LONG)
  local values, ends = world:snapshot()
  local answer = first:extend(2 * LONG)
  world:must_be_unchanged(values, ends, "an extend")
  if answer.ok then World.fails("extended the lease of another client") end
end)

statement("late-extend", "An extend that is confirmed after the old deadline is refused.", function(world)
  local client = world:client { timeout = 10000 }
  if client.kind.extends == false then World.not_applicable("the library has no extend") end
  local granted = client:must_acquire(SHORT)
  hold_deciding_replies(world)
  local call = client:begin_extend(LONG)
  task.sleep(math.max(0, granted.received + SHORT + 300 - task.now()))
  if world:holders() < world:majority() then World.untested("the keys were not prolonged in time") end
  let_all(world)
  if client:settle(call, "extend").ok then World.fails("accepted, 300 ms after the old lease had ended") end
end)

statement("extend-lost", "An extend fails if a majority of the nodes has lost the key.", function(world)
  local client = world:client()
  client:must_acquire(LONG)
  for node = 1, world:majority() do world.farm:ask(node, "DEL", world.key) end
  if client:extend(LONG).ok then World.fails("extended a lease without a majority of keys") end
end)

-- ------------------------------------------------------------------------------------ release

statement("release-other", "A release leaves the keys of the next holder as they are.", function(world)
  local first, second = world:client(), world:client()
  first:must_acquire(SHORT)
  world:await_expiry()
  second:must_acquire(LONG)
  local values, ends = world:snapshot()
  first:release()
  world:must_be_unchanged(values, ends, "a release")
end)

statement("no-script", "Extend and release work after the nodes have lost their scripts.", function(world)
  local client = world:client()
  client:must_acquire(LONG)
  world.farm:ask_all("SCRIPT", "FLUSH")
  if client.kind.extends ~= false then
    local answer = client:extend(LONG)
    if not answer.ok then World.fails("not extended: %s", answer.error or "no reason") end
    world.farm:ask_all("SCRIPT", "FLUSH")
  end
  client:release()
  world:must_vanish("released")
end)

statement("reconnect", "A release works after the connections have broken.", function(world)
  local client = world:client()
  client:must_acquire(LONG)
  for _, relay in ipairs(world.relays) do relay:cut() end
  task.sleep(1000) -- for clients that reconnect in the background
  client:release()
  world:must_vanish("released")
end)

of_several("restart-empty", "A node that restarts without its keys gives no second holder.", function(world)
  local holder, other = world:client(), world:client { own_relays = true }
  world.relays[3]:refuse() -- for the holder only
  holder:must_acquire(LONG, 2)
  world.farm:restart_empty(2)
  for _ = 1, 5 do -- the first may find broken connections
    other:must_be_refused("from a node that had lost its key")
    task.sleep(200)
  end
  holder:release()
  if not task.eventually(world.deadline, function() return other:acquire(LONG).ok end) then
    World.untested("the second client gets no lock from these nodes at all: %s", other:acquire(LONG).error or "")
  end
end)

return statements
