--- What moves a client inside nginx: its connections, its clock, and the requests that wait.
---
--- Every worker has, for each client, one timer that is the client's clock, and one timer for each
--- connection, in which a reader and a writer take turns. They run as long as the client is used. A node has one
--- connection, and when somebody has had to wait a second one, for calls, which is numbered behind all nodes.
--- The decisions are the core's (csrc/binding/rl_lua_nginx.c).
---
--- Requests die at any time, and nginx uses their coroutines again. So nothing here holds a function
--- of a request, or one that has a variable of a request; what waits is known by a number.

local core = require "redlock.core"
local loss = require "redlock.loss"
local semaphore = require "ngx.semaphore"
local bit = require "bit"

local ngx = ngx
local native = core.nginx
local advance, settle, input, output = native.advance, native.settle, native.input, native.output
local address, connecting, connected = native.address, native.connecting, native.connected
local disconnected, closed, disown, state = native.disconnected, native.closed, native.disown, native.state
local awaits, unanswered, release_leases = native.awaits, native.unanswered, native.release_leases
local due, now, lost, abandon = native.due, native.now, native.lost, native.abandon
local asks, answer, why = native.asks, native.answer, native.why
local pending, credentials_of = core.pending, core.credentials_of
local overtake = native.overtake
local band, bxor, lshift, rshift = bit.band, bit.bxor, bit.lshift, bit.rshift
local tcp, timer_at = ngx.socket.tcp, ngx.timer.at
local spawn, kill = ngx.thread.spawn, ngx.thread.kill
local exiting, sleep = ngx.worker.exiting, ngx.sleep
local cached_now, update_time = ngx.now, ngx.update_time
local error, ceil, max, min, next, pairs, pcall = error, math.ceil, math.max, math.min, next, pairs, pcall
local select, tostring = select, tostring
local collectgarbage, os_clock = collectgarbage, os.clock

-- Milliseconds. A connection that is never used is given up by the core, not by a timeout here.
local CONNECT_TIMEOUT = 3000
local SEND_TIMEOUT = 3000
local READ_TIMEOUT = 86400000
local READ_SIZE = 65536
local WRITER_WAIT = 1000 -- how often one that has nothing to send looks whether it is still wanted

local LATE = 40 -- for a timer that was to be run at once, or a wait that has timed out
local LISTEN = 5 -- what a wait that is late adds: a node answers what was only sent after the worker stood still
local EARLY = 10 -- when a request that waits looks first whether nginx has run the clock
local RELAUNCH = 250 -- between two tries to get a timer for the clock, or for on_lost
local TOLD_AT_ONCE = 250 -- losses that one timer tells, each in a light thread
local LINGER = 500 -- for how long such a timer waits for more
local PATIENCE = 1000 -- of a request that waits, with the clock
local TICK = 50 -- how often the clock looks while requests may end that hold locks, or locks be dropped
local CLOSE_TICK = 5 -- while somebody waits for the end of a client
local LONG_TICK = 250 -- and otherwise, because the worker may be told to end
local SWEEP = 1000 -- how often it looks for waiting requests that have died
local IDLE_END = 250 -- when a client is ended that only one request has used
local IDLE_END_MAX = 60000 -- what that grows to when the client is used again all the same
local LOG_PAUSE = 10000 -- between two lines that say that the same node is down
local IDLE_COLLECT = 200 -- when the garbage collector is made to look for locks that were dropped
local COLLECT_SECONDS = 0.001 -- of each tick
local CLOSE_TIMEOUT = 1000 -- for the releases of a client that was closed
local EXIT_TIMEOUT = 1000 -- for the worker's own locks, which a request of the ending worker may still need
local EXIT_RELEASE = 500 -- and for their release, from when it was begun
local EXIT_QUIET = 30

local MANY = 32 -- clients of a worker, before those that are garbage are looked for

local driver = {}
local clients = setmetatable({}, { __mode = "kv" }) -- by driver

