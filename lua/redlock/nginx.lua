--- redlock inside nginx: waits yield to other requests and never block the worker.

local core = require "redlock.core"
local driver = require "redlock.nginx_driver"
local nginx_lead = require "redlock.nginx_lead"
local nginx_tls = require "redlock.nginx_tls"
local nginx_wait = require "redlock.nginx_wait"
local on_lost = require "redlock.nginx_on_lost"
local options = require "redlock.options"
local slots = require "redlock.slots"
require "redlock.client"
require "redlock.lock"

local ngx = ngx
local get_phase = ngx.get_phase
local native = core.nginx
local start, result, driver_of = native.start, native.result, native.driver
local new_lock, discard = core.lock, core.discard
local check_resource, check_resources = options.resource, options.resources
local acquire_options, give_token = options.acquire, core.give_token
local attach, attach_options, check_handover, detach = core.attach, options.attach, options.handover, core.detach
local owner_complaint, release_options, check_token = options.owner_complaint, options.release, options.token
local protect = on_lost.protect
local move, wait, free_sleeper, overtake = driver.move, driver.wait, nginx_wait.free_sleeper, nginx_wait.overtake

-- Returns the running request or timer, whose end nginx reports. Only the http subsystem has it.
local get_request = ngx.config.subsystem == "http" and require("resty.core.base").get_request or function() end

local operations = core.operations
local RELEASE, RELEASE_FORGET = operations.release.code, operations.release_forget.code
local RELEASE_SEND = operations.release_send.code
local INSPECT, FORCE_RELEASE = operations.inspect.code, operations.force_release.code
local DOCTOR, BOOTSTRAP = operations.doctor.code, operations.bootstrap.code

-- Phases in which a request can wait.
local may_wait = {
  rewrite = true,
  server_rewrite = true,
  access = true,
  content = true,
  timer = true,
  preread = true,
  ssl_cert = true,
  ssl_client_hello = true,
  ssl_session_fetch = true,
}

-- Phases after which nginx reports the end of the request. In the log phase it has reported it
-- already, although the request still exists.
local ends_later = setmetatable(
  { set = true, balancer = true, header_filter = true, body_filter = true }, { __index = may_wait }
)

local client_methods, lock_methods = core.client_methods, core.lock_methods

local function copy(methods)
  local made = {}
  for name, method in pairs(methods) do made[name] = method end
  return made
end

-- Methods of a client that blocks (redlock/nginx_blocking.lua).
local blocking_client, blocking_lock = copy(client_methods), copy(lock_methods)

local function cannot_wait(method, phase)
  return nil, method .. "() must wait, and nginx allows no wait in phase " .. phase
    .. "; call it in an earlier phase or a timer", "unavailable"
end

-- ------------------------------------------------------------------------------------- owners
-- nginx reuses coroutines of requests and their addresses. So where it does not report the end of
-- requests, and for a client that blocks, ngx.ctx has the number of the request that owns a
-- re-entrant lock.

local NUMBER, last_number = {}, 0

core.number_requests_by(function()
  local own = ngx.ctx
  local number = own[NUMBER]
  if not number then
    last_number = last_number + 1
    number = last_number
    rawset(own, NUMBER, number)
  end
  return number
end)

-- ------------------------------------------------------------------------------------- lasting
-- With lua_code_cache off each request has a Lua state of its own, which running timers would keep
-- for ever. A Lua state lasts if the master has made it, if it serves a second request, or if it
-- makes a client at the worker's start.

local made_by = ngx.worker.pid()
local first_request

local function request_name()
  return ngx.var.connection .. ":" .. ngx.var.connection_requests
end

local function check_lasting()
  if ngx.worker.pid() ~= made_by then
    driver.lasting = true
    return
  end
  local known, name = pcall(request_name)
  if not known then return end
  first_request = first_request or name
  driver.lasting = first_request ~= name
end

-- --------------------------------------------------------------------------------------- locks

local function await(self, lock, sleeper, pending, writers, clock)
  if not driver.lasting then check_lasting() end
  move(self, writers, clock)
  if pending then
    local results = wait(self, lock, sleeper)
    if results then return results[1], results[2], results[3] end
  end
  return result(lock)
end

for name, operation in pairs(operations) do
  if operation.of == "lock" then
    local number, check = operation.code, options.arguments[operation.argument]
    local of_blocking = blocking_lock[name]
    local method = "lock:" .. name
    lock_methods[name] = function(lock, argument)
      local phase = get_phase()
      if not may_wait[phase] and not (type(lock) == "userdata" and native.is_blocking(lock)) then
        return cannot_wait(method, phase)
      end
      local sleeper, checked, request = free_sleeper(), nil, get_request()
      if argument ~= nil then checked = check(argument, 2) end
      local self, pending, writers, clock = start(lock, number, checked, sleeper, request)
      if self and pending == nil then
        sleeper = overtake(self, lock, writers, number)
        self, pending, writers, clock = start(lock, number, checked, sleeper, request)
      end
      if self == false then return of_blocking(lock, argument) end
      if not self then return nil, pending, writers end
      local answer, message, code = await(self, lock, sleeper, pending, writers, clock)
      if not answer then return nil, message, code end
      if message then protect(lock, message, get_request()) end -- on_lost of a lock of the worker
      return answer
    end
  end
