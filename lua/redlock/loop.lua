--- What the loops of Lua programs have in common: clients and locks whose waiting lets the other coroutines go on.
--- Coroutines share one client, and so one connection to each node.
---
--- One turn of the loop reads what has come, wakes those whose operation has ended, and sends what all coroutines
--- have begun since the last one. So a coroutine that begins an operation only begins it, unless nobody else waits.
---
--- A loop is a table of what differs. Its functions are called with the seat of a client in a loop, which
--- has turn(), wanted() and leave(), and room for what the loop notes.
---   here()             the loop that runs, which is a key; nil where no coroutine can wait
---   waiter()           somebody who waits, again and again
---   wait(waiter)       in the coroutine that is to be resumed, lets others go on until signal(waiter), or for less
---   signal(waiter)     never runs the waiting coroutine before it returns, but where nothing else can
---   is_closed(waiter)  if there is one: returns true if the coroutine that waits never goes on, and nil if the loop
---                      cannot tell
---   spawn(fn)          runs fn() in a coroutine of the loop; false if no loop runs
---   attend(seat, here, descriptor)
---                      whenever the descriptor is readable, turn() is called, and when wanted() says that nobody wants
---                      it any more, leave(). Notes how in seat.watch; may be called again meanwhile
---   wake(seat)         asks wanted() soon
---   unwatch(watch, descriptor)
---                      what leave() does; the descriptor may be closed then
---   block(handle)      where no loop runs: waits until the client is to be processed
---   outside            if there is no block(): what is to be done instead, for people
---   collects           the loop itself keeps coroutines that wait, and drops those that nobody resumes any more

local options = require "redlock.options"
if options.inside_nginx() then
  error("redlock: the loops of Lua programs are not for nginx, where redlock itself lets other requests go on", 0)
end

local core = require "redlock.core"
local client_module = require "redlock.client"
local credentials = require "redlock.credentials"
local loss = require "redlock.loss"
local section = require "redlock.section"
require "redlock.lock"

local lock_options, check_resource, check_resources = options.lock, options.resource, options.resources
local release_options, section_release, check_token = options.release, options.section_release, options.token
local acquire_options, give_token = options.acquire, core.give_token
local attach, attach_options, check_handover, detach = core.attach, options.attach, options.handover, core.detach
local abandon = core.abandon
local new_lock, start, pending, late, identify, next_ended, release_send =
  core.lock, core.start, core.pending, core.grace, core.id, core.next_ended,
  core.release_send
local next_asked = core.next_asked
local next_lost, watched, keep, left_of = core.next_lost, core.watched, core.keep, core.left

local set_timer, now = core.set_timer, core.now

local LOOK = 1 -- how often, in seconds, to look after leases, and for coroutines that were closed

local RELEASE = core.operations.release.code

local weak_values = { __mode = "v" }
local weak_keys = { __mode = "k" }

local lock_methods, client_methods = {}, {}
local lock_class = { __name = "redlock.lock", __index = lock_methods, __metatable = "redlock.lock" }
local client_class = { __name = "redlock.client", __index = client_methods, __metatable = "redlock.client" }

local function shown(resource)
  if type(resource) == "table" then resource = resource[1] end
  local text = resource:sub(1, 80):gsub("[^ -~]", function(byte) return ("\\x%02x"):format(byte:byte()) end)
  return "'" .. text .. "'"
end

-- ------------------------------------------------------------------------------------------- turns

-- Returns true if a coroutine can wait within pcall: not in Lua 5.1.
local can_wait_in_pcall = coroutine.resume(coroutine.create(function() assert(pcall(coroutine.yield)) end))

-- on_lost has a coroutine of its own: it may wait. Its errors are caught by resuming it from another coroutine. Where
-- the loop resumes what waits itself, pcall does that, and in Lua 5.1 the loop.
local function tell(self, on_lost, lock, reason)
  local loop = self.loop
  local told = loop.spawn(function()
    if loop.collects then
      loss.tell_yielding(on_lost, lock, reason)
    elseif can_wait_in_pcall then
      loss.tell(on_lost, lock, reason)
    else
      on_lost(lock, reason)
    end
  end)
  if not told then loss.tell(on_lost, lock, reason) end
end

-- Returns the lock with this number, unless the collector has ended its handle: a lock that the finalizer of something
-- else reaches, a controller of cqueues for one, outlives it.
local function find(self, id)
  return self.handles[id] and self.by_id[id]