-- ------------------------------------------------------------------------------------- waiting
-- A slot is a semaphore that one request at a time waits for. Taking one costs nothing but a look.

local semaphores = {} -- by slot
local waiting = {} -- by slot: the driver whose operation is waited for, or false
local taken = {} -- by slot: the driver for which it was taken, or false
local overtaken = {} -- by slot: the results of a caller whose lock has begun another operation
local free, free_count = {}, 0

local function free_slot()
  if free_count > 0 then return free[free_count] end
  local slot = #semaphores + 1
  semaphores[slot] = assert(semaphore.new(0))
  waiting[slot], taken[slot] = false, false
  free_count = 1
  free[1] = slot
  return slot
end
driver.free_slot = free_slot

local function give_slot_back(slot)
  waiting[slot], taken[slot] = false, false
  free_count = free_count + 1
  free[free_count] = slot
end

-- The request that had the slot is dead. Whatever it was to acquire is released.
local function bury(self, slot)
  if semaphores[slot]:count() ~= 0 then semaphores[slot] = assert(semaphore.new(0)) end
  disown(self.handle, slot)
  overtaken[slot] = nil
  give_slot_back(slot)
end

-- Returns true if the caller that has the slot will go on: it waits, or was woken.
local function is_alive(self, slot)
  local count = semaphores[slot]:count()
  if taken[slot] ~= self then return false end
  if waiting[slot] == self then return count < 0 end
  return count <= 0
end

--- An operation whose caller in the slot is dead gives way.
function driver.bury_if_dead(self, slot)
  if is_alive(self, slot) then return end
  if taken[slot] == self then bury(self, slot) else disown(self.handle, slot) end
end

--- Another caller has not taken the result of the lock's last operation: makes way for the next one, and returns a free
--- slot. A dead caller is buried. Of one that lives a release ends an extend; anything else in flight is a mistake of
--- the caller's, and raises an error.
function driver.overtake(self, lock, slot, number)
  if is_alive(self, slot) then
    overtaken[slot] = { overtake(lock, number) }
    if waiting[slot] then
      waiting[slot] = false
      semaphores[slot]:post(1)
    end
  else
    driver.bury_if_dead(self, slot)
  end
  return free_slot()
end

local function wake_writers(self, writers)
  local semas, index = self.writers, 1
  while writers ~= 0 do
    if band(writers, 1) ~= 0 then semas[index]:post(1) end
    writers, index = rshift(writers, 1), index + 1
  end
end

local function wake_clock(self)
  if self.ticking then self.clock:post(1) end
end

-- Hands out what a step of the core has led to.
local function deliver(self, count, writers, clock)
  local ended, dead = self.ended, false
  for index = 1, count do
    local slot = ended[index]
    if waiting[slot] == self then
      local sema = semaphores[slot]
      waiting[slot] = false
      if sema:count() < 0 then
        sema:post(1)
      else
        bury(self, slot)
        dead = true
      end
    end
  end
  if writers ~= 0 then wake_writers(self, writers) end
  if clock or dead then wake_clock(self) end
end

-- Dead requests whose operations have not ended, or who died when they had just been woken.
local function sweep(self)
  for slot = 1, #semaphores do
    if taken[slot] == self then
      local count = semaphores[slot]:count()
      if waiting[slot] then
        if count >= 0 then bury(self, slot) end
      elseif count > 0 then
        if self.suspects[slot] then bury(self, slot) end
        self.suspects[slot] = not self.suspects[slot] or nil
      end
    end
  end
end

-- --------------------------------------------------------------------------------- connections

local function explain(err)
  if err == "closed" then return "the node closed the connection" end
  return tostring(err)
end

local function read(self, index, sock)
  local handle, ended = self.handle, self.ended
  while true do
    local bytes, err = sock:receiveany(READ_SIZE)
    if bytes then
      deliver(self, input(handle, index, bytes, ended))
    elseif err ~= "timeout" then
      disconnected(handle, index, explain(err))
      deliver(self, settle(handle, ended))
      self.writers[index]:post(1)
      return
    end
  end
