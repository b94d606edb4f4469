--- on_lost: what is called when a lease is lost (csrc/binding/rl_lua_loss.c).
---
--- Nobody is there to catch what it raises: whoever runs it catches that, and writes it down, and neither the
--- client nor the call that was made meanwhile is disturbed.

local core = require "redlock.core"

local loss = {}

local traceback = type(debug) == "table" and debug.traceback or tostring
local pcall, tostring, xpcall = pcall, tostring, xpcall
local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield
local io = io

local function sentence(err)
  return "redlock: error in on_lost: " .. tostring(err)
end

local function explain(err)
  local text = traceback(sentence(err), 2)
  return text
end

local function write(err)
  if err then pcall(function() io.stderr:write(err, "\n") end) end
end

--- Calls on_lost(lock, reason). Returns nothing, or what it has raised, with its traceback.
function loss.call(on_lost, lock, reason)
  local ok, err = xpcall(function() on_lost(lock, reason) end, explain)
  if not ok then return err end
end

--- The same; an error goes where errors of scripts go that nobody catches.
function loss.tell(on_lost, lock, reason)
  write(loss.call(on_lost, lock, reason))
end

-- What the thread yields is handed on to whoever resumes this coroutine. Returns what the thread has raised.
local function carry_on(thread, ok, ...)
  if not ok then
    local explained, text = pcall(sentence, (...))
    return explained and type(debug) == "table" and debug.traceback(thread, text) or text
  elseif status(thread) ~= "dead" then
    return carry_on(thread, resume(thread, yield(...)))
  end
end

--- The same for an on_lost that may yield. The xpcall of Lua 5.1 could not be yielded across; a coroutine can, and
--- catches errors as well.
function loss.tell_yielding(on_lost, lock, reason)
  local thread = create(function() on_lost(lock, reason) end)
  write(carry_on(thread, resume(thread)))
end

core.dispatch_by(loss.tell)

return loss
