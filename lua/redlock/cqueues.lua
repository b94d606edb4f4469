--- redlock for programs that run in cqueues: the same clients and locks, but what has to wait lets
--- the other coroutines go on. Coroutines share one client, and so one connection to each node.

local condition = require "cqueues.condition"
local cqueues = require "cqueues"

local core = require "redlock.core"
local client_module = require "redlock.client"
local loss = require "redlock.loss"
local options = require "redlock.options"
local section = require "redlock.section"
require "redlock.lock"

local lock_options, check_resource, check_resources = options.lock, options.resource, options.resources
local release_options, section_release, check_token = options.release, options.section_release, options.token
local acquire_options, give_token = options.acquire, core.give_token
local attach, attach_options, check_handover, detach = core.attach, options.attach, options.handover, core.detach
local new_lock, start, pending, late, identify, next_ended, release_send =
  core.lock, core.start, core.pending, core.late, core.id, core.next_ended,
  core.release_send
local next_lost, watched, keep, left_of = core.next_lost, core.watched, core.keep, core.left

local LOOK = 1 -- how often, in seconds, to look whether somebody still has to look after the leases

local RELEASE = core.calls.release.code

local weak_values = { __mode = "v" }
local weak_keys = { __mode = "k" }

local lock_methods, client_methods = {}, {}
local lock_class = { __name = "redlock.lock", __index = lock_methods, __metatable = "redlock.lock" }
local client_class = { __name = "redlock.client", __index = client_methods, __metatable = "redlock.client" }

-- on_lost has a coroutine of its own: it may wait.
local function tell_losses(self)
  local on_lost, handle, reason = next_lost(self.handle)
  while on_lost do
    local lock, told, why, controller = self.by_id[identify(handle)], on_lost, reason, cqueues.running()
    if lock and controller then
      controller:wrap(function() loss.tell_yielding(told, lock, why) end)
    elseif lock then
      loss.tell(told, lock, why)
    end
    on_lost, handle, reason = next_lost(self.handle)
  end
end

-- Processes what there is to process, wakes those whose operation has ended by it, and tells of losses.
local function collect(self)
  local handle = self.handle
  handle:process()
  local id = next_ended(handle)
  while id do
    local waiter = self.waiting[id]
    if waiter then waiter:signal() end
    id = next_ended(handle)
  end
  tell_losses(self)
end

-- A controller keeps a descriptor until it is told otherwise, and fails when it has been closed. So
-- none has ours unless somebody waits, and then the client can neither be closed nor collected.
local function leave(self)
  local descriptor = self.handle:pollfd()
  if descriptor then cqueues.cancel(descriptor) end
end

-- Who waits in the controller that is running; `driver` is the one of them who polls.
local function seat_of(self)
  local controller = cqueues.running() or self
  local seat = self.seats[controller]
  if not seat then
    seat = { waiters = setmetatable({}, weak_keys) }
    self.seats[controller] = seat
  end
  return seat
end

-- Who polled, or waited, does so no more.
local function rise(self, seat, waiter)
  seat.waiters[waiter] = nil
  if seat.driver == waiter then
    seat.driver = nil
    local successor = next(seat.waiters)
    if successor then successor:signal() else leave(self) end
  end
end

-- Nobody may wait for long now, and then nobody polls: nodes that were not needed for the decision get their
-- commands first, where that takes but a moment (csrc/core/rl_late.c).
local function serve_late(self, handle, ticket)
  local seconds = late(handle)
  while seconds and not ticket.results do
    cqueues.poll(self.handle, seconds)
    collect(self)
    seconds = late(handle)
  end
end

-- One of the coroutines that wait in a controller polls the client for all of them, so that a reply
-- does not wake everyone. The others wait to be told. Another controller, whose driver may not get
-- its turn before this one has come to an end, has a driver of its own.
local function wait(self, lock, ticket)
  local handle, waiter, id, seat = lock.handle, ticket.waiter, lock.id, seat_of(self)
  self.waiting[id], seat.waiters[waiter] = waiter, true
  collect(self)
  while not ticket.results and pending(handle) do
    if seat.driver == nil then seat.driver = waiter end
    if seat.driver == waiter then
      cqueues.poll(self.handle, waiter)
    else
      cqueues.poll(waiter, self.handle:timeout())
      if not ticket.results and pending(handle) then seat.driver = waiter end
    end
    collect(self)
  end
  serve_late(self, handle, ticket)
  if self.waiting[id] == waiter then self.waiting[id] = nil end
  rise(self, seat, waiter)
end

-- Whether a lease is held that keeps itself, or whose loss is to be told, and that was taken in the controller
-- whose keeper has `waiter`: a loop within a loop ends though the outer one holds such a lease.
local function has_leases_to_look_after(self, waiter)
  for lock, keeper in pairs(self.leases) do
    if not watched(lock.handle) then
      self.leases[lock] = nil
    elseif keeper == waiter then
      return true
    end
  end
  return false
end

