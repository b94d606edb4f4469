-- A contest: processes compete for one lock, and the log of their leases must have no overlap.
--
-- A lease is certain from the receipt of its answer until its release is sent or its validity ends,
-- counted from the time at which the acquire was sent. If two certain leases overlap, two real ones
-- do, however slow the machine is.
--
-- SPDX-License-Identifier: MIT

local World = require "conformance.world"
local task = require "conformance.task"

local contest = {}

local TTL = 2000

--- Returns the overlap of two leases of a log, in ms, and the two; or nil.
function contest.overlap(log)
  table.sort(log, function(a, b) return a.from < b.from end)
  local longest
  for _, lease in ipairs(log) do
    if longest and lease.from < longest.to and lease.to > lease.from then
      return math.min(lease.to, longest.to) - lease.from, longest, lease
    end
    if not longest or lease.to > longest.to then longest = lease end
  end
end

-- One client competes until the deadline or a violation. Appends its leases to the log.
local function compete(client, log, deadline, name)
  local count = 0
  while task.now() < deadline and not contest.overlap(log) do
    local call = client:begin_acquire(TTL)
    local answer = client:settle(call, "acquire")
    if answer.ok then
      count = count + 1
      task.sleep(math.random(0, 20))
      local to = math.min(task.now(), call.sent + (answer.validity or TTL))
      log[#log + 1] = { from = answer.received, to = to, by = name }
      client:release()
    end
    task.sleep(math.random(0, 10))
  end
  return count
end

-- Short faults on random nodes, one at a time, which no timeout of a client must outlast.
local function disturb(world, deadline)
  while task.now() < deadline and #world.clients > 0 do
    local relay = world.relays[math.random(world.nodes)]
    local kind = math.random(4)
    if kind == 1 then relay:cut() elseif kind == 2 then relay:hang() elseif kind == 3 then relay:hold_replies()
    else relay:slow(20) end
    task.sleep(math.random(20, 200))
    relay:let()
    task.sleep(math.random(50, 200))
  end
end

-- Writes the log, for a reader of a violation.
local function write(log, path)
  local file = assert(io.open(path, "w"))
  for _, lease in ipairs(log) do file:write(("%.3f\t%.3f\t%d\n"):format(lease.from, lease.to, lease.by)) end
  file:close()
end

--- Lets one client of each kind compete for |seconds|. Returns their counts of leases, and the log.
function contest.run(world, kinds, seconds, faults)
  local clients, counts, log, failure = {}, {}, {}, nil
  for index, kind in ipairs(kinds) do clients[index] = world:client { kind = kind } end
  local deadline = task.now() + seconds * 1000
  if faults then task.start(function() disturb(world, deadline) end) end
  task.each(clients, #clients, function(client)
    local index
    for at, one in ipairs(clients) do index = one == client and at or index end
    local ok, result = pcall(compete, client, log, deadline, index)
    if ok then counts[index] = result else failure = failure or result end
  end)
  local ms, first, second = contest.overlap(log)
  write(log, (world.settings.log:gsub("%.log$", "-contest.tsv")))
  if ms then
    World.fails("two leases overlapped by %.1f ms (clients %d and %d; %d leases)", ms, first.by, second.by, #log)
  end
  if failure then error(failure, 0) end
  return counts, log
end

return contest
