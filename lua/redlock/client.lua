--- The client's methods that are written in Lua. Those in C are added to the same table.

local core = require "redlock.core"
local options = require "redlock.options"
local section = require "redlock.section"

local lock_options, section_release = options.lock, options.section_release
local check_resource, check_resources = options.resource, options.resources
local attach, attach_options, check_handover = core.attach, options.attach, options.handover
local check_token, acquire_options, give_token = options.token, options.acquire, core.give_token
local new_lock, run, keys = core.lock, core.run, core.keys
local calls = core.calls
local ACQUIRE, INSPECT, FORCE_RELEASE = calls.acquire.code, calls.inspect.code, calls.force_release.code

local client = {}

--- Makes a client. Mistakes are raised at `level`, seen from the caller of this function. Inside nginx
--- such a client would stop the worker: it has to be asked for with `blocking`.
function client.new(nodes, given, level, blocking)
  if not blocking and options.inside_nginx() then
    error("redlock: this client would stop the nginx worker while it waits; use redlock.new()", level + 1)
  end
  local count = options.nodes(nodes, level + 1)
  local given_options = options.client(given, level + 1)
  -- A worker of nginx gets no thread.
  local made, message = core.client(given_options, options.inside_nginx())
  if not made then error("redlock: " .. message, level + 1) end
  for index = 1, count do
    local ok
    ok, message = core.add(made, options.node(nodes[index], index, level + 1))
    if not ok then error("redlock: node " .. index .. ": " .. message, level + 1) end
  end
  return made
end

local methods = core.client_methods

function methods.lock(self, resource, given)
  check_resources(self, "userdata", resource, "lock", 2)
  local lock, message, code = new_lock(self, resource, given ~= nil and lock_options(given, 2) or nil)
  if not lock then return nil, message, code end
  return lock
end

function methods.acquire(self, resource, given)
  check_resources(self, "userdata", resource, "acquire", 2)
  local lock, message, code = new_lock(self, resource, given ~= nil and acquire_options(given, 2) or nil)
  if not lock then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(lock, given.token) end
  local validity
  validity, message, code = run(lock, ACQUIRE)
  if not validity then return nil, message, code end
  return lock
end

function methods.attach(self, text, given)
  check_handover(self, "userdata", text, 2)
  local lock, message, code = attach(self, text, given ~= nil and attach_options(given, 2) or nil)
  if not lock then return nil, message, code end
  local validity
  validity, message, code = run(lock, ACQUIRE)
  if not validity then return nil, message, code end
  return lock
end

function methods.with(self, resource, ...)
  check_resources(self, "userdata", resource, "with", 2)
  local given, at = options.section(2, ...)
  local how = given ~= nil and section_release(given, 2) or nil
  local lock, message, code = new_lock(self, resource, given)
  if not lock then return nil, message, code end
  if given ~= nil and given.token ~= nil then give_token(lock, given.token) end
  return section.run(lock, how, select(at, ...))
end

-- A lock object is made for each question.

function methods.inspect(self, resource)
  check_resource(self, "userdata", resource, "inspect", 2)
  local lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  local ok
  ok, message, code = run(lock, INSPECT)
  if not ok and code ~= "unavailable" then return nil, message, code end
  return (keys(lock))
end

function methods.force_release(self, resource, token)
  check_resource(self, "userdata", resource, "force_release", 2)
  check_token(token, 2)
  local lock, message, code = new_lock(self, resource)
  if not lock then return nil, message, code end
  local count
  count, message, code = run(lock, FORCE_RELEASE, token)
  if count then return count end
  return nil, message, code
end

return client