end

local clock -- below

-- Its connection may have ended, and the next one have been begun, before the writer has its turn. And nginx may have
-- had no timer for the clock, and nobody have waited since then: a lease that keeps itself would run out, and the
-- connection outlive its worker. So the clock is run in the connection's timer then, which lasts until that ends.
local function write(self, index, sock, ticket)
  local handle, sema = self.handle, self.writers[index]
  while true do
    if self.tickets[index] ~= ticket then return "the connection was given up" end
    local bytes = output(handle, index)
    if bytes then
      local sent, err = sock:send(bytes)
      if not sent then return explain(err) end
    elseif bytes == nil then
      if not self.ticking then spawn(clock, false, self) end
      sema:wait(WRITER_WAIT / 1000)
    else
      return "the connection was given up"
    end
  end
end

-- A handshake that fails without having had to wait is said to be well by nginx's Lua (0.10.23); only the
-- socket, which it has closed, tells.
local function shake_hands(sock, route)
  if route.cert then
    if not sock.setclientcert then return nil, "this nginx is too old to show a certificate of its own: tls.cert" end
    local ok, err = sock:setclientcert(route.cert, route.key)
    if not ok then return nil, err end
  end
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, CONNECT_TIMEOUT)
  local ok, err = sock:sslhandshake(false, route.server_name, not route.unverified)
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT)
  if ok and not sock:getreusedtimes() then
    return nil, "the certificate was refused: not for this host, expired, or not signed by whom nginx trusts"
  end
  return ok, err
end

-- It has a light thread of its own, so that it can be ended.
local function ask(asking, asked, name, node)
  asking.ok, asking.username, asking.password = pcall(asked, name, node)
  asking.answered = true
  asking.ended:post(1)
end

-- A worker that ends, or a client that has ended, does not wait for a function that hangs.
local function may_still_answer(self)
  local used, is_closed = select(5, state(self.handle))
  return self.ticking or used and not is_closed and not exiting()
end

-- A function of the client's may say as whom to log in. It may wait here, and is found by the client, so that it
-- keeps nothing alive. Until it answers, the core waits for it as for a connection; each attempt that begins
-- meanwhile waits for the same answer. Returns whether to go on.
local function log_in(self, index)
  local name, node = asks(self.handle, index)
  if not name then return true end
  local asking = { ended = assert(semaphore.new(0)) }
  self.asking[index] = asking
  local client = clients[self]
  local thread = spawn(ask, asking, client and credentials_of(client), name, node)
  client = nil -- luacheck: ignore
  while not asking.answered and may_still_answer(self) do
    asking.ended:wait(WRITER_WAIT / 1000)
  end
  if not asking.answered then kill(thread) end
  self.asking[index] = nil
  return answer(self.handle, index, asking.ok, asking.username, asking.password)
end

-- Returns true if a function is still to answer. One that calls ngx.exit() ends its timer, and with it whoever waits.
local function is_asking(self, index)
  local asking = self.asking[index]
  return asking and (asking.answered or asking.ended:count() < 0)
end

local function open(self, index, sock, ticket)
  local host, port = address(self.handle, index)
  local route = self.routes[(index - 1) % self.nodes + 1]
  local ok, err
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT)
  if port then ok, err = sock:connect(host, port) else ok, err = sock:connect(host) end
  if ok and route then ok, err = shake_hands(sock, route) end
  if not ok then return explain(err) end
  if not connected(self.handle, index) then return "the connection came too late" end
  local reader = spawn(read, self, index, sock)
  local reason = write(self, index, sock, ticket)
  kill(reader)
  return reason
end