-- Such leases are looked after when nobody waits, too: by a coroutine in each controller that has taken one. It
-- ends with the last of them.
local function look_after(self, waiter)
  local seat = seat_of(self)
  seat.waiters[waiter] = true
  while not self.closing and has_leases_to_look_after(self, waiter) do
    if seat.driver == nil then seat.driver = waiter end
    if seat.driver == waiter then
      cqueues.poll(self.handle, waiter, LOOK)
    else
      cqueues.poll(waiter, math.min(self.handle:timeout() or LOOK, LOOK))
    end
    if not self.closing then collect(self) end
  end
  rise(self, seat, waiter)
end

local function begin_to_look_after(self, lock)
  local controller = cqueues.running()
  if not controller or not watched(lock.handle) then return end
  local waiter = self.keepers[controller]
  self.leases[lock] = waiter
  if waiter then return end
  waiter = condition.new()
  self.leases[lock], self.keepers[controller] = waiter, waiter
  controller:wrap(function()
    look_after(self, waiter)
    self.keepers[controller] = nil
  end)
end

-- A lease has ended by its holder's doing.
local function look_again(self)
  for _, waiter in pairs(self.keepers) do waiter:signal() end
end

-- The object before the colon, whose class is told by what getmetatable() shows of it.
local function check_object(object, noun, method)
  if type(object) ~= "table" or getmetatable(object) ~= "redlock." .. noun then
    local kind = type(object)
    error("redlock: " .. noun .. ":" .. method .. "() needs a " .. noun .. " before the colon, got "
      .. (kind == "nil" and kind or "a " .. kind), 4)
  end
  return object.handle
end

local function check_lock(lock, method)
  local handle = check_object(lock, "lock", method)
  return handle
end

local function check_client(self, method)
  local handle = check_object(self, "client", method)
  return handle
end

local function closed(resource)
  if type(resource) == "table" then resource = resource[1] end
  local shown = resource:sub(1, 80):gsub("[^ -~]", function(byte) return ("\\x%02x"):format(byte:byte()) end)
  return nil, "'" .. shown .. "': the client has been closed", "closed"
end

-- Before an operation is started: a coroutine that has not been resumed since the last one ended will want to
-- know how that did, which the lock forgets now.
local function keep_results(lock)
  local ticket = lock.ticket
  if ticket.waiting and not pending(lock.handle) then ticket.results = { lock.handle:result() } end
end

-- Waits for what has been started, and returns what the blocking call would have returned.
local function finish(lock, operation)
  local ticket = lock.ticket
  if ticket.waiting then
    ticket = { waiter = condition.new() }
    lock.ticket = ticket
  end
  lock.operation, ticket.waiting = operation, true
  wait(lock.client, lock, ticket)
  ticket.waiting = false
  local results = ticket.results
  ticket.results = nil
  if operation == "acquire" then begin_to_look_after(lock.client, lock) else look_again(lock.client) end
  if results then return results[1], results[2], results[3] end
  if lock.client.closing and operation ~= "release" then return closed(lock.handle:resource()) end
  return lock.handle:result()
end

for name, call in pairs(core.calls) do
  if call.of == "lock" then
    local number, check = call.code, options.arguments[call.argument]
    lock_methods[name] = function(lock, argument)
      local handle = check_lock(lock, name)
      if argument ~= nil then argument = check(argument, 2) end
      if lock.client.closing then return closed(handle:resource()) end
      keep_results(lock)
      local started, message, code = start(handle, number, argument)
      -- Where no controller runs, no coroutine goes on after the call: a thread does, as in a script.
      if started and not cqueues.running() then started, message, code = keep(handle) end
      if not started then return nil, message, code end
      return finish(lock, name)
    end
  end
end

-- What has come meanwhile makes the descriptor readable for whoever polls.
local function send(lock, handle)
  local sent, message, code = release_send(handle)
  if not sent then return nil, message, code end
  lock.operation = "release"
  look_again(lock.client)
  return true
end

function lock_methods.release(lock, given)
  local handle = check_lock(lock, "release")
  local unheard = given ~= nil and release_options(given, 2)
  if lock.client.closing then return closed(handle:resource()) end -- close() is releasing it
  keep_results(lock)
  if unheard then return send(lock, handle) end
  local started, message, code = start(handle, RELEASE)
  if not started then return nil, message, code end
  return finish(lock, "release")
end

function lock_methods.result(lock)
  local handle = check_lock(lock, "result")
  collect(lock.client)
  local result, message, code = handle:result()
  if result then return result end
  return nil, message, code
end

function lock_methods.detach(lock)
  local handle = check_lock(lock, "detach")
  local text, message, code = detach(handle)
  if text then return text end
  return nil, message, code
end

function lock_methods.cancel(lock)
  local handle = check_lock(lock, "cancel")
  handle:cancel()
  collect(lock.client)
end

function lock_methods.check(lock)
  local handle = check_lock(lock, "check")
  local left, message = left_of(handle)
  if not left then error(message, 2) end
  return left
end

-- Methods that only look are those of the lock that blocks. There is no lock:start(): nobody would go on with it.
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