end

local function tell_losses(self)
  local on_lost, handle, reason = next_lost(self.handle)
  while on_lost do
    local lock = find(self, identify(handle))
    if lock then tell(self, on_lost, lock, reason) end
    on_lost, handle, reason = next_lost(self.handle)
  end
end

-- Who had this ticket waits in the seat no more. Whoever looks after the client there may go then.
local function rise(self, ticket)
  local seat = ticket.seat
  if not seat.waiters[ticket] then return end
  seat.waiters[ticket] = nil
  if seat.watch and not seat.turning and next(seat.waiters) == nil then self.loop.wake(seat) end
end

-- So has a function that says as whom to log in.
local function ask_for_credentials(self)
  local handle = self.handle
  local asked, node, index = next_asked(handle)
  while asked do
    local fn, name, number = asked, node, index
    local function ask() credentials.ask(handle, fn, name, number) end
    if not self.loop.spawn(ask) then coroutine.wrap(ask)() end
    asked, node, index = next_asked(handle)
  end
end

-- A coroutine that was closed while it waited does not have what it was to acquire. The others would wait for it until
-- the collector comes, or the ttl is over.
local function give_back_for(lock)
  if lock and lock.operation == "acquire" and lock.handle:result() then release_send(lock.handle) end
end

-- The lease was granted, and would be extended from now on. Its coroutine may be gone, and the loop cannot tell.
local function note_grant(self, lock, ticket)
  if lock and lock.operation == "acquire" and watched(lock.handle) then
    self.leases[lock] = ticket.seat
    self.untaken[ticket] = { id = lock.id, deadline = now() + lock.handle:ttl() / 1000, turns = 0 }
    set_timer(self.handle, LOOK)
  end
end

-- The operation that was waited for has ended.
local function call(self, id, ticket)
  local loop, waiter = self.loop, ticket.waiter
  self.waiting[id], ticket.ended = nil, true
  rise(self, ticket)
  if loop.is_closed and loop.is_closed(waiter) then
    give_back_for(find(self, id))
  else
    note_grant(self, find(self, id), ticket)
    loop.signal(waiter)
  end
end

-- A lease that its coroutine has not taken lasts no longer than one without auto_extend. In two turns of the loop a
-- coroutine that was woken has run, however slow the machine is.
local function give_back_untaken(self)
  for ticket, grant in pairs(self.untaken) do
    local lock = find(self, grant.id)
    grant.turns = grant.turns + 1
    if not lock then
      self.untaken[ticket] = nil
    elseif grant.turns > 2 and now() >= grant.deadline then
      self.untaken[ticket], self.leases[lock] = nil, nil
      ticket.results = { nil, shown(lock.handle:resource()) .. ": released, because its coroutine did not go on",
        "cancelled" }
      lock.operation = "release"
      release_send(lock.handle)
    end
  end
end

-- Ends the acquires of coroutines that were closed: they would go on until their budget ends.
local function sweep(self)
  local is_closed = self.loop.is_closed
  if not is_closed or next(self.waiting) == nil then return end
  set_timer(self.handle, LOOK)
  if now() < self.sweep_at then return end
  self.sweep_at = now() + LOOK
  for id, ticket in pairs(self.waiting) do
    local lock = is_closed(ticket.waiter) and find(self, id)
    if lock and lock.operation == "acquire" then lock.handle:cancel() end
  end
end

-- Processes what there is to process, wakes those whose operation has ended by it, and tells of losses.
local function collect(self)
  local handle, waiting, count = self.handle, self.waiting, 0
  handle:process()
  local id = next_ended(handle)
  while id do
    local ticket = waiting[id]
    if ticket then
      call(self, id, ticket)
      count = count + 1
    end
    id = next_ended(handle)
  end
  self.others_come = count > 1
  tell_losses(self)
  ask_for_credentials(self)
end

-- Returns true if a lease is held that keeps itself, or whose loss is to be told, and that was taken in the loop of
-- this seat: a loop within a loop ends though the outer one holds such a lease.
local function has_leases_to_look_after(self, seat)
  for lock, taken_at in pairs(self.leases) do
    if not find(self, lock.id) or not watched(lock.handle) then
      self.leases[lock] = nil
    elseif taken_at == seat then
      return true
    end
  end
  return false
end