-- One connection, from its making to its end, in a timer of its own: what nginx allocates for it is
-- given back with the timer, unless that has become the clock's.
local function connection(_, self, index, ticket)
  if self.tickets[index] ~= ticket then return end -- It was given up before nginx ran it.
  self.late[index] = nil
  local goes_on = log_in(self, index)
  ticket = self.tickets[index]
  if not goes_on then
    closed(self.handle, index, "the credentials came too late")
    deliver(self, settle(self.handle, self.ended))
    wake_clock(self)
    return
  end
  local sock = tcp()
  local ok, reason = pcall(open, self, index, sock, ticket)
  if not ok then ngx.log(ngx.ERR, "redlock: ", reason) end
  sock:close()
  if self.tickets[index] == ticket then closed(self.handle, index, tostring(reason)) end
  deliver(self, settle(self.handle, self.ended))
  wake_clock(self)
end

local function connect(self, index)
  if not self.writers[index] then self.writers[index] = assert(semaphore.new(0)) end
  local ticket = (self.tickets[index] or 0) + 1
  self.tickets[index] = ticket
  connecting(self.handle, index)
  if is_asking(self, index) then
    asks(self.handle, index)
    return
  end
  self.late[index] = self.now
  local ok, err = timer_at(0, connection, self, index, ticket)
  if not ok then
    self.late[index] = nil
    closed(self.handle, index, "nginx gives no timer: " .. tostring(err))
    deliver(self, settle(self.handle, self.ended))
  end
end

local function each(self, connections, act)
  local index = 1
  while connections ~= 0 do
    if band(connections, 1) ~= 0 then act(self, index) end
    connections, index = rshift(connections, 1), index + 1
  end
end

local function wake_writer(self, index)
  self.writers[index]:post(1)
end

-- ----------------------------------------------------------------------------------- the clock

-- nginx drops a timer when too many run already. One that was to be run at once would have had its turn before
-- a wait that began after it has timed out.
local function is_lost(self, made, began)
  return made <= began and self.now - made >= LATE
end

-- When a worker was stopped, nginx runs timers before it reads. So a wait that timed out late is a little longer: what
-- the nodes have said is heard before their silence counts.
local function is_late(began, wait)
  return now() - began - wait >= LATE
end

-- Returns true if nginx has read nothing for a while: it reads once for all that it runs between two looks at the time.
local function is_behind()
  local looked_at = cached_now()
  update_time()
  return cached_now() - looked_at >= LATE / 1000
end

local function look_for_lost_timers(self, began)
  for index, made in pairs(self.late) do
    if is_lost(self, made, began) then
      self.late[index] = nil
      self.tickets[index] = self.tickets[index] + 1
      closed(self.handle, index, "nginx has not run the timer: see lua_max_running_timers and worker_connections")
      deliver(self, settle(self.handle, self.ended))
    end
  end
end

-- on_lost may wait, so it has a light thread of its own. It may be called when the request that gave it has ended, if
-- the lock was the worker's.
local function tell(on_lost, lock, reason)
  local err = loss.call(on_lost, lock, reason)
  if err then ngx.log(ngx.ERR, err) end
end

-- Thousands of leases may be lost at once, and nginx has few timers. So one timer tells many losses, and those that
-- come shortly after. What it does not tell stays in the core's queue.
local function teller(_, self)
  local count = 0
  self.tell_at = 0
  repeat
    local on_lost, lock, reason = lost(self.handle)
    while on_lost and count < TOLD_AT_ONCE do
      spawn(tell, on_lost, lock, reason)
      count = count + 1
      if count < TOLD_AT_ONCE then on_lost, lock, reason = lost(self.handle) end
    end
  until count == TOLD_AT_ONCE or exiting() or not self.losses:wait(LINGER / 1000)
  wake_clock(self)
end

-- One that has been asked for, and has not run soon, nginx has dropped. If it runs all the same, it finds nothing.
local function launch_teller(self)
  if self.losses:count() < 0 then return self.losses:post(1) end
  if self.now < self.tell_at then return end
  self.tell_at = self.now + RELAUNCH
  local ok, err = timer_at(0, teller, self)
  if not ok then ngx.log(ngx.WARN, "redlock: nginx gives no timer for on_lost, which comes later: ", err) end
