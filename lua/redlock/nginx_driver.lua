--- Drives a client inside nginx: its connections and its clock.
---
--- For each client a worker has one timer for the clock, and one timer for each connection, with a
--- reader and a writer. They run as long as the client is used. A node has one connection, and
--- after the first wait a second one for notifications, whose number follows those of all nodes.
--- The core decides (csrc/binding/rl_lua_nginx.c).
---
--- Requests end at any time, and nginx reuses their coroutines. So no function here refers to a
--- function or a variable of a request; a number, the sleeper, stands for a request that waits
--- (nginx_wait.lua).

local core = require "redlock.core"
local loss = require "redlock.loss"
local waits = require "redlock.nginx_wait"
local semaphore = require "ngx.semaphore"
local bit = require "bit"

local ngx = ngx
local native = core.nginx
local advance, wakes, input, output = native.advance, native.wakes, native.input, native.output
local address, connecting, connected = native.address, native.connecting, native.connected
local disconnected, closed, state = native.disconnected, native.closed, native.state
local awaits, unanswered, release_leases = native.awaits, native.unanswered, native.release_leases
local due, now, lost, warn_holders = native.due, native.now, native.lost, native.warn_holders
local asks, answer, why = native.asks, native.answer, native.why
local pending, credentials_of = core.pending, core.credentials_of
local deliver, wake_clock, wake_writers = waits.deliver, waits.wake_clock, waits.wake_writers
local band, bxor, lshift, rshift = bit.band, bit.bxor, bit.lshift, bit.rshift
local tcp, timer_at = ngx.socket.tcp, ngx.timer.at
local spawn, kill = ngx.thread.spawn, ngx.thread.kill
local exiting, sleep = ngx.worker.exiting, ngx.sleep
local cached_now, update_time = ngx.now, ngx.update_time
local error, ceil, max, min, next, pairs, pcall = error, math.ceil, math.max, math.min, next, pairs, pcall
local select, tostring = select, tostring
local collectgarbage, os_clock = collectgarbage, os.clock

-- Milliseconds. The core, and no timeout here, closes an unused connection.
local CONNECT_TIMEOUT = 3000
local SEND_TIMEOUT = 3000
local READ_TIMEOUT = 86400000
local READ_SIZE = 65536
local WRITER_WAIT = 1000 -- interval at which an idle writer checks if it is still wanted

local LATE = 40 -- delay after which a timer, or the end of a wait, is late
local LISTEN = 5 -- extension of a late wait, so that replies that came while the worker stood still are read
local EARLY = 10 -- time after which a waiting request checks first if nginx has run the clock
local RETRY_TIMER = 250 -- time between two tries to get a timer for the clock, or for on_lost
local LOSSES_PER_TIMER = 250 -- losses that one timer reports, each in a light thread
local LINGER = 500 -- time that such a timer waits for more losses
local PATIENCE = 1000 -- time that a waiting request relies on the clock
local TICK = 50 -- interval of the clock while requests or the worker hold locks
local CLOSE_TICK = 5 -- interval while a caller waits for the end of a client
local LONG_TICK = 250 -- interval otherwise, because the worker may have to exit
local SWEEP = 1000 -- interval of the search for dead waiting requests
local IDLE_END = 250 -- idle time after which a client of a single request is ended
local IDLE_END_MAX = 60000 -- limit of its growth, when the client is used again
local PUBLISH = 1000 -- interval at which a client's figures are published
local LOG_PAUSE = 10000 -- time between two log lines about the same node
local IDLE_COLLECT = 200 -- idle time after which the garbage collector looks for dropped locks
local COLLECT_SECONDS = 0.001 -- of each tick
local CLOSE_TIMEOUT = 1000 -- for the releases of a closed client
local EXIT_TIMEOUT = 1000 -- for the worker's own locks, which a request of the exiting worker may still need
local EXIT_RELEASE = 500 -- for the release of those locks
local EXIT_QUIET = 30