end

-- In phases without waits there may be no timer either: the worker is about to end, and its end
-- sends the release.
function lock_methods.release(lock, given)
  local how, sleeper = RELEASE, 0
  if given ~= nil and release_options(given, 2) then
    how = RELEASE_SEND
  elseif not may_wait[get_phase()] then
    how = RELEASE_FORGET
  else
    sleeper = free_sleeper()
  end
  local self, pending, writers, clock = start(lock, how, nil, sleeper)
  if self and pending == nil then
    local free = overtake(self, lock, writers, how)
    if how == RELEASE then sleeper = free end
    self, pending, writers, clock = start(lock, how, nil, sleeper)
  end
  if self == false then return blocking_lock.release(lock, given) end
  if not self then return nil, pending, writers end
  if how ~= RELEASE then
    move(self, writers, clock)
    return true
  end
  local ok, message, code = await(self, lock, sleeper, pending, writers, clock)
  if ok then return true end
  return nil, message, code
end

function lock_methods.cancel(lock)
  local self = native.cancel(lock)
  if self then driver.wake(self) end
end

function lock_methods.detach(lock)
  local self, sleeper = native.caller(lock)
  if sleeper then nginx_wait.free_if_dead(self, sleeper) end
  local text, message, code = detach(lock)
  if text then return text end
  return nil, message, code
end

--- Makes the worker, or the calling request, the owner of the lock.
function lock_methods.hand_over(lock, owner)
  if type(lock) ~= "userdata" then native.hand_over(lock) end -- raises that a lock is missing
  local wrong = owner_complaint(owner)
  if wrong then error("redlock: lock:hand_over(): owner " .. wrong, 2) end
  local phase = get_phase()
  if owner == "request" and not ends_later[phase] then
    return nil, 'lock:hand_over("request"): no request ends after phase ' .. phase .. '; use "worker"', "unavailable"
  end
  local ok, message, code = native.hand_over(lock, owner == "request" and get_request() or nil)
  if not ok then return nil, message, code end
  if message then protect(lock, message, get_request()) end
  return true
end

function lock_methods.start(lock, operation, argument)
  if native.is_blocking(lock) then return blocking_lock.start(lock, operation, argument) end
  error("redlock: lock:start() is not for nginx; use lock:acquire(), which lets other requests go on", 2)
end

-- ------------------------------------------------------------------------------------- clients

function client_methods.acquire(self, resource, given)
  check_resources(self, "userdata", resource, "acquire", 2)
  local lock, message, code = new_lock(self, resource, given ~= nil and acquire_options(given, 2) or nil)
  if not lock then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(lock, given.token) end
  local validity
  validity, message, code = lock_methods.acquire(lock)
  if validity then return lock end
  discard(lock)
  return nil, message, code
end

function client_methods.attach(self, text, given)
  check_handover(self, "userdata", text, 2)
  local phase = get_phase()
  if not may_wait[phase] and driver_of(self, "attach") then return cannot_wait("client:attach", phase) end
  local lock, message, code = attach(self, text, given ~= nil and attach_options(given, 2) or nil)
  if not lock then return nil, message, code end
  local validity
  validity, message, code = lock_methods.acquire(lock)
  if validity then return lock end
  discard(lock)
  return nil, message, code
end

-- Returns true, or nil, message and code in a phase without waits.
local function may_ask(method)
  local phase = get_phase()
  if may_wait[phase] then return true end
  local refused, message, code = cannot_wait("client:" .. method, phase)
  return refused, message, code
end

-- Runs an operation of a lock object that was made for it.
local function ask(lock, number, argument)
  local sleeper = free_sleeper()
  local own, pending, writers, clock = start(lock, number, argument, sleeper)
  if not own then return nil, pending, writers end
  return await(own, lock, sleeper, pending, writers, clock)
end

function client_methods.inspect(self, resource, given)
  if not driver_of(self, "inspect") then return blocking_client.inspect(self, resource, given) end
  check_resource(self, "userdata", resource, "inspect", 2)
  local permits = options.inspection(given, 2)
  if permits then
    local found, wrong, why = slots.inspect(client_methods.inspect, self, resource, permits)
    return found, wrong, why
  end
  local lock, ok, message, code
  ok, message, code = may_ask("inspect")
  if not ok then return nil, message, code end
  lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  ok, message, code = ask(lock, INSPECT)
  local seen = (ok or code == "unavailable") and core.keys(lock) or nil
  discard(lock)
  if seen then return seen end
  return nil, message, code
end

function client_methods.doctor(self, given)
  if not driver_of(self, "doctor") then return blocking_client.doctor(self, given) end
  local resource, keys_too = options.doctor(self, "userdata", given, 2)
  local lock, ok, message, code
  ok, message, code = may_ask("doctor")
  if not ok then return nil, message, code end
  lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  ok, message, code = ask(lock, DOCTOR, keys_too)
  local found = (ok or code == "unavailable") and core.findings(lock) or nil
  discard(lock)
  if found then return found end
  return nil, message, code
