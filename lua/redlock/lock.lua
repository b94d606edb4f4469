--- The lock's methods that take options, and are therefore written in Lua. The others are in C.

local core = require "redlock.core"
local loss = require "redlock.loss"
local options = require "redlock.options"

local acquire, release, release_send, start = core.acquire, core.release, core.release_send, core.start
local acquire_options, release_options, give_token = options.acquire, options.release, core.give_token

local methods = core.lock_methods

-- No tail calls here: C counts two functions up to the line that an error is reported for.

function methods.acquire(self, given)
  local validity, message, code
  if given == nil then
    validity, message, code = acquire(self)
  else
    local options_of_acquire = acquire_options(given, 2)
    if given.token ~= nil then give_token(self, given.token) end
    validity, message, code = acquire(self, options_of_acquire)
  end
  if validity then return validity end
  return nil, message, code
end

function methods.release(self, given)
  local released, message, code
  if given ~= nil and release_options(given, 2) then
    released, message, code = release_send(self)
  else
    released, message, code = release(self)
  end
  if released then return true end
  return nil, message, code
end

function methods.start(self, operation, argument)
  local started, message, code
  if operation == "acquire" and argument ~= nil then
    local options_of_acquire = acquire_options(argument, 2)
    if argument.token ~= nil then give_token(self, argument.token) end
    started, message, code = start(self, operation, options_of_acquire)
  elseif operation == "acquire" or operation == "extend" or operation == "release" then
    started, message, code = start(self, operation, argument)
  else
    error("redlock: lock:start() takes \"acquire\", \"extend\" or \"release\"", 2)
  end
  if started then return true end
  return nil, message, code
end

--- Raises an error at the caller's line unless the lock is held. Returns the milliseconds that are left.
function methods.check(self)
  local left = loss.check(self, 2)
  return left
end

return methods