local MANY = 32 -- clients of a worker before the search for collected ones

local driver = {}
local clients = setmetatable({}, { __mode = "kv" }) -- by driver

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
      deliver(self, wakes(handle, ended))
      self.writers[index]:post(1)
      return
    end
  end
end

local clock -- below

-- The connection may have ended, and the next one begun, before the writer runs. If nginx had no
-- timer for the clock, and no request waits, an auto-extended lease would expire: then the timer of
-- the connection runs the clock.
local function write(self, index, sock, number)
  local handle, sema = self.handle, self.writers[index]
  while true do
    if self.timer_numbers[index] ~= number then return "the connection was dropped" end
    local bytes = output(handle, index)
    if bytes then
      local sent, err = sock:send(bytes)
      if not sent then return explain(err) end
    elseif bytes == nil then
      if not self.ticking then spawn(clock, false, self) end
      sema:wait(WRITER_WAIT / 1000)
    else
      return "the connection was dropped"
    end
  end
end

-- nginx's Lua (0.10.23) reports success for a handshake that fails without a wait. Only the closed
-- socket shows it.
local function shake_hands(sock, route)
  if route.cert then
    if not sock.setclientcert then
      return nil, "tls.cert: this nginx is too old to send a client certificate; upgrade it"
    end
    local ok, err = sock:setclientcert(route.cert, route.key)
    if not ok then return nil, err end
  end
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, CONNECT_TIMEOUT)
  local ok, err = sock:sslhandshake(false, route.server_name, not route.unverified)
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT)
  if ok and not sock:getreusedtimes() then
    return nil, "the certificate was refused: not for this host, expired, or not signed by a CA that nginx trusts"
  end
  return ok, err
end

-- Calls the credentials function in a light thread of its own, so that it can be killed.
local function ask(asking, fn, name, node)
  asking.ok, asking.username, asking.password = pcall(fn, name, node)
  asking.answered = true
  asking.ended:post(1)
end

-- Returns false if the worker exits or the client has ended: they do not wait for a hanging
-- function.
local function may_still_answer(self)
  local used, is_closed = select(5, state(self.handle))
  return self.ticking or used and not is_closed and not exiting()
end

-- Calls the credentials function, which may wait. The client object refers to the function, so that
-- it keeps nothing alive. Until it returns, the core waits as for a connection, and so does each
-- attempt that begins meanwhile. Returns true if the driver must connect.
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

-- Returns true if the function runs. A function that calls ngx.exit() ends its timer, and with it
-- the wait for it.
local function is_asking(self, index)
  local asking = self.asking[index]
  return asking and (asking.answered or asking.ended:count() < 0)
end

local function open(self, index, sock, number)
  local host, port = address(self.handle, index)
  local route = self.routes[(index - 1) % self.nodes + 1]
  local ok, err
  sock:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT)
  if port then ok, err = sock:connect(host, port) else ok, err = sock:connect(host) end
  if ok and route then ok, err = shake_hands(sock, route) end
  if not ok then return explain(err) end
  if not connected(self.handle, index) then return "the connection came too late" end
  local reader = spawn(read, self, index, sock)
  local reason = write(self, index, sock, number)
  kill(reader)
  return reason
end

-- Runs one connection in a timer of its own, whose end frees nginx's memory for it, unless the
-- timer became the clock.
local function connection(_, self, index, number)
  if self.timer_numbers[index] ~= number then return end -- It was dropped before nginx ran it.
  self.late[index] = nil
  local goes_on = log_in(self, index)
  number = self.timer_numbers[index]
  if not goes_on then
    closed(self.handle, index, "the credentials came too late")
    deliver(self, wakes(self.handle, self.ended))
    wake_clock(self)
    return
  end
  local sock = tcp()
  local ok, reason = pcall(open, self, index, sock, number)
  if not ok then ngx.log(ngx.ERR, "redlock: ", reason) end
  sock:close()
  if self.timer_numbers[index] == number then closed(self.handle, index, tostring(reason)) end
  deliver(self, wakes(self.handle, self.ended))
  wake_clock(self)