end

-- A node that comes and goes is logged once for each LOG_PAUSE, whichever of the clients that are alike notices it.
local function log_change(self, index)
  local log, mask = self.log, lshift(1, index - 1)
  local is_down = band(self.down, mask) == 0
  if is_down ~= (band(log.down, mask) ~= 0) then
    local logged_at, name, reason = log.at[index], why(self.handle, index)
    if not is_down then
      ngx.log(ngx.ERR, "redlock: node ", name, " is up again, after ", ceil((self.now - logged_at) / 1000), " s")
    elseif logged_at and self.now - logged_at < LOG_PAUSE then
      return
    else
      log.at[index] = self.now
      ngx.log(ngx.ERR, "redlock: node ", name, " is down: ", reason)
    end
    log.down = bxor(log.down, mask)
  end
  self.down = bxor(self.down, mask)
end

-- Lets the core look at the time, and does what it then wants. `began` is when the wait began that has timed out, if
-- one has. Returns for how many milliseconds nothing is due, at most `longest`.
local function step(self, longest, began)
  local count, writers, _, wait, wanted, unwanted, at, losses, changed =
    advance(self.handle, self.ended, longest, self.down)
  self.now = at
  deliver(self, count, writers)
  if losses then launch_teller(self) end
  if changed ~= 0 then each(self, changed, log_change) end
  if began and next(self.late) then look_for_lost_timers(self, began) end
  if wanted ~= 0 then each(self, wanted, connect) end
  if unwanted ~= 0 then
    each(self, unwanted, wake_writer)
    return min(wait, 20)
  end
  return wait
end

-- A lock that belongs to no request and is dropped is left to the garbage collector, which rests when the worker
-- does. Two rounds of it are certain to find what was dropped before the first.
local function hurry_collector(self, held, idle)
  if held <= 0 or idle < IDLE_COLLECT then
    self.collections = 0
    return
  end
  local limit = os_clock() + COLLECT_SECONDS
  while self.collections < 2 and os_clock() < limit do
    if collectgarbage("step", 0) then self.collections = self.collections + 1 end
  end
end

-- A worker that was told to end serves its requests first; what they hold ends with them. Its own locks are
-- released when it ends, over connections that speak no TLS and ask no function as whom to log in. So what is held on
-- other nodes is released here, when there was time enough for the requests that may need it.
local function is_over_at_exit(self, idle, held, owned)
  self.exit_at = self.exit_at or self.now
  if owned > 0 or idle < EXIT_QUIET then return false end
  local over = self.now - self.exit_at
  if over >= EXIT_TIMEOUT and held > 0 and self.unreachable_at_exit then
    if self.abandoned then
      release_leases(self.handle)
      self.released_at = self.now
    else -- Who has them is told first.
      self.abandoned = true
      if abandon(self.handle) then launch_teller(self) end
    end
    return false
  end
  if held == 0 and not awaits(self.handle) then return true end
  if self.unreachable_at_exit then
    return self.now - (self.released_at or self.exit_at + EXIT_TIMEOUT) >= EXIT_RELEASE
  end
  return over >= EXIT_TIMEOUT
end

-- Returns true if the client's threads are to end. `idle` is for how long nothing was begun.
local function is_over(self, idle)
  local _, held, owned, running, used, is_closed = state(self.handle)
  hurry_collector(self, held - owned, idle)
  if is_closed or not used then
    self.closed_at = self.closed_at or self.now
    return not running and not awaits(self.handle) or self.now - self.closed_at > CLOSE_TIMEOUT
  elseif running then
    return false
  elseif exiting() then
    return is_over_at_exit(self, idle, held, owned)
  elseif driver.lasting or held > 0 or idle < self.idle_end or idle < CLOSE_TIMEOUT and awaits(self.handle) then
    return false
  end
  self.idle_end = min(2 * self.idle_end, IDLE_END_MAX)
  return true
