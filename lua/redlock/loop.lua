--- Common code of the loops of Lua programs: clients and locks whose waits let other coroutines
--- run. Coroutines share one client, and so one connection to each node.
---
--- A turn of the loop (loop_turn.lua) reads the replies, wakes the coroutines whose operations have
--- ended, and sends the commands that coroutines have queued since the last turn. A coroutine that
--- starts an operation queues its commands. If no other coroutine waits, it sends them at once.
---
--- A seat is the state of a client in one loop. It has turn(), wanted() and leave(). A loop may add
--- fields. It sets seat.watch (see attend()), and seat.rests while that watch does not keep the
--- loop running. It sets seat.resuming while it resumes coroutines. If seat.begun is set then,
--- turn() must follow.
--- A loop is a table with the following functions:
---   here()             returns the running loop, which is a key; nil where no coroutine can wait
---   sleeper()          returns an object by which one coroutine waits
---   wait(sleeper)      lets other coroutines run until signal(sleeper), or returns earlier
---   signal(sleeper)    wakes the coroutine, if possible without running it before it returns
---   is_closed(sleeper) optional: returns true if the coroutine never goes on, nil if unknown
---   spawn(fn)          runs fn() in a coroutine of the loop; returns false if no loop runs
---   attend(seat, here, descriptor)
---                      calls turn() when the descriptor is readable, and leave() once wanted()
---                      is false. Sets seat.watch. May be called again
---   wake(seat)         calls wanted() soon
---   unwatch(watch, descriptor)
---                      undoes attend(); the caller may close the descriptor afterwards
---   block(handle)      optional: waits outside of a loop until the client must be processed
---   outside            if there is no block(): advice for messages
---   collects           true if the loop keeps waiting coroutines alive and drops dead ones: then
---                      the client refers to waits only weakly

local options = require "redlock.options"
if options.inside_nginx() then
  error("redlock: this module is not for nginx; use redlock.new() there, which lets other requests go on", 0)
end

local core = require "redlock.core"
local client_module = require "redlock.client"
local lead = require "redlock.lead"
local turns = require "redlock.loop_turn"
local section = require "redlock.section"
local slots = require "redlock.slots"
require "redlock.lock"

local lock_options, check_resource, check_resources = options.lock, options.resource, options.resources
local release_options, section_release, check_token = options.release, options.section_release, options.token
local acquire_options, give_token = options.acquire, core.give_token
local attach, attach_options, check_handover, detach = core.attach, options.attach, options.handover, core.detach
local abandon = core.abandon
local new_lock, start, pending, identify, release_send =
  core.lock, core.start, core.pending, core.id, core.release_send
local watched, keep, left_of, now = core.watched, core.keep, core.left, core.now
local process, shown, wait_for, wake = turns.process, turns.shown, turns.wait_for, turns.wake
local wake_idle_seats, watch_lease = turns.wake_idle_seats, turns.watch_lease

local PAUSE = 0.2 -- seconds, after a failed acquire of lead()

local RELEASE = core.operations.release.code

local weak_values = { __mode = "v" }
local weak_keys = { __mode = "k" }

local lock_methods, client_methods = {}, {}
local lock_class = { __name = "redlock.lock", __index = lock_methods, __metatable = "redlock.lock" }
local client_class = { __name = "redlock.client", __index = client_methods, __metatable = "redlock.client" }

-- ------------------------------------------------------------------------------------------ checks

-- Returns the handle of the object before the colon; getmetatable() returns its class.
local function check_object(object, noun, method)
  if type(object) ~= "table" or getmetatable(object) ~= "redlock." .. noun then
    error("redlock: " .. noun .. ":" .. method .. "() needs a " .. noun .. " before the colon, got "
      .. options.kind(object), 4)
  end
  return object.handle
end

local function check_lock(lock, method)
  if type(lock) == "table" and getmetatable(lock) == "redlock.lock" then return lock.handle end
  local handle = check_object(lock, "lock", method)
  return handle
end

local function check_client(self, method)
  local handle = check_object(self, "client", method)
  return handle
end

-- Returns the running loop. Where no coroutine can wait, returns nil if the call may block, and
-- raises otherwise.
local function check_here(self, what)
  local loop = self.loop
  local here = loop.here()
  if not here and not loop.block then
    error("redlock: " .. what .. "() waits, so call it in a coroutine" .. loop.outside, 3)
  end
  return here
end

local function closed(resource)
  return nil, shown(resource) .. ": the client has been closed", "closed"
end

-- ------------------------------------------------------------------------------------------- locks