end

local function connect(self, index)
  if not self.writers[index] then self.writers[index] = assert(semaphore.new(0)) end
  local number = (self.timer_numbers[index] or 0) + 1
  self.timer_numbers[index] = number
  connecting(self.handle, index)
  if is_asking(self, index) then
    asks(self.handle, index)
    return
  end
  self.late[index] = self.now
  local ok, err = timer_at(0, connection, self, index, number)
  if not ok then
    self.late[index] = nil
    closed(self.handle, index, "nginx gives no timer: " .. tostring(err))
    deliver(self, wakes(self.handle, self.ended))
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

-- Returns true if nginx has dropped a timer because too many run: it runs before a later wait times
-- out.
local function is_lost(self, made, began)
  return made <= began and self.now - made >= LATE
end

-- Returns true if a wait timed out late. After a stall nginx runs timers before it reads, so such a
-- wait goes on a little, and replies are read before silence counts.
local function is_late(began, wait)
  return now() - began - wait >= LATE
end

-- Returns true if nginx has read nothing for a while: its cached time is old.
local function is_behind()
  local looked_at = cached_now()
  update_time()
  return cached_now() - looked_at >= LATE / 1000
end

local function look_for_lost_timers(self, began)
  for index, made in pairs(self.late) do
    if is_lost(self, made, began) then
      self.late[index] = nil
      self.timer_numbers[index] = self.timer_numbers[index] + 1
      closed(self.handle, index, "nginx has not run the timer: raise lua_max_running_timers or worker_connections")
      deliver(self, wakes(self.handle, self.ended))
    end
  end
end

-- Calls on_lost in a light thread of its own, because it may wait. For a lock of the worker its
-- request may have ended.
local function report(on_lost, lock, reason)
  local err = loss.call(on_lost, lock, reason)
  if err then ngx.log(ngx.ERR, err) end
end

-- Reports many losses, and those that follow shortly, in one timer: thousands of leases may be lost
-- at once, and nginx has few timers. The rest stays in the core's queue.
local function reporter(_, self)
  local count = 0
  self.report_at = 0
  repeat
    local on_lost, lock, reason = lost(self.handle)
    while on_lost and count < LOSSES_PER_TIMER do
      spawn(report, on_lost, lock, reason)
      count = count + 1
      if count < LOSSES_PER_TIMER then on_lost, lock, reason = lost(self.handle) end
    end
  until count == LOSSES_PER_TIMER or exiting() or not self.losses:wait(LINGER / 1000)
  wake_clock(self)
end

-- Starts a reporter, again if nginx has not run the last one soon. A late one finds no losses.
local function start_reporter(self)
  if self.losses:count() < 0 then return self.losses:post(1) end
  if self.now < self.report_at then return end
  self.report_at = self.now + RETRY_TIMER
  local ok, err = timer_at(0, reporter, self)
  if not ok then
    ngx.log(ngx.WARN, "redlock: nginx gives no timer for on_lost, which runs later; raise lua_max_running_timers: ",
      err)
  end
end

-- Logs a change of a node, at most once in LOG_PAUSE for all clients with the same nodes and
-- options.
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

-- Passes the client to the publisher of its figures (nginx_metrics.lua). `ended` is true if the
-- client's threads end.
local function publish(self, ended)
  local client = clients[self]
  self.publish_at = self.now + PUBLISH
  if not client then return end
  local ok, err = pcall(self.publish, client, ended)
  if not ok then ngx.log(ngx.ERR, "redlock: ", err) end
end

--- Calls publish(client, ended) at most once in PUBLISH while the client is used. Returns false if
--- the client has a publisher.
function driver.set_publisher(self, publisher)
  if self.publish then return false end
  self.publish, self.publish_at = publisher, 0
  return true
end