end

local function stop(self)
  local used, is_closed = select(5, state(self.handle))
  if exiting() and (abandon(self.handle) or self.losses:count() < 0) then launch_teller(self) end
  if is_closed and self.confirmed == nil then self.confirmed = not unanswered(self.handle) end
  if is_closed or not used then native.forget(self.handle) end
  for index, writer in pairs(self.writers) do
    disconnected(self.handle, index, "the connection was closed")
    writer:post(1)
  end
  self.running, self.ticking = false, false
  deliver(self, settle(self.handle, self.ended))
  local closers = -self.done:count()
  if closers > 0 then self.done:post(closers) end
end

-- For how long the clock may sleep at most.
local function longest(self)
  local _, held, owned, running, _, is_closed = state(self.handle)
  if is_closed then return CLOSE_TICK end
  return (running or held > 0 or owned > 0 or exiting()) and TICK or LONG_TICK
end

local function turn(self)
  local began
  self.now = now()
  local used_at, swept_at = self.now, self.now
  repeat
    local wait = step(self, longest(self), began)
    if self.begun then used_at, self.begun = self.now, false end
    if is_over(self, self.now - used_at) then return end
    if self.now - swept_at >= SWEEP then
      swept_at = self.now
      sweep(self)
    end
    wait = max(wait, 1)
    began = not self.clock:wait(wait / 1000) and self.now or nil
    if is_behind() or began and is_late(began, wait) then sleep(LISTEN / 1000) end
  until false
end

function clock(_, self)
  if self.ticking then return end
  self.ticking, self.running, self.launched = true, true, nil
  local ok, err = pcall(turn, self)
  if not ok then ngx.log(ngx.ERR, "redlock: ", err) end
  stop(self)
end

-- ------------------------------------------------------------------------------ for the methods

local drivers = setmetatable({}, { __mode = "k" })
local driver_limit = MANY

-- What was logged about the nodes of clients that are alike: which are down, and when that was logged. By nodes and
-- options, as a text.
local logs = setmetatable({}, { __mode = "v" })

local function log_of(text)
  local log = logs[text] or { down = 0, at = {} }
  logs[text] = log
  return log
end

-- Clients that are made for each request become garbage faster than the collector thinks, because
-- each is a small thing to it.
local function look_after_clients()
  local alive = 0
  for _ in pairs(drivers) do alive = alive + 1 end
  if alive < driver_limit then return end
  collectgarbage()
  local used = 0
  for self in pairs(drivers) do
    if select(5, state(self.handle)) then used = used + 1 elseif self.running then self.clock:post(1) end
  end
  driver_limit = used + MANY
  if used < alive and not driver.warned then
    driver.warned = true
    ngx.log(ngx.WARN, "redlock: ", alive - used, " clients have become garbage; make one client for each worker,",
      " not one for each request")
  end
end

--- The table that stands for a client in its threads. It must not hold the client itself. `routes` has for each node
--- that speaks TLS how (nginx_tls.lua).
--- `text` is the same for clients that are alike.
function driver.new(handle, count, routes, client, text)
  look_after_clients()
  local log = log_of(text)
  local self = {
    handle = handle,
    nodes = count,
    routes = routes,
    unreachable_at_exit = next(routes) ~= nil or credentials_of(client) ~= nil,
    running = false,
    ended = {}, -- slots, for the core to write into
    now = 0, -- at the last step
    late = {}, -- by connection: since when its timer has not been run
    asking = {}, -- by connection: what the function, which has not answered yet, does so in
    tickets = {}, -- by connection: which of those made under its number is the last one
    launch_at = 0, -- when a timer for the clock may be asked for again
    tell_at = 0, -- and one for on_lost
    log = log,
    down = log.down, -- nodes that this client has found down, or has not reached since they were logged as down
    idle_end = IDLE_END,
    suspects = {}, -- slots that were woken, and whose request has not been seen since
    collections = 0,
  }
  drivers[self] = true
  clients[self] = client
  return self
