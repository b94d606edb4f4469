--- Calls on_lost, which reports a lost lease (csrc/binding/rl_lua_loss.c), or on_event. The latter
--- has no reason: its only argument is the event.
---
--- No caller can catch its errors. So these functions catch them and write them to stderr, and
--- neither the client nor the current call is disturbed.

local core = require "redlock.core"

local loss = {}

local traceback = type(debug) == "table" and debug.traceback or tostring
local pcall, tostring, xpcall = pcall, tostring, xpcall
local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield
local io = io

local function sentence(reason, err)
  return (reason and "redlock: error in on_lost: " or "redlock: error in on_event: ") .. tostring(err)
end

-- Returns a function that adds the traceback of an error.
local function explainer(reason)
  return function(err)
    local text = traceback(sentence(reason, err), 2)
    return text
  end
end

local function write(err)
  if err then pcall(function() io.stderr:write(err, "\n") end) end
end

--- Calls on_lost(lock, reason). Returns nothing, or its error with a traceback.
function loss.call(on_lost, lock, reason)
  local ok, err = xpcall(function() on_lost(lock, reason) end, explainer(reason))
  if not ok then return err end
end

--- Calls on_lost(lock, reason). Writes its error to stderr.
function loss.tell(on_lost, lock, reason)
  write(loss.call(on_lost, lock, reason))
end

-- Passes the yields of a thread to the resumer of this coroutine. Returns the error of the thread.
local function carry_on(thread, reason, ok, ...)
  if not ok then
    local explained, text = pcall(sentence, reason, (...))
    return explained and type(debug) == "table" and debug.traceback(thread, text) or text
  elseif status(thread) ~= "dead" then
    return carry_on(thread, reason, resume(thread, yield(...)))
  end
end

--- Calls an on_lost that may yield, in a coroutine, because xpcall of Lua 5.1 cannot be yielded
--- across. Writes its error to stderr.
function loss.tell_yielding(on_lost, lock, reason)
  local thread = create(function() on_lost(lock, reason) end)
  write(carry_on(thread, reason, resume(thread)))
end

core.dispatch_by(loss.tell)

return loss