-- A lock that waits is only collected when its coroutine was closed. So nobody is there any more whom its end would be
-- told to, and the loop would never end.
local function has_waiters(self, seat)
  local ticket = next(seat.waiters)
  while ticket and ticket.id and not find(self, ticket.id) do
    self.waiting[ticket.id], seat.waiters[ticket] = nil, nil
    ticket = next(seat.waiters)
  end
  return ticket ~= nil
end

local function is_wanted(self, seat)
  return not self.gone and (has_waiters(self, seat) or has_leases_to_look_after(self, seat))
end

-- Who waits for something else than the end of an operation looks at each turn whether it has come. A coroutine that
-- has been closed does not look any more: whose time is over waits no longer, seen or not.
local function wake_lookers(self)
  local now_is = next(self.lookers) and now()
  for ticket in pairs(self.lookers) do
    self.loop.signal(ticket.waiter)
    if ticket.deadline > now_is then
      set_timer(self.handle, ticket.deadline - now_is)
    else
      self.lookers[ticket] = nil
      rise(self, ticket)
    end
  end
end

local function turn(self, seat)
  if self.gone then return end
  seat.begun, seat.turning = false, true
  sweep(self)
  collect(self)
  wake_lookers(self)
  give_back_untaken(self)
  if next(self.leases) ~= nil then set_timer(self.handle, LOOK) end
  seat.turning = false
end

-- A loop must not have our descriptor unless somebody wants it: then the client can neither be closed nor collected.
local function leave(self, seat)
  local watch = seat.watch
  seat.watch = nil
  if watch then self.loop.unwatch(watch, self.handle:pollfd()) end
end

-- Who waits in the loop that is running. Another loop, which may not get its turn before this one has come to an end,
-- has a seat of its own.
local function new_seat(self, here)
  local seat = { waiters = self.loop.collects and setmetatable({}, weak_keys) or {} }
  seat.turn = function() turn(self, seat) end
  seat.wanted = function() return is_wanted(self, seat) end
  seat.leave = function() leave(self, seat) end
  self.seats[here] = seat
  return seat
end

-- Returns whether somebody looks after the client: a process may have no descriptor left for it.
local function attend(self, seat, here)
  local descriptor = not self.gone and self.handle:pollfd()
  if descriptor then self.loop.attend(seat, here, descriptor) end
  return descriptor
end

-- ----------------------------------------------------------------------------------------- waiting

-- Waits for something else than the end of an operation, for so many seconds at most.
local function wait_for(self, here, seconds, has_come)
  local seat, deadline = self.seats[here] or new_seat(self, here), now() + seconds
  local ticket = { waiter = self.loop.waiter(), deadline = deadline }
  ticket.seat, seat.waiters[ticket], self.lookers[ticket] = seat, true, true
  while not self.gone and not has_come() and now() < deadline and attend(self, seat, here) do
    set_timer(self.handle, deadline - now())
    self.loop.wait(ticket.waiter)
  end
  self.lookers[ticket] = nil
  rise(self, ticket)
end

-- Nobody may wait for long now, and then nobody polls: nodes that were not needed for the decision get their
-- commands first, where that takes but a moment (csrc/core/lifecycle/rl_grace.c).
local function serve_late(self, handle, ticket, here)
  local seconds = late(handle)
  if here then
    wait_for(self, here, seconds or 0, function() return ticket.results or not late(handle) end)
  else
    while seconds and not ticket.results do
      set_timer(self.handle, seconds)
      self.loop.block(self.handle)
      collect(self)
      seconds = late(handle)
    end
  end
end

local function without_descriptor(handle)
  return shown(handle:resource()) .. ": no descriptor is left to wait with, so that nothing was asked; "
    .. "the process needs a higher limit of open files (ulimit -n)"
end

local function wait_in_loop(self, lock, ticket, here)
  local handle, loop, seat = lock.handle, self.loop, self.seats[here] or new_seat(self, here)
  local alone = not self.others_come and next(self.waiting) == nil
  self.waiting[lock.id], ticket.seat, seat.waiters[ticket] = ticket, seat, true
  ticket.id = lock.id
  if (not seat.watch or seat.rests) and not attend(self, seat, here) then
    handle:cancel()
    ticket.results = { nil, without_descriptor(handle), "unavailable" }
  elseif seat.resuming then
    seat.begun = true -- and is sent when all that were woken together have come so far
  elseif alone then
    collect(self)
  end
  while not ticket.ended and pending(handle) do loop.wait(ticket.waiter) end
  if not ticket.ended then
    if self.waiting[lock.id] == ticket then self.waiting[lock.id] = nil end
    rise(self, ticket)
  end