end

--- Returns another client with the same connections, or nil if they are closed.
function driver.another(self)
  self.begun, self.closed_at = true, nil
  return native.another(self.handle, self)
end

-- A semaphore that the master makes, for init_by_lua, is of no use in a worker after a reload: it
-- remembers the log of a configuration that is gone.
local function prepare(self)
  self.writers = {} -- by connection, from when it is made for the first time
  self.clock, self.done = assert(semaphore.new(0)), assert(semaphore.new(0))
  self.losses = assert(semaphore.new(0)) -- one that tells them waits for more
end

-- There are phases without timers: init, and the end of a worker.
local function launch(self)
  if not self.writers then prepare(self) end
  local at = now()
  if at < self.launch_at then return end
  self.launch_at = at + RELAUNCH
  local called, ok = pcall(timer_at, 0, clock, self)
  self.running = called and ok and true or false
  self.launched = self.running and at or nil
end

--- An operation was begun: gets its commands on their way.
local function move(self, writers, clock_sleeps)
  self.begun = true
  if not self.running then launch(self) end
  if writers ~= 0 then wake_writers(self, writers) end
  if clock_sleeps then wake_clock(self) end
end
driver.move = move

-- What the clock would do, had nginx run its timer. A wait that began at `began` has timed out.
local function drive(self, began)
  step(self, LONG_TICK, began)
  if self.launched and is_lost(self, self.launched, began) then self.running, self.launched = false, nil end
  if not self.running then launch(self) end
end

--- Hands out what a call on a lock has led to.
function driver.settle(self)
  deliver(self, settle(self.handle, self.ended))
end

-- For how long to wait before looking oneself: with the clock, until it has surely stopped; without, until the core
-- wants to be asked, or it can be told whether nginx runs the timers.
local function patience(self, lock)
  if self.ticking then return PATIENCE end
  if self.launched or next(self.late) then return min(due(lock), EARLY) end
  return min(due(lock), PATIENCE) -- Who stands behind another is due when its budget ends.
end

--- Lets the request wait, in the free slot that was given to start(), until its operation has ended. Returns what the
--- caller is to return, if another operation of the lock has begun since.
function driver.wait(self, lock, slot)
  local sema, began = semaphores[slot], now()
  free_count = free_count - 1
  waiting[slot], taken[slot] = self, self
  while true do
    local wait = patience(self, lock)
    local woken, err = sema:wait(wait / 1000)
    if not woken and is_late(began, wait) then woken, err = sema:wait(LISTEN / 1000) end
    if woken then break end
    if err ~= "timeout" then error("redlock: " .. err, 0) end
    waiting[slot] = false
    if sema:count() > 0 then sema:wait(0) end -- Woken in the step in which the time was up.
    drive(self, began)
    if overtaken[slot] or not pending(lock) then break end
    waiting[slot] = self
    began = self.now
  end
  local results = overtaken[slot]
  overtaken[slot] = nil
  give_slot_back(slot)
  return results
end

--- Ends all operations, releases all leases, and waits, if that is possible here, until it is done. Returns whether
--- all nodes have confirmed it, which it remembers.
function driver.close(self, may_wait)
  if not select(6, state(self.handle)) then
    native.close(self.handle)
    deliver(self, settle(self.handle, self.ended))
    wake_clock(self)
  end
  if not may_wait then return true end
  local began = now()
  local deadline = began + CLOSE_TIMEOUT + TICK
  while self.confirmed == nil and began < deadline do
    if not self.ticking then
      drive(self, began)
      if not awaits(self.handle) then stop(self) end
    end
    if self.confirmed == nil then self.done:wait((self.ticking and deadline - began or EARLY) / 1000) end
    began = now()
  end
  return self.confirmed == true
end

return driver
