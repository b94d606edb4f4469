--- A round of the fake: one question to all nodes of a client, and the decision by their votes
--- (rl_round.c, rl_quorum.c).

local round = {}

local floor = math.floor

--- Reason of a node that the test has made unavailable.
round.REFUSED = "the test has made it unavailable"

-- Returns `reason` if more than the spare nodes gave it, `otherwise` if neither is possible any
-- more, and nil if nothing is certain.
local function decide(self, needed, graver, reason, otherwise)
  local spare = #self.votes - needed
  if self.granted >= needed then return "ok" end
  if graver > spare then return reason end
  if self.granted + self.pending >= needed or graver + self.pending > spare then return nil end
  return otherwise
end

function round.of_acquire(self)
  return decide(self, self.needed, self.failed, "unavailable", "taken")
end

function round.of_extend(self)
  return decide(self, self.needed, self.taken, "lost", "unavailable")
end

function round.of_release(self)
  local majority = floor(#self.votes / 2) + 1
  local pending, certain = self.pending, self.granted + self.taken
  if self.granted >= majority then return "ok" end
  if self.taken >= majority then return "lost" end
  if self.granted + pending >= majority or self.taken + pending >= majority then return nil end
  if certain >= majority then return "ok" end
  if certain + pending >= majority then return nil end
  return "unavailable"
end

--- Decides when every node has answered, or the time is over.
function round.of_question(self)
  if self.pending > 0 then return nil end
  local majority = floor(#self.votes / 2) + 1
  return self.granted + self.taken >= majority and "ok" or "unavailable"
end

local counters = { granted = "granted", taken = "taken", error = "failed" }

local function settle(self, index, vote, detail)
  if self.over then
    self.client:count_vote(index, "late", true)
    if self.late then self.late(index, vote) end
    return
  end
  local entry = self.votes[index]
  entry.vote, entry.latency = vote, 0
  if vote == "error" then entry.error = detail else entry.key = detail end
  self[counters[vote]] = self[counters[vote]] + 1
  self.pending = self.pending - 1
end

local function finish(self, code)
  self.over = true
  self.clock:cancel(self.timer)
  for index, vote in ipairs(self.votes) do
    self.client:count_vote(index, vote.vote, vote.vote == "granted" or vote.vote == "taken")
  end
  self.ended(self, code)
end

local function look(self)
  local code = not self.over and self.decide(self)
  if code then finish(self, code) end
end

local function time_out(self)
  self.failed, self.pending = self.failed + self.pending, 0
  finish(self, self.decide(self))
end

--- Ends a round without a decision.
function round.abandon(self)
  self.over = true
  self.clock:cancel(self.timer)
end

-- Asks one node.
local function put(self, node, index, refused)
  if refused then
    if self.client.world.everywhere then self.client:count_connection(index, round.REFUSED) end
    return settle(self, index, "error", round.REFUSED)
  end
  local kind, vote, detail = node:call(function(at) return self.ask(at, index) end, function(late, key)
    settle(self, index, late, key)
    look(self)
  end)
  self.client:count_connection(index, kind == "error" and vote or nil)
  if kind == "ok" then
    settle(self, index, vote, detail)
  elseif kind == "error" then
    settle(self, index, "error", vote)
  end
end

--- Asks all nodes of a client.
---
--- of: { ask = fn(node, index), which returns a vote and a detail; decide = one of the functions
--- above; timeout = milliseconds for nodes that hang; ended = fn(round, code); for later votes
--- late = fn(index, vote) }
function round.start(client, resources, of)
  local self = of
  self.client, self.clock = client, client.world.clock
  self.needed, self.began = client.quorum, self.clock.now
  self.votes, self.granted, self.taken, self.failed, self.pending = {}, 0, 0, 0, #client.nodes
  for index, node in ipairs(client.nodes) do self.votes[index] = { node = node.name, vote = "unknown" } end
  local refused = client.world:outcome(resources) == "unavailable"
  client.used = true
  for index, node in ipairs(client.nodes) do put(self, node, index, refused) end
  look(self)
  if not self.over then
    self.timer = self.clock:at(self.began + self.timeout, function() time_out(self) end)
  end
  return self
end

return round