end

-- Where no loop runs, each call polls for itself.
local function wait_by_itself(self, lock, ticket)
  collect(self)
  while not ticket.results and pending(lock.handle) do
    self.loop.block(self.handle)
    collect(self)
  end
end

-- Such leases are looked after when nobody waits, too.
local function begin_to_look_after(self, lock, here)
  local seat = self.seats[here] or new_seat(self, here)
  self.leases[lock] = seat
  attend(self, seat, here)
  set_timer(self.handle, LOOK)
end

-- A lease has ended by its holder's doing.
local function look_again(self)
  for _, seat in pairs(self.seats) do
    if seat.watch and next(seat.waiters) == nil then self.loop.wake(seat) end
  end
end

-- ------------------------------------------------------------------------------------------ checks

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
  if type(lock) == "table" and getmetatable(lock) == "redlock.lock" then return lock.handle end
  local handle = check_object(lock, "lock", method)
  return handle
end

local function check_client(self, method)
  local handle = check_object(self, "client", method)
  return handle
end

-- The loop that runs. Where no coroutine can wait, nil if the call may block, and else a mistake of the caller's.
local function check_here(self, what)
  local loop = self.loop
  local here = loop.here()
  if not here and not loop.block then
    error("redlock: " .. what .. "() waits, so it has to be called in a coroutine" .. loop.outside, 3)
  end
  return here
end

local function closed(resource)
  return nil, shown(resource) .. ": the client has been closed", "closed"
end

-- ------------------------------------------------------------------------------------------- locks

-- Before an operation is started: a coroutine that has not been resumed since the last one ended will want to
-- know how that did, which the lock forgets now.
local function keep_results(lock, ticket)
  if ticket.results or pending(lock.handle) then return end
  ticket.results = { lock.handle:result() }
  if lock.client.waiting[lock.id] == ticket then
    call(lock.client, lock.id, ticket)
  else
    ticket.ended = true
    lock.client.loop.signal(ticket.waiter)
  end
end

-- Returns true if the operation in flight must make way for the next one, because its coroutine is gone. A release ends
-- an extend, and whatever else the loop cannot say of that its coroutine lives.
local function makes_way(lock, ticket, operation)
  local loop = lock.client.loop
  local is_closed = loop.is_closed and loop.is_closed(ticket.waiter)
  if operation ~= "release" then return is_closed end
  return is_closed ~= false or lock.operation == "extend"
end

-- Before an operation is started on a lock whose last one a coroutine waits for.
local function make_way(lock, operation)
  local ticket, handle = lock.ticket, lock.handle
  if not ticket.waiting then return end
  if pending(handle) and makes_way(lock, ticket, operation) then
    if lock.operation == "release" then
      abandon(handle)
      ticket.results = { nil, shown(handle:resource()) .. ": another coroutine has begun to wait for the release",
        "cancelled" }
      call(lock.client, lock.id, ticket)
      return
    end
    handle:cancel()
  end
  keep_results(lock, ticket)
  lock.client.untaken[ticket] = nil -- The lock is in use.
end

-- Waits for what has been started, and returns what the blocking call would have returned.
local function finish(lock, operation, here)
  local client, handle, ticket = lock.client, lock.handle, lock.ticket
  if ticket.waiting then
    ticket = { waiter = client.loop.waiter() }
    lock.ticket = ticket
  end
  lock.operation, ticket.waiting, ticket.ended = operation, true, false
  if here then wait_in_loop(client, lock, ticket, here) else wait_by_itself(client, lock, ticket) end
  if late(handle) then serve_late(client, handle, ticket, here) end
  ticket.waiting, client.untaken[ticket] = false, nil
  local results = ticket.results
  ticket.results = nil
  if operation ~= "acquire" then
    if next(client.leases) ~= nil then look_again(client) end
  elseif here and watched(handle) then
    begin_to_look_after(client, lock, here)
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
      make_way(lock, name)
      local started, message, code = start(handle, number, argument)
      -- Where no loop runs, no coroutine goes on after the call: a thread does, as in a script.
      if started and not here then started, message, code = keep(handle) end
      if not started then return nil, message, code end
      return finish(lock, name, here)
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
  local here = not unheard and check_here(lock.client, "lock:release")
  if lock.client.closing then return closed(handle:resource()) end -- close() is releasing it
  make_way(lock, "release")
  if unheard then return send(lock, handle) end
  local started, message, code = start(handle, RELEASE)
  if not started then return nil, message, code end
  return finish(lock, "release", here)
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
  make_way(lock, "detach")
  local text, message, code = detach(handle)
  if text then return text end
  return nil, message, code