-- Advances the core's time and does what it wants. `began` is the start of a wait that has timed
-- out, if any. Returns the milliseconds until the next deadline, at most `longest`.
local function step(self, longest, began)
  local count, writers, _, wait, wanted, unwanted, at, losses, changed =
    advance(self.handle, self.ended, longest, self.down)
  self.now = at
  deliver(self, count, writers)
  if losses then start_reporter(self) end
  if self.publish and at >= self.publish_at then publish(self, false) end
  if changed ~= 0 then each(self, changed, log_change) end
  if began and next(self.late) then look_for_lost_timers(self, began) end
  if wanted ~= 0 then each(self, wanted, connect) end
  if unwanted ~= 0 then
    each(self, unwanted, wake_writer)
    return min(wait, 20)
  end
  return wait
end

-- Runs the garbage collector of an idle worker, which finds dropped locks that no request owns. Two
-- rounds find all that were dropped before the first.
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

-- Returns true if the client of an exiting worker can end. The requests end first, and their locks
-- with them. The end of the worker releases its own locks over connections without TLS and
-- credentials function. So locks on other nodes are released here, after a time for the requests
-- that may need them.
local function is_over_at_exit(self, idle, held, owned)
  self.exit_at = self.exit_at or self.now
  if owned > 0 or idle < EXIT_QUIET then return false end
  local over = self.now - self.exit_at
  if over >= EXIT_TIMEOUT and held > 0 and self.unreachable_at_exit then
    if self.warned_at_exit then
      release_leases(self.handle)
      self.released_at = self.now
    else -- The holders must learn of it before the release.
      self.warned_at_exit = true
      if warn_holders(self.handle) then start_reporter(self) end
    end
    return false
  end
  if held == 0 and not awaits(self.handle) then return true end
  if self.unreachable_at_exit then
    return self.now - (self.released_at or self.exit_at + EXIT_TIMEOUT) >= EXIT_RELEASE
  end
  return over >= EXIT_TIMEOUT
end

-- Returns true if the client's threads must end. `idle` is the time since the last operation began.
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
  if self.publish then publish(self, true) end
  if exiting() and (warn_holders(self.handle) or self.losses:count() < 0) then start_reporter(self) end
  if is_closed and self.confirmed == nil then self.confirmed = not unanswered(self.handle) end
  if is_closed or not used then native.forget(self.handle) end
  for index, writer in pairs(self.writers) do
    disconnected(self.handle, index, "the connection was closed")
    writer:post(1)
  end
  self.running, self.ticking = false, false
  deliver(self, wakes(self.handle, self.ended))
  local closers = -self.done:count()
  if closers > 0 then self.done:post(closers) end
end

-- Returns the longest sleep of the clock.
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
      waits.sweep(self)
    end
    wait = max(wait, 1)
    began = not self.clock:wait(wait / 1000) and self.now or nil
    if is_behind() or began and is_late(began, wait) then sleep(LISTEN / 1000) end
  until false
end

function clock(_, self)
  if self.ticking then return end
  self.ticking, self.running, self.clock_requested = true, true, nil
  local ok, err = pcall(turn, self)
  if not ok then ngx.log(ngx.ERR, "redlock: ", err) end
  stop(self)
end

-- ------------------------------------------------------------------------------ for the methods

local drivers = setmetatable({}, { __mode = "k" })
local driver_limit = MANY

-- Logged states of nodes, shared by clients with the same nodes and options: the nodes that are
-- down, and the times of their log lines. By a text of nodes and options.
local logs = setmetatable({}, { __mode = "v" })

local function log_of(text)
  local log = logs[text] or { down = 0, at = {} }
  logs[text] = log
  return log
end

-- Collects garbage when there are many clients: a client for each request is small for the
-- collector, which runs too late.
local function limit_clients()
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
    ngx.log(ngx.WARN, "redlock: ", alive - used, " clients were dropped; make one client for each worker,",
      " not for each request")
  end
end