-- Where nothing can be waited for, in coroutine.close() for one, the release has been sent anyway.
function lock_class.__close(lock)
  pcall(give_back, lock)
end

local function wrap(self, handle)
  local lock = setmetatable({
    client = self,
    handle = handle,
    id = identify(handle),
    ticket = { waiter = condition.new() }, -- of the operation in flight, or of the next one
  }, lock_class)
  self.locks[lock], self.by_id[lock.id] = true, lock
  return lock
end

function client_methods.lock(self, resource, given)
  check_client(self, "lock")
  check_resources(self, "table", resource, "lock", 2)
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource, given ~= nil and lock_options(given, 2) or nil)
  if not handle then return nil, message, code end
  return wrap(self, handle)
end

function client_methods.acquire(self, resource, given)
  check_client(self, "acquire")
  check_resources(self, "table", resource, "acquire", 2)
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
  if self.closing then return nil, "the client has been closed", "closed" end
  local handle, message, code = attach(self.handle, text, given ~= nil and attach_options(given, 2) or nil)
  if not handle then return nil, message, code end
  local lock = wrap(self, handle)
  local validity
  validity, message, code = lock:acquire()
  if not validity then return nil, message, code end
  return lock
end

--- In Lua 5.1, the one that is not LuaJIT, the function must not yield: its pcall cannot.
function client_methods.with(self, resource, ...)
  check_client(self, "with")
  check_resources(self, "table", resource, "with", 2)
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
  local ok, message, code = start(handle, core.calls[operation].code, argument)
  if ok then ok, message, code = finish(lock, operation) end
  return ok, message, code
end

function client_methods.inspect(self, resource)
  check_client(self, "inspect")
  check_resource(self, "table", resource, "inspect", 2)
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource)
  if not handle then return nil, message, code end
  local ok
  ok, message, code = ask(self, handle, "inspect")
  if ok or code == "unavailable" then return (core.keys(handle)) end
  return nil, message, code
end

function client_methods.force_release(self, resource, token)
  check_client(self, "force_release")
  check_resource(self, "table", resource, "force_release", 2)
  check_token(token, 2)
  if self.closing then return closed(resource) end
  local handle, message, code = new_lock(self.handle, resource)
  if not handle then return nil, message, code end
  local count
  count, message, code = ask(self, handle, "force_release", token)
  if count then return count end
  return nil, message, code
end

function client_methods.nodes(self)
  local handle = check_client(self, "nodes")
  return handle:nodes()
end

-- Ends what other coroutines are waiting for, but for releases, which are heard of.
local function give_up(self)
  for lock in pairs(self.locks) do
    if lock.operation ~= "release" then lock.handle:cancel() end
  end
  collect(self)
end

-- Waits until all nodes have answered, but not for ever.
local function await_replies(self, deadline)
  local owed = core.owed(self.handle)
  while owed > 0 and cqueues.monotime() < deadline do
    cqueues.poll(self.handle, deadline - cqueues.monotime())
    collect(self)
    owed = core.owed(self.handle)
  end
end

--- Releases what is held, ends what other coroutines are waiting for, waits for the replies, closes.
function client_methods.close(self)
  local handle = check_client(self, "close")
  local other = self.closing
  if other and not other.results then
    -- Another coroutine is at it, and will be told what this one is told.
    local _, budget = core.owed(handle)
    cqueues.poll(other.ended, 2 * budget)
    if other.results then return other.results[1], other.results[2], other.results[3] end
  end
  local closing = { ended = condition.new() }
  self.closing = closing
  give_up(self)
  local _, budget = core.owed(handle)
  local deadline = cqueues.monotime() + budget
  await_replies(self, deadline)
  core.shut(handle) -- releases what is held
  await_replies(self, deadline)
  leave(self)
  local ok, message, code = core.close(handle)
  if ok then message, code = nil, nil end
  closing.results = { ok, message, code }
  closing.ended:signal()
  for _, waiter in pairs(self.waiting) do
    waiter:signal()
  end
  look_again(self)
  return ok, message, code
end

function client_class.__tostring(self)
  return tostring(self.handle)
end

function client_class.__close(self)
  pcall(client_methods.close, self)
end

local module = {}

--- As redlock.new(), for use inside of a cqueues controller.
---@param nodes (string|redlock.Node)[]
---@param given? redlock.ClientOptions
---@return redlock.cqueues.Client
---@nodiscard
function module.new(nodes, given)
  local handle = client_module.new(nodes, given, 2)
  core.told_by_driver(handle)
  return setmetatable({
    handle = handle,
    waiting = setmetatable({}, weak_values), -- by number: who waits for the end of an operation
    seats = setmetatable({}, weak_keys), -- by controller: who waits there
    locks = setmetatable({}, weak_keys),
    by_id = setmetatable({}, weak_values),
    leases = setmetatable({}, weak_keys), -- locks whose leases are looked after, and by whom
    keepers = setmetatable({}, weak_keys), -- by controller: who does
  }, client_class)
end

return module
