-- Statements about this library and another one that lock the same key of the same nodes.
--
-- SPDX-License-Identifier: MIT

local World = require "conformance.world"
local contest = require "conformance.contest"

local LONG, SHORT = World.LONG, World.SHORT
local statements = {}

local function statement(name, says, run) table.insert(statements, { name = name, says = says, run = run }) end

-- Returns a client of ours and one of the other library.
local function pair(world) return world:client { kind = world.settings.ours }, world:client() end

local function must_say_taken(answer)
  if answer.error and not answer.error:find("^taken") then World.fails("ours reports %s", answer.error) end
end

statement("ours-holds", "ours holds, theirs is refused", function(world)
  local ours, theirs = pair(world)
  ours:must_acquire(LONG)
  theirs:must_be_refused("that ours held")
end)

statement("theirs-holds", "theirs holds, ours says taken", function(world)
  local ours, theirs = pair(world)
  theirs:must_acquire(LONG)
  must_say_taken(ours:must_be_refused("that theirs held"))
end)

statement("freed", "a release frees the lock for the other", function(world)
  local ours, theirs = pair(world)
  for _ = 1, 2 do
    ours:must_acquire(LONG)
    ours:release()
    world:must_vanish("released by ours")
    theirs:must_acquire(LONG)
    theirs:release()
    world:must_vanish("released by theirs")
  end
end)

statement("ours-extends", "ours extends, theirs stays out", function(world)
  local ours, theirs = pair(world)
  ours:must_acquire(LONG)
  if not ours:extend(2 * LONG).ok then World.fails("ours could not extend") end
  theirs:must_be_refused("that ours had extended")
  if not ours:extend(2 * LONG).ok then World.fails("ours lost the lock to a refused acquire") end
end)

statement("theirs-extends", "theirs extends, ours stays out", function(world)
  local ours, theirs = pair(world)
  theirs:must_acquire(LONG)
  if not theirs:extend(2 * LONG).ok then World.fails("theirs could not extend") end
  must_say_taken(ours:must_be_refused("that theirs had extended"))
  if not theirs:extend(2 * LONG).ok then World.fails("theirs lost the lock to a refused acquire") end
end)

-- The first lease ends, the second client holds the lock, and the first one releases.
local function late_release(world, first, second, what)
  first:must_acquire(SHORT)
  world:await_end_of(first)
  second:must_acquire(LONG)
  local values, ends = world:snapshot()
  first:release()
  world:must_be_unchanged(values, ends, what)
end

statement("theirs-late-release", "a late release of theirs deletes nothing of ours", function(world)
  local ours, theirs = pair(world)
  late_release(world, theirs, ours, "their release")
end)

statement("ours-late-release", "a late release of ours deletes nothing of theirs", function(world)
  local ours, theirs = pair(world)
  late_release(world, ours, theirs, "our release")
end)

statement("contest", "contest of two and two clients", function(world)
  local ours, theirs = world.settings.ours, world.kind
  local counts = contest.run(world, { ours, theirs, ours, theirs }, world.settings.seconds, false)
  if counts[1] + counts[3] == 0 then World.fails("ours never got the lock") end
  if counts[2] + counts[4] == 0 then World.fails("theirs never got the lock") end
  return ("%d + %d leases, no overlap"):format(counts[1] + counts[3], counts[2] + counts[4])
end)

return statements