end

function lock_methods.cancel(lock)
  local handle = check_lock(lock, "cancel")
  handle:cancel() -- which makes the descriptor readable for whoever polls
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

-- Where nothing can be waited for, in coroutine.close() for one, the release is sent anyway.
function lock_class.__close(lock)
  if not pcall(give_back, lock) then pcall(lock_methods.release, lock, { wait = false }) end
end

local function wrap(self, handle)
  local lock = setmetatable({
    client = self,
    handle = handle,
    id = identify(handle),
    ticket = { waiter = self.loop.waiter() }, -- of the operation in flight, or of the next one
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

--- In Lua 5.1, the one that is not LuaJIT, the function must not yield: its pcall cannot.
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

function client_methods.inspect(self, resource)
  check_client(self, "inspect")
  check_resource(self, "table", resource, "inspect", 2)
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

function client_methods.nodes(self)
  local handle = check_client(self, "nodes")
  return handle:nodes()
end

-- Ends what other coroutines are waiting for, but for releases, which are heard of.
local function give_up(self)
  for id, handle in pairs(self.handles) do
    local lock = self.by_id[id]
    if lock and lock.operation ~= "release" then handle:cancel() end
  end
  collect(self)
end

-- Waits until all nodes have answered, but not for ever.
local function await_replies(self, here, deadline)
  collect(self)
  wait_for(self, here, deadline - now(), function() return core.outstanding(self.handle) == 0 end)
end

-- Returns what core.close() does. Outside of a loop this is the one call that blocks in every loop.
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

--- Releases what is held, ends what other coroutines are waiting for, waits for the replies, closes.
function client_methods.close(self)
  local handle, here = check_client(self, "close"), self.loop.here()
  local other = self.closing
  if other and not other.results and here then
    -- Another coroutine is at it, and will be told what this one is told.
    local _, budget = core.outstanding(handle)
    wait_for(self, here, 2 * budget, function() return other.results end)
    if other.results then return other.results[1], other.results[2], other.results[3] end
  end
  local closing = {}
  self.closing = closing
  local ok, message, code = close(self, here)
  if ok then message, code = nil, nil end
  closing.results, self.gone = { ok, message, code }, true
  for id, ticket in pairs(self.waiting) do call(self, id, ticket) end
  for ticket in pairs(self.lookers) do self.loop.signal(ticket.waiter) end
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

--- True if the coroutine is still where `wait` has let others go on. Where nothing tells beforehand that it cannot
--- (Lua 5.1 and 5.2, within pcall or a C function), yield raises an error, and the coroutine waits elsewhere soon.
function loops.waits_in(wait, thread)
  if coroutine.status(thread) ~= "suspended" then return false end
  local caller = getinfo and getinfo(thread, 1, "f") -- of yield
  return not getinfo or caller ~= nil and caller.func == wait
end

--- As redlock.new() for clients that wait in this loop. Mistakes are raised at `level`, seen from the caller.
function loops.new(loop, nodes, given, level)
  local handle = client_module.new(nodes, given, level + 1)
  core.driver_serves(handle)
  return setmetatable({
    loop = loop,
    handle = handle,
    waiting = loop.collects and setmetatable({}, weak_values) or {}, -- by number: who waits for the end of an operation
    lookers = loop.collects and setmetatable({}, weak_keys) or {}, -- who waits for something else
    seats = setmetatable({}, weak_keys), -- by loop: who waits there
    by_id = setmetatable({}, weak_values), -- locks
    handles = setmetatable({}, weak_values), -- by number, too; the collector takes them out before it ends them
    sweep_at = 0,
    untaken = {}, -- by ticket: a lease that was granted, whose coroutine has not gone on since
    leases = setmetatable({}, weak_keys), -- locks whose leases are looked after, and at which seat
  }, client_class)
end

return loops
