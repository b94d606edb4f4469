--- Methods of the client that are written in Lua; core.client_methods also has those in C.

local core = require "redlock.core"
local lead = require "redlock.lead"
local options = require "redlock.options"
local section = require "redlock.section"
local slots = require "redlock.slots"

-- Type of clients and locks.
local KIND = core.KIND or "userdata"

local lock_options, section_release = options.lock, options.section_release
local check_resource, check_resources = options.resource, options.resources
local attach, attach_options, check_handover = core.attach, options.attach, options.handover
local check_token, acquire_options, give_token = options.token, options.acquire, core.give_token
local new_lock, run, keys, findings = core.lock, core.run, core.keys, core.findings
local operations = core.operations
local ACQUIRE, INSPECT, FORCE_RELEASE = operations.acquire.code, operations.inspect.code, operations.force_release.code
local DOCTOR, check_doctor = operations.doctor.code, options.doctor
local BOOTSTRAP, BOOTSTRAP_NAME = operations.bootstrap.code, "redlock-bootstrap" -- a name that is sent to no node

local client = {}

-- Loads OpenSSL for the first node that speaks TLS. Returns nothing, or a message.
local function load_tls(made)
  if options.inside_nginx() then
    return "TLS would load a second OpenSSL beside nginx's own; use redlock.new() there, whose clients speak TLS"
  end
  local loaded, transport = pcall(require, "redlock.tls")
  if loaded then return core.set_transport(made, transport) end
  local why = tostring(transport)
  if why:find("module 'redlock.tls' not found", 1, true) then why = "which is not installed" end
  return "TLS needs the module redlock.tls, " .. why .. "; it is built with redlock where OpenSSL's headers are"
    .. " (libssl-dev), unless TLS=0"
end

-- Adds a node. Returns nothing, or a message.
local function add(made, node)
  local ok, message, wants_tls = core.add(made, node)
  if not ok and wants_tls then
    message = load_tls(made)
    if message then return message end
    ok, message = core.add(made, node)
  end
  return not ok and message or nil
end

--- Makes a client that blocks. Raises misuse at `level`, as seen from the caller of this function
--- (default: its line). Such a client would stop a worker of nginx, so `blocking` must be true
--- there.
function client.new(nodes, given, level, blocking)
  level = level or 1
  if not blocking and options.must_yield() then
    error("redlock: this client would stop the nginx worker while it waits; use redlock.new()", level + 1)
  end
  local count = options.nodes(nodes, level + 1)
  local given_options = options.client(given, level + 1)
  options.quorum(given_options, count, level + 1)
  -- A worker of nginx has no watchdog thread.
  local made, message = core.client(given_options, options.inside_nginx())
  if not made then error("redlock: " .. message, level + 1) end
  for index = 1, count do
    local wrong = add(made, options.node(nodes[index], index, level + 1))
    if wrong then error("redlock: node " .. index .. ": " .. wrong, level + 1) end
  end
  return made
end

local methods = core.client_methods

-- The short name would suggest that it locks, but a new lock object holds nothing.
function methods.lock()
  error("client:lock() is no function: client:acquire(name) locks, client:new_lock(name) makes a lock object", 2)
end

function methods.new_lock(self, resource, given)
  check_resources(self, KIND, resource, "new_lock", 2)
  local lock, message, code = new_lock(self, resource, given ~= nil and lock_options(given, 2) or nil)
  if not lock then return nil, message, code end
  return lock
end

function methods.acquire(self, resource, given)
  check_resources(self, KIND, resource, "acquire", 2)
  local lock, message, code = new_lock(self, resource, given ~= nil and acquire_options(given, 2) or nil)
  if not lock then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(lock, given.token) end
  local validity
  validity, message, code = run(lock, ACQUIRE)
  if not validity then return nil, message, code end
  return lock
end

function methods.attach(self, text, given)
  check_handover(self, KIND, text, 2)
  local lock, message, code = attach(self, text, given ~= nil and attach_options(given, 2) or nil)
  if not lock then return nil, message, code end
  local validity
  validity, message, code = run(lock, ACQUIRE)
  if not validity then return nil, message, code end
  return lock
end

function methods.with(self, resource, ...)
  check_resources(self, KIND, resource, "with", 2)
  local given, at = options.section(2, ...)
  local how = given ~= nil and section_release(given, 2) or nil
  local lock, message, code = new_lock(self, resource, given)
  if not lock then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(lock, given.token) end
  return section.run(lock, how, select(at, ...))
end

-- inspect, bootstrap, doctor and force_release make a lock object for each call.

function methods.inspect(self, resource, given)
  check_resource(self, KIND, resource, "inspect", 2)
  local permits = options.inspection(given, 2)
  if permits then
    local found, wrong, why = slots.inspect(methods.inspect, self, resource, permits)
    return found, wrong, why
  end
  local lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  local ok
  ok, message, code = run(lock, INSPECT)
  if not ok and code ~= "unavailable" then return nil, message, code end
  return (keys(lock))
end

function methods.bootstrap(self)
  check_resource(self, KIND, BOOTSTRAP_NAME, "bootstrap", 2)
  local lock, message, code = new_lock(self, BOOTSTRAP_NAME)
  if not lock then return nil, message, code end
  local ok
  ok, message, code = run(lock, BOOTSTRAP)
  if ok then return true end
  return nil, message, code
end

function methods.doctor(self, given)
  local resource, keys_too = check_doctor(self, KIND, given, 2)
  local lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  local ok
  ok, message, code = run(lock, DOCTOR, keys_too)
  if not ok and code ~= "unavailable" then return nil, message, code end
  return (findings(lock))
end

function methods.force_release(self, resource, token)
  check_resource(self, KIND, resource, "force_release", 2)
  check_token(token, 2)
  local lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  local count
  count, message, code = run(lock, FORCE_RELEASE, token)
  if count then return count end
  return nil, message, code
end

lead.install(methods, { kind = KIND })

return client