end

function client_methods.bootstrap(self)
  if not driver_of(self, "bootstrap") then return blocking_client.bootstrap(self) end
  check_resource(self, "userdata", "redlock-bootstrap", "bootstrap", 2)
  local lock, ok, message, code
  ok, message, code = may_ask("bootstrap")
  if not ok then return nil, message, code end
  lock, message, code = new_lock(self, "redlock-bootstrap")
  if not lock then return nil, message, code end
  local sleeper = free_sleeper()
  -- Not by ask(), because errors are raised at the line of its caller.
  local own, pending, writers, clock = start(lock, BOOTSTRAP, nil, sleeper)
  if own then
    ok, message, code = await(own, lock, sleeper, pending, writers, clock)
  else
    ok, message, code = nil, pending, writers
  end
  discard(lock)
  if ok then return true end
  return nil, message, code
end

function client_methods.force_release(self, resource, token)
  if not driver_of(self, "force_release") then return blocking_client.force_release(self, resource, token) end
  check_resource(self, "userdata", resource, "force_release", 2)
  check_token(token, 2)
  local lock, count, message, code
  count, message, code = may_ask("force_release")
  if not count then return nil, message, code end
  lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  count, message, code = ask(lock, FORCE_RELEASE, token)
  discard(lock)
  if count then return count end
  return nil, message, code
end

function client_methods.close(self)
  local own = driver_of(self, "close")
  if not own then return blocking_client.close(self) end
  if native.close_one(self) then
    driver.wake(own)
    return true
  end
  if driver.close(own, may_wait[get_phase()]) then return true end
  return nil, "not all nodes confirmed the releases in time", "unavailable"
end

nginx_lead.install(client_methods, blocking_client,
  function(self, name) return type(self) == "userdata" and not driver_of(self, name) end, may_ask)

-- These methods are for loops that drive a client with sockets of its own.
for _, name in ipairs { "pollfd", "events", "timeout", "process", "next_ended" } do
  local of_blocking = client_methods[name]
  client_methods[name] = function(self)
    if driver_of(self, name) then
      error("redlock: client:" .. name .. "() is not for nginx, which drives the client itself", 2)
    end
    return of_blocking(self)
  end
end

local nginx = {}

-- Adds a node, and its TLS parameters to `routes`. Returns nothing, or a message.
local function add(made, handle, node, given, routes, index)
  if type(node) == "string" and node:find("^sentinel://") then
    return "Sentinels cannot be asked inside nginx: name the master by a DNS name that follows it"
  end
  local ok, message = core.add(made, node)
  if not ok then return message end
  local host, _, tls, name = native.address(handle, index)
  if not tls then return end
  routes[index], message = nginx_tls.route(node, given, host)
  if message then return name .. ": " .. message end
end

-- Clients of one worker with the same nodes and options share their connections, because programs
-- make a client for each request.
local drivers = setmetatable({}, { __mode = "v" }) -- by a text of nodes and options

-- Returns a text that is equal for equal values. If a value, for example a function, cannot be
-- compared, its type stands in the text, and seen.unique becomes true.
local function describe(value, depth, seen)
  local kind = type(value)
  if kind == "string" then return "s" .. #value .. ":" .. value end
  if kind == "number" then return ("n%.17g;"):format(value) end
  if kind == "boolean" then return tostring(value) .. ";" end
  if kind ~= "table" or depth == 0 or getmetatable(value) then
    seen.unique = true
    return kind
  end
  local parts = {}
  for name, part in pairs(value) do
    parts[#parts + 1] = describe(name, 1, seen) .. describe(part, depth - 1, seen)
  end
  table.sort(parts)
  return "{" .. table.concat(parts) .. "}"
end

-- Returns the text, true if it is unique, and a client that shares the connections of an equal
-- client, if there is one.
local function find_shared(nodes, given)
  local seen = { unique = false }
  local text = describe({ nodes, given or {} }, 4, seen)
  local own = not seen.unique and drivers[text]
  return text, seen.unique, own and driver.another(own)
end

--- Like redlock.new(). Raises misuse at `level`, as seen from the caller of this function (default:
--- its line).
function nginx.new(nodes, given, level)
  level = level or 1
  local text, unique, another = find_shared(nodes, given)
  if another then return another end
  local count = options.nodes(nodes, level + 1)
  local given_options = options.client(given, level + 1)
  options.quorum(given_options, count, level + 1)
  local made, message = core.client(given_options)
  if not made then error("redlock: " .. message, level + 1) end
  local handle = native.new(made) -- From now on the client has nginx's connections, which may speak TLS.
  local routes = {}
  for index = 1, count do
    local wrong = add(made, handle, options.node(nodes[index], index, level + 1), given, routes, index)
    if wrong then error("redlock: node " .. index .. ": " .. wrong, level + 1) end
  end
  local own = driver.new(handle, count, routes, made, text)
  native.attach(made, own)
  if not unique then drivers[text] = own end
  if get_phase() == "init_worker" then driver.lasting = true end
  return made
end

return nginx
