--- on_lost: what is called when a lease is lost (csrc/binding/rl_lua_loss.c).
---
--- Nobody is there to catch what it raises: whoever runs it catches that, and writes it down, and neither the
--- client nor the call that was made meanwhile is disturbed.

local core = require "redlock.core"

local loss = {}

local traceback = type(debug) == "table" and debug.traceback or tostring
local pcall, tostring, xpcall = pcall, tostring, xpcall
local io = io

local function explain(err)
  local text = traceback("redlock: error in on_lost: " .. tostring(err), 2)
  return text
end

--- Calls on_lost(lock, reason). Returns nothing, or what it has raised, with its traceback.
function loss.call(on_lost, lock, reason)
  local ok, err = xpcall(function() on_lost(lock, reason) end, explain)
  if not ok then return err end
end

--- The same; an error goes where errors of scripts go that nobody catches.
function loss.tell(on_lost, lock, reason)
  local err = loss.call(on_lost, lock, reason)
  if err then pcall(function() io.stderr:write(err, "\n") end) end
end

--- lock:check(): for guards between steps. `lock` is the handle of C.
function loss.check(lock, level)
  local left, message = core.left(lock)
  if not left then error(message, level + 1) end
  return left
end

core.dispatch_by(loss.tell)

return loss