-- Keeps the last result for a coroutine that has not been resumed since, because the next operation
-- replaces it.
local function keep_results(lock, wait)
  if wait.results or pending(lock.handle) then return end
  wait.results = { lock.handle:result() }
  if lock.client.waiting[lock.id] == wait then
    wake(lock.client, lock.id, wait)
  else
    wait.ended = true
    lock.client.loop.signal(wait.sleeper)
  end
end

-- Returns true if the next operation must cancel the one in flight, because its coroutine is gone.
-- A release cancels an extend, and any operation whose coroutine is not known to live.
local function must_cancel(lock, wait, operation)
  local loop = lock.client.loop
  local is_closed = loop.is_closed and loop.is_closed(wait.sleeper)
  if operation ~= "release" then return is_closed end
  return is_closed ~= false or lock.operation == "extend"
end

-- Prepares a lock for the next operation while a coroutine waits for the last one.
local function prepare(lock, operation)
  local wait, handle = lock.wait, lock.handle
  if not wait.waiting then return end
  if pending(handle) and must_cancel(lock, wait, operation) then
    if lock.operation == "release" then
      abandon(handle)
      wait.results = { nil, shown(handle:resource()) .. ": another coroutine has begun to wait for the release",
        "cancelled" }
      wake(lock.client, lock.id, wait)
      return
    end
    handle:cancel()
  end
  keep_results(lock, wait)
  lock.client.untaken[wait] = nil -- The lock is in use.
end

-- Waits for the started operation, and returns its result.
local function finish(lock, operation, here)
  local client, handle, wait = lock.client, lock.handle, lock.wait
  if wait.waiting then
    wait = { sleeper = client.loop.sleeper() }
    lock.wait = wait
  end
  lock.operation, wait.waiting, wait.ended = operation, true, false
  turns.wait(client, lock, wait, here)
  wait.waiting, client.untaken[wait] = false, nil
  local results = wait.results
  wait.results = nil
  if operation ~= "acquire" then
    if next(client.leases) ~= nil then wake_idle_seats(client) end
  elseif here and watched(handle) then
    watch_lease(client, lock, here)
  end
  if results then return results[1], results[2], results[3] end
  if client.closing and operation ~= "release" then return closed(handle:resource()) end
  return handle:result()
end

for name, entry in pairs(core.operations) do
  if entry.of == "lock" then
    local number, check, called = entry.code, options.arguments[entry.argument], "lock:" .. name
    lock_methods[name] = function(lock, argument)
      local handle = check_lock(lock, name)
      if argument ~= nil then argument = check(argument, 2) end
      local here = check_here(lock.client, called)
      if lock.client.closing then return closed(handle:resource()) end
      prepare(lock, name)
      local started, message, code = start(handle, number, argument)
      -- Outside of a loop the watchdog thread extends the lease, as in a script.
      if started and not here then started, message, code = keep(handle) end
      if not started then return nil, message, code end
      return finish(lock, name, here)
    end
  end
end

-- Sends a release without waiting. Wakes idle seats, because process() may have read replies.
local function release_without_waiting(lock, handle)
  local sent, message, code = release_send(handle)
  if not sent then return nil, message, code end
  lock.operation = "release"
  wake_idle_seats(lock.client)
  return true
end

function lock_methods.release(lock, given)
  local handle = check_lock(lock, "release")
  local without_waiting = given ~= nil and release_options(given, 2)
  local here = not without_waiting and check_here(lock.client, "lock:release")
  if lock.client.closing then return closed(handle:resource()) end -- close() is releasing it
  prepare(lock, "release")
  if without_waiting then return release_without_waiting(lock, handle) end
  local started, message, code = start(handle, RELEASE)
  if not started then return nil, message, code end
  return finish(lock, "release", here)
end

function lock_methods.result(lock)
  local handle = check_lock(lock, "result")
  process(lock.client)
  local result, message, code = handle:result()
  if result then return result end
  return nil, message, code
end

function lock_methods.detach(lock)
  local handle = check_lock(lock, "detach")
  prepare(lock, "detach")
  local text, message, code = detach(handle)
  if text then return text end
  return nil, message, code
end

function lock_methods.cancel(lock)
  local handle = check_lock(lock, "cancel")
  handle:cancel() -- makes the descriptor readable, so that the loop wakes the coroutine
end

function lock_methods.check(lock)
  local handle = check_lock(lock, "check")
  local left, message = left_of(handle)
  if not left then error(message, 2) end
  return left
end

