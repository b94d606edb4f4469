--- client:lead() and client:leader(): one leader among all clients that campaign for a name.
---
--- LEAD-1. A campaign is a row of acquires, each of which waits longer than the one before, at most
---         for a minute. With the option wait a campaign has one acquire. After a failure that may
---         pass, on_error gets it, unless another client leads.
--- LEAD-2. A granted acquire begins a term: fn(term) runs. Its argument is the lock, which extends
---         itself and has a fencing token.
--- LEAD-3. The term ends when fn has returned, however long the lease lasted. Then the lock is
---         released. So this process never campaigns while its fn still runs.
--- LEAD-4. If fn returned "resign", lead() returns. Otherwise the next campaign begins.
--- LEAD-5. If fn raises an error, lead() releases the lock and raises the error again.
---
--- A campaign ends early if the client is closed, if its coroutine is closed, if the worker of
--- nginx exits, and if so many nodes reject the password that too few are left.

local core = require "redlock.core"
local options = require "redlock.options"
local section = require "redlock.section"

local lead = {}

local check_resource, check_lead, new_lock = options.resource, options.lead, core.lock
local ipairs, max, min, select = ipairs, math.max, math.min, select
local unpack = table.unpack or unpack -- luacheck: ignore

-- LEAD-1. Milliseconds of the first acquire, and of the longest.
local FIRST, LONGEST = 1000, 60000

-- Failures after which the same acquire may succeed later.
local passing = { taken = true, unavailable = true, expired = true }

local rejections = { "WRONGPASS ", "NOAUTH ", "ERR invalid password", "ERR Client sent AUTH", "ERR AUTH ",
  "an error that quotes the password" }

local function rejects(node)
  for _, start in ipairs(rejections) do
    if node.error and node.error:sub(1, #start) == start then return true end
  end
  return false
end

-- Returns true if too few nodes accept the password: waiting does not help.
local function is_rejected(client)
  local nodes, rejected = client:nodes(), 0
  for _, node in ipairs(nodes) do rejected = rejected + (rejects(node) and 1 or 0) end
  return #nodes - rejected < client:stats().quorum
end

-- ------------------------------------------------------------------------------------------- steps
-- A step returns nil if lead() goes on, otherwise its packed results.

local function pack(...)
  return { n = select("#", ...), ... }
end

-- LEAD-1. An acquire has failed.
local function failed(candidate, message, code)
  local driver = candidate.driver
  if driver.waited then driver.waited(candidate) end
  if candidate.limit or not passing[code] then return pack(nil, message, code) end
  candidate.wait = min(2 * candidate.wait, LONGEST)
  if code == "taken" then return end
  if is_rejected(candidate.client) then return pack(nil, message, code) end
  local answer = candidate.on_error and candidate.on_error(message, code)
  if answer == "resign" then return pack(nil, message, code) end
  local goes_on = not driver.pause or driver.pause(candidate.client)
  if not goes_on then return pack(nil, message, code) end
end

-- LEAD-4. The term has ended, and the lock was held to its end: `answer` and `...` are of fn.
local function ended_in_time(answer, ...)
  if answer == "resign" then return pack(true, ...) end
end

-- LEAD-4. The term has ended after its lease: `answer` and `...` are of fn.
local function ended_late(message, code, answer, ...)
  if answer == "resign" then return pack(nil, message, code, ...) end
end

-- LEAD-4. A term has ended. The arguments after `held` are those of one of the functions above.
local function ended(candidate, held, ...)
  candidate.led, candidate.wait = false, candidate.limit or FIRST
  if held then return ended_in_time(...) end
  return ended_late(...)
end

-- Acts on the results of section.run(): a term has ended, or an acquire has failed.
local function conclude(candidate, ...)
  if candidate.led then return ended(candidate, ...) end
  return failed(candidate, select(2, ...))
end

-- Returns the state of one lead(), and the function for section.run(): it begins a term.
local function begin(client, driver, given, fn, on_error)
  local candidate = { client = client, driver = driver, on_error = on_error, limit = given.wait,
    wait = given.wait or FIRST, led = false }
  return candidate, function(lock)
    candidate.led = true
    if driver.waited then driver.waited(candidate) end
    return fn(lock)
  end
end

-- -------------------------------------------------------------------------------------- observers

-- Returns why leader() returns no leader, and the code. A token may also be on nodes that did not
-- answer: then a client may lead.
local function absent(nodes)
  local answers, most, same = 0, 0, {}
  for _, node in ipairs(nodes) do
    if node.state ~= "unknown" then answers = answers + 1 end
    if node.token then
      same[node.token] = (same[node.token] or 0) + 1
      most = max(most, same[node.token])
    end
  end
  local message = ("%d of %d nodes answered"):format(answers, #nodes)
  if answers <= #nodes / 2 then return message .. "; more than half of them are needed", "unavailable" end
  if most > 0 and most + #nodes - answers > #nodes / 2 then
    return message .. (", and %d of them store the same token; the others decide if its client leads"):format(most),
      "unavailable"
  end
  return message .. ", and no client leads", "not_held"
end

-- ----------------------------------------------------------------------------------------- methods

--- Adds lead() and leader() to the methods of a client. The driver is a table of
---   kind                         type of clients
---   check(client, method)        optional: returns the handle of a client, or raises misuse of it
---   here(client, what)           optional: raises if the call cannot wait
---   refuses(client, name)        optional: returns a message and a code if no campaign may begin
---   wrap(client, handle)         optional: makes a lock
---   waits(candidate, lock)       optional: an acquire of the lock is about to begin
---   waited(candidate)            optional: it has ended
---   pause(client)                optional: waits after a failure; returns true if it could
function lead.install(methods, driver)
  function methods.lead(self, resource, ...)
    local handle = driver.check and driver.check(self, "lead") or self
    check_resource(self, driver.kind, resource, "lead", 2)
    local given, fn, on_error = check_lead(2, ...)
    if driver.here then driver.here(self, "client:lead") end
    local candidate, enter = begin(self, driver, given, fn, on_error)
    local results
    repeat
      local lock, message, code
      if driver.refuses then message, code = driver.refuses(self, resource) end
      if code then return nil, message, code end
      given.wait = candidate.wait
      lock, message, code = new_lock(handle, resource, given)
      if not lock then return nil, message, code end
      if driver.wrap then lock = driver.wrap(self, lock) end
      if driver.waits then driver.waits(candidate, lock) end
      results = conclude(candidate, section.run(lock, nil, enter))
    until results
    return unpack(results, 1, results.n)
  end

  function methods.leader(self, resource)
    if driver.check then driver.check(self, "leader") end
    check_resource(self, driver.kind, resource, "leader", 2)
    if driver.here then driver.here(self, "client:leader") end
    local seen, message, code = methods.inspect(self, resource)
    if not seen then return nil, message, code end
    if seen.holder then return { label = seen.label, fence = seen.fence, ttl = seen.ttl } end
    message, code = absent(seen.nodes)
    return nil, ("'%s': %s"):format(resource, message), code
  end
end

return lead
