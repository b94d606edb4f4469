--- redlock for programs that run in cqueues: the same clients and locks, but what has to wait lets
--- the other coroutines go on. Coroutines share one client, and so one connection to each node.

local condition = require "cqueues.condition"
local cqueues = require "cqueues"

local core = require "redlock.core"
local client_module = require "redlock.client"
local options = require "redlock.options"
local section = require "redlock.section"
require "redlock.lock"

local lock_options, check_resource = options.lock, options.resource
local new_lock, start, pending, identify, next_ended =
  core.lock, core.start, core.pending, core.id, core.next_ended

local weak_values = { __mode = "v" }
local weak_keys = { __mode = "k" }

local lock_methods, client_methods = {}, {}
local lock_class = { __name = "redlock.lock", __index = lock_methods, __metatable = "redlock.lock" }
local client_class = { __name = "redlock.client", __index = client_methods, __metatable = "redlock.client" }

-- Processes what there is to process, and wakes those whose operation has ended by it.
local function collect(self)
  local handle = self.handle
  handle:process()
  local id = next_ended(handle)
  while id do
    local waiter = self.waiting[id]
    if waiter then waiter:signal() end
    id = next_ended(handle)
  end
end

-- A controller keeps a descriptor until it is told otherwise, and fails when it has been closed. So
-- none has ours unless somebody waits, and then the client can neither be closed nor collected.
local function leave(self)
  local descriptor = self.handle:pollfd()
  if descriptor then cqueues.cancel(descriptor) end
end

-- Who waits in the controller that is running, by number, and as `driver` who polls for them.
local function seat_of(self)
  local controller = cqueues.running() or self
  local seat = self.seats[controller]
  if not seat then
    seat = setmetatable({}, weak_values)
    self.seats[controller] = seat
  end
  return seat
end

-- One of the coroutines that wait in a controller polls the client for all of them, so that a reply
-- does not wake everyone. The others wait to be told. Another controller, whose driver may not get
-- its turn before this one has come to an end, has a driver of its own.
local function wait(self, lock)
  local handle, waiter, id, seat = lock.handle, lock.waiter, lock.id, seat_of(self)
  self.waiting[id], seat[id] = waiter, waiter
  collect(self)
  while pending(handle) do
    if seat.driver == nil then seat.driver = waiter end
    if seat.driver == waiter then
      cqueues.poll(self.handle, waiter)
    else
      cqueues.poll(waiter, self.handle:timeout())
      if pending(handle) then seat.driver = waiter end
    end
    collect(self)
  end
  self.waiting[id], seat[id] = nil, nil
  if seat.driver == waiter then
    seat.driver = nil
    local _, successor = next(seat)
    if successor then successor:signal() else leave(self) end
  end
end

local function check_lock(lock, method)
  if type(lock) ~= "table" or not lock.handle then
    error("redlock: lock:" .. method .. "() needs a lock before the colon, got a " .. type(lock), 3)
  end
  return lock.handle
end

local function closed()
  return nil, "the client is closed", "closed"
end

-- Waits for what has been started, and returns what the blocking call would have returned.
local function finish(lock, operation)
  lock.operation = operation
  wait(lock.client, lock)
  if lock.client.closing and operation ~= "release" then return closed() end
  return lock.handle:result()
end

function lock_methods.acquire(lock, given)
  local handle = check_lock(lock, "acquire")
  local started, message, code
  if lock.client.closing then
    return closed()
  elseif given == nil then
    started, message, code = start(handle, "acquire")
  else
    started, message, code = start(handle, "acquire", lock_options(given, 2))
  end
  if not started then return nil, message, code end
  return finish(lock, "acquire")
end

function lock_methods.extend(lock, ttl)
  local started, message, code = start(check_lock(lock, "extend"), "extend", ttl)
  if not started then return nil, message, code end
  return finish(lock, "extend")
end

function lock_methods.release(lock)
  local started, message, code = start(check_lock(lock, "release"), "release")
  if not started then return nil, message, code end
  return finish(lock, "release")
end

function lock_methods.cancel(lock)
  check_lock(lock, "cancel"):cancel()
  collect(lock.client)
end

for _, name in ipairs { "remaining", "is_held", "resource", "token", "ttl", "votes" } do
  local method = core.lock_methods[name]
  lock_methods[name] = function(lock)
    return method(check_lock(lock, name))
  end
end

function lock_class.__tostring(lock)
  return tostring(lock.handle)
end

local function give_back(lock)
  lock.handle:cancel()
  if start(lock.handle, "release") then wait(lock.client, lock) end
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
    waiter = condition.new(),
  }, lock_class)
  self.locks[lock] = true
  return lock
end

function client_methods.lock(self, resource, given)
  check_resource(self, "table", resource, "lock", 2)
  local handle, message, code
  if given == nil then
    handle, message, code = new_lock(self.handle, resource)
  else
    handle, message, code = new_lock(self.handle, resource, lock_options(given, 2))
  end
  if not handle then return nil, message, code end
  return wrap(self, handle)
end

function client_methods.acquire(self, resource, given)
  check_resource(self, "table", resource, "acquire", 2)
  local handle, message, code
  if given == nil then
    handle, message, code = new_lock(self.handle, resource)
  else
    handle, message, code = new_lock(self.handle, resource, lock_options(given, 2))
  end
  if not handle then return nil, message, code end
  local lock = wrap(self, handle)
  local validity
  validity, message, code = lock:acquire()
  if not validity then return nil, message, code end
  return lock
end

--- In Lua 5.1, the one that is not LuaJIT, the function must not yield: its pcall cannot.
function client_methods.with(self, resource, ...)
  check_resource(self, "table", resource, "with", 2)
  local given = options.section(2, ...)
  local handle, message, code
  if given == nil then
    handle, message, code = new_lock(self.handle, resource)
  else
    handle, message, code = new_lock(self.handle, resource, lock_options(given, 2))
  end
  if not handle then return nil, message, code end
  local lock = wrap(self, handle)
  if type((...)) == "function" then return section.run(lock, ...) end
  return section.run(lock, select(2, ...))
end

function client_methods.nodes(self)
  return self.handle:nodes()
end

--- Releases what is held, ends what other coroutines are waiting for, waits for the replies, closes.
function client_methods.close(self)
  local handle = self.handle
  self.closing = true
  for lock in pairs(self.locks) do
    local busy = pending(lock.handle)
    if busy and lock.operation ~= "release" then lock.handle:cancel() end
    -- A cancelled acquire releases by itself.
    if not pending(lock.handle) and (not busy or lock.handle:is_held()) then start(lock.handle, "release") end
  end
  collect(self)
  local owed, budget = core.owed(handle)
  local deadline = cqueues.monotime() + budget
  while owed > 0 and cqueues.monotime() < deadline do
    cqueues.poll(handle, deadline - cqueues.monotime())
    collect(self)
    owed = core.owed(handle)
  end
  leave(self)
  local ok, message, code = core.close(handle)
  for _, waiter in pairs(self.waiting) do
    waiter:signal()
  end
  if ok then return true end
  return nil, message, code
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
  return setmetatable({
    handle = handle,
    waiting = setmetatable({}, weak_values), -- by number: who waits for the end of an operation
    seats = setmetatable({}, weak_keys), -- by controller: who waits there
    locks = setmetatable({}, weak_keys),
  }, client_class)
end

return module