-- The other methods are those of the blocking lock, without start(), whose operation no loop would
-- complete.
for name, method in pairs(core.lock_methods) do
  if not lock_methods[name] and name ~= "start" then
    lock_methods[name] = function(lock, ...)
      local handle = check_lock(lock, name)
      return method(handle, ...)
    end
  end
end

function lock_class.__tostring(lock)
  return tostring(lock.handle)
end

local function give_back(lock)
  lock:cancel()
  lock:release()
end

-- Sends the release without waiting where no coroutine can wait, for example in coroutine.close().
function lock_class.__close(lock)
  if not pcall(give_back, lock) then pcall(lock_methods.release, lock, { wait = false }) end
end

local function wrap(self, handle)
  local lock = setmetatable({
    client = self,
    handle = handle,
    id = identify(handle),
    wait = { sleeper = self.loop.sleeper() }, -- of the operation in flight, or of the next one
  }, lock_class)
  self.handles[lock.id], self.by_id[lock.id] = handle, lock
  return lock
end

-- ----------------------------------------------------------------------------------------- clients

client_methods.lock = core.client_methods.lock

function client_methods.new_lock(self, resource, given)
  check_client(self, "new_lock")
  check_resources(self, "table", resource, "new_lock", 2)
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource, given ~= nil and lock_options(given, 2) or nil)
  if not handle then return nil, message, code end
  return wrap(self, handle)
end

function client_methods.acquire(self, resource, given)
  check_client(self, "acquire")
  check_resources(self, "table", resource, "acquire", 2)
  check_here(self, "client:acquire")
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource, given ~= nil and acquire_options(given, 2) or nil)
  if not handle then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(handle, given.token) end
  local lock = wrap(self, handle)
  local validity
  validity, message, code = lock:acquire()
  if not validity then return nil, message, code end
  return lock
end

function client_methods.attach(self, text, given)
  check_client(self, "attach")
  check_handover(self, "table", text, 2)
  check_here(self, "client:attach")
  if self.closing then return nil, "the client has been closed", "closed" end
  local handle, message, code = attach(self.handle, text, given ~= nil and attach_options(given, 2) or nil)
  if not handle then return nil, message, code end
  local lock = wrap(self, handle)
  local validity
  validity, message, code = lock:acquire()
  if not validity then return nil, message, code end
  return lock
end

--- In PUC-Rio Lua 5.1 the function must not yield: its pcall cannot.
function client_methods.with(self, resource, ...)
  check_client(self, "with")
  check_resources(self, "table", resource, "with", 2)
  check_here(self, "client:with")
  local given, at = options.section(2, ...)
  local how = given ~= nil and section_release(given, 2) or nil
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource, given)
  if not handle then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(handle, given.token) end
  local lock = wrap(self, handle)
  return section.run(lock, how, select(at, ...))
end

-- A lock object is made for each question.
local function ask(self, handle, operation, argument)
  local lock = wrap(self, handle)
  local ok, message, code = start(handle, core.operations[operation].code, argument)
  if ok then ok, message, code = finish(lock, operation, self.loop.here()) end
  return ok, message, code
end

function client_methods.inspect(self, resource, given)
  check_client(self, "inspect")
  check_resource(self, "table", resource, "inspect", 2)
  local permits = options.inspection(given, 2)
  if permits then
    local found, wrong, why = slots.inspect(client_methods.inspect, self, resource, permits)
    return found, wrong, why
  end
  check_here(self, "client:inspect")
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource)
  if not handle then return nil, message, code end
  local ok
  ok, message, code = ask(self, handle, "inspect")
  if ok or code == "unavailable" then return (core.keys(handle)) end
  return nil, message, code
end

function client_methods.doctor(self, given)
  check_client(self, "doctor")
  local resource, keys_too = options.doctor(self, "table", given, 2)
  check_here(self, "client:doctor")
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource)
  if not handle then return nil, message, code end
  local ok
  ok, message, code = ask(self, handle, "doctor", keys_too)
  if ok or code == "unavailable" then return (core.findings(handle)) end
  return nil, message, code
end

function client_methods.bootstrap(self)
  check_client(self, "bootstrap")
  check_here(self, "client:bootstrap")
  if self.closing then return nil, "the client has been closed", "closed" end
  local handle, message, code = new_lock(self.handle, "redlock-bootstrap")
  if not handle then return nil, message, code end
  local lock = wrap(self, handle)
  local ok
  ok, message, code = start(handle, core.operations.bootstrap.code) -- Not by ask(): it raises at its caller's line.
  if ok then ok, message, code = finish(lock, "bootstrap", self.loop.here()) end
  if ok then return true end
  return nil, message, code