--- Makes the table that stands for a client in its threads, and must not refer to the client
--- itself. `routes` has the TLS parameters of nodes (nginx_tls.lua). `text` is equal for clients
--- with the same nodes and options.
function driver.new(handle, count, routes, client, text)
  limit_clients()
  local log = log_of(text)
  local self = {
    handle = handle,
    nodes = count,
    routes = routes,
    unreachable_at_exit = next(routes) ~= nil or credentials_of(client) ~= nil,
    running = false,
    ended = {}, -- sleepers of ended operations, written by the core
    now = 0, -- at the last step
    late = {}, -- connection -> time at which its timer was requested
    asking = {}, -- connection -> results of the running credentials function
    timer_numbers = {}, -- connection -> number of its last timer
    start_at = 0, -- earliest time of the next request for a clock timer
    report_at = 0, -- likewise for an on_lost timer
    log = log,
    down = log.down, -- nodes that this client found down, or has not reached since they were logged as down
    idle_end = IDLE_END,
    suspects = {}, -- sleepers that were woken, and whose request has not run since
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

-- Makes the semaphores in the worker, because a semaphore of the master refers to the log of a
-- configuration that a reload removes.
local function prepare(self)
  self.writers = {} -- by connection, from its first use
  self.clock, self.done = assert(semaphore.new(0)), assert(semaphore.new(0))
  self.losses = assert(semaphore.new(0)) -- where a reporter waits for more
end

-- Requests a timer for the clock. There are phases without timers: init, and the exit of a worker.
local function start_clock(self)
  if not self.writers then prepare(self) end
  local at = now()
  if at < self.start_at then return end
  self.start_at = at + RETRY_TIMER
  local called, ok = pcall(timer_at, 0, clock, self)
  self.running = called and ok and true or false
  self.clock_requested = self.running and at or nil
end

--- Sends the commands of an operation that has begun.
local function move(self, writers, clock_sleeps)
  self.begun = true
  if not self.running then start_clock(self) end
  if writers ~= 0 then wake_writers(self, writers) end
  if clock_sleeps then wake_clock(self) end
end
driver.move = move

-- Runs a step of the clock for a request, because nginx may not have run its timer. `began` is the
-- start of the wait.
local function drive(self, began)
  step(self, LONG_TICK, began)
  local requested = self.clock_requested
  if requested and is_lost(self, requested, began) then self.running, self.clock_requested = false, nil end
  if not self.running then start_clock(self) end
end

--- Wakes the requests, writers and clock after a call on a lock.
function driver.wake(self)
  deliver(self, wakes(self.handle, self.ended))
end

-- Returns the time that a request waits before it runs a step itself: with a running clock until
-- that has surely stopped; otherwise until the next deadline, or until dropped timers are known.
local function patience(self, lock)
  if self.ticking then return PATIENCE end
  if self.clock_requested or next(self.late) then return min(due(lock), EARLY) end
  return min(due(lock), PATIENCE) -- A queued waiter is due at the end of its budget.
end

--- Waits at the free sleeper that start() got until the operation has ended. Returns the results of
--- the caller if another operation of the lock has begun since.
function driver.wait(self, lock, sleeper)
  local sema, began = waits.enter(self, sleeper), now()
  while true do
    local wait = patience(self, lock)
    local woken, err = sema:wait(wait / 1000)
    if not woken and is_late(began, wait) then woken, err = sema:wait(LISTEN / 1000) end
    if woken then break end
    if err ~= "timeout" then error("redlock: " .. err, 0) end
    waits.pause(sleeper)
    drive(self, began)
    if waits.is_overtaken(sleeper) or not pending(lock) then break end
    waits.resume(self, sleeper)
    began = self.now
  end
  return waits.leave(sleeper)
end

--- Ends all operations, releases all leases, and waits for the replies if `may_wait`. Returns true
--- if all nodes have confirmed the releases; a later call returns the same.
function driver.close(self, may_wait)
  if not select(6, state(self.handle)) then
    native.close(self.handle)
    deliver(self, wakes(self.handle, self.ended))
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