end

function client_methods.force_release(self, resource, token)
  check_client(self, "force_release")
  check_resource(self, "table", resource, "force_release", 2)
  check_token(token, 2)
  check_here(self, "client:force_release")
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource)
  if not handle then return nil, message, code end
  local count
  count, message, code = ask(self, handle, "force_release", token)
  if count then return count end
  return nil, message, code
end

-- A new campaign is refused while the client closes.
lead.install(client_methods, {
  kind = "table", check = check_client, here = check_here, wrap = wrap,
  refuses = function(self, resource)
    if self.closing then return select(2, closed(resource)) end
  end,
  pause = function(self)
    local here = self.loop.here()
    if here then wait_for(self, here, PAUSE, function() return self.closing end) end
    return not here or self.gone or self.closing or self.handle:pollfd() ~= nil
  end,
})

function client_methods.stats(self)
  local handle = check_client(self, "stats")
  return handle:stats()
end

function client_methods.nodes(self)
  local handle = check_client(self, "nodes")
  return handle:nodes()
end

-- Cancels the operations of other coroutines, except releases.
local function give_up(self)
  for id, handle in pairs(self.handles) do
    local lock = self.by_id[id]
    if lock and lock.operation ~= "release" then handle:cancel() end
  end
  process(self)
end

-- Waits until no reply is outstanding, or until the deadline.
local function await_replies(self, here, deadline)
  process(self)
  wait_for(self, here, deadline - now(), function() return core.outstanding(self.handle) == 0 end)
end

-- Returns the results of core.close(). Outside of a loop this call blocks for every loop.
local function close(self, here)
  local handle = self.handle
  give_up(self)
  if not here then return handle:close() end
  local _, budget = core.outstanding(handle)
  local deadline = now() + budget
  await_replies(self, here, deadline)
  core.shut(handle) -- releases what is held
  await_replies(self, here, deadline)
  for _, seat in pairs(self.seats) do seat.leave() end
  return core.close(handle)
end

--- Releases all locks, ends the waits of other coroutines, waits for the replies, and closes the
--- connections.
function client_methods.close(self)
  local handle, here = check_client(self, "close"), self.loop.here()
  local other = self.closing
  if other and not other.results and here then
    -- Another coroutine closes the client: both return the same results.
    local _, budget = core.outstanding(handle)
    wait_for(self, here, 2 * budget, function() return other.results end)
    if other.results then return other.results[1], other.results[2], other.results[3] end
  end
  local closing = {}
  self.closing = closing
  local ok, message, code = close(self, here)
  if ok then message, code = nil, nil end
  closing.results, self.gone = { ok, message, code }, true
  for id, wait in pairs(self.waiting) do wake(self, id, wait) end
  for wait in pairs(self.checkers) do self.loop.signal(wait.sleeper) end
  for _, seat in pairs(self.seats) do seat.leave() end
  return ok, message, code
end

function client_class.__tostring(self)
  return tostring(self.handle)
end

function client_class.__close(self)
  pcall(client_methods.close, self)
end

local loops = {}

local getinfo = not coroutine.isyieldable and type(debug) == "table" and debug.getinfo -- luacheck: ignore

--- Returns true if the coroutine is suspended inside of `wait`. In Lua 5.1 and 5.2, within pcall or
--- a C function, yield raises an error, and the coroutine soon waits elsewhere.
function loops.waits_in(wait, thread)
  if coroutine.status(thread) ~= "suspended" then return false end
  local caller = getinfo and getinfo(thread, 1, "f") -- of yield
  return not getinfo or caller ~= nil and caller.func == wait
end

--- Like redlock.new(), for clients that wait in this loop. Raises misuse at `level`, as seen from
--- the caller.
function loops.new(loop, nodes, given, level)
  local handle = client_module.new(nodes, given, level + 1)
  core.driver_serves(handle)
  return setmetatable({
    loop = loop,
    handle = handle,
    waiting = loop.collects and setmetatable({}, weak_values) or {}, -- by id: waits of operations
    checkers = loop.collects and setmetatable({}, weak_keys) or {}, -- waits that wait for a condition
    seats = setmetatable({}, weak_keys), -- by loop
    by_id = setmetatable({}, weak_values), -- locks
    handles = setmetatable({}, weak_values), -- by id; the collector removes them before it finalizes them
    sweep_at = 0,
    untaken = {}, -- by wait: granted leases whose coroutines have not run since
    leases = setmetatable({}, weak_keys), -- watched locks -> seat
  }, client_class)
end

return loops
