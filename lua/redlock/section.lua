--- client:with(): runs a function while a lock is held.
---
--- 1. Acquire. Without the lock the function does not run.
--- 2. Run the function. The caller gets its error with the traceback after the release (5.).
--- 3. Check if the lease lasted that long, then release.
--- 4. Return true and the results of the function; or report that another client may have held the
--- lock meanwhile.
--- 5. On an error: release, ignore the result of the release, and raise the function's error.

local discard = require("redlock.core").discard

local section = {}

local pcall, select, xpcall = pcall, select, xpcall
local unpack = table.unpack or unpack -- luacheck: ignore
local traceback = type(debug) == "table" and debug.traceback

-- 5.
local function release_quietly(lock, how)
  pcall(lock.cancel, lock)
  pcall(lock.release, lock, how)
end

-- 3. and 4. Cancels an operation that the function has left in flight, which would prevent the
-- release.
local function finish(lock, how, ...)
  local outlived = lock:remaining() == 0
  lock:cancel()
  local released, message, code = lock:release(how)
  if code == "not_held" or code == "closed" then
    return true, ... -- The function has released the lock itself.
  elseif not released and code == "lost" then
    return nil, message, code, ... -- An extend in the function, or the release, noticed it.
  elseif outlived or code == "expired" then
    return nil, "the function ran for longer than the lease: another client may have held the lock meanwhile",
      "expired", ...
  end
  -- The lock was held until the release, even if that is not confirmed.
  return true, ...
end

-- ------------------------------------------------------------------------------- Lua 5.4 and newer
-- The end of a generic `for` closes the fourth value, also after an error, which passes uncaught
-- and so keeps its traceback. Older versions ignore the value.

local guard_class = {}

function guard_class.__close(guard)
  if guard.lock then release_quietly(guard.lock, guard.how) end
end

local function finish_closing(guard, ...)
  local lock = guard.lock
  guard.lock = nil
  return finish(lock, guard.how, ...)
end

local function once(_, done)
  return not done or nil
end

local function run_closing(lock, how, fn, ...)
  local guard = setmetatable({ lock = lock, how = how }, guard_class)
  for _ in once, nil, nil, guard do -- luacheck: ignore 512
    return finish_closing(guard, fn(lock, ...))
  end
end

-- ----------------------------------------------------------------------------------- older versions
-- The error is caught and raised again: with a traceback if it is a text with a position, otherwise
-- unchanged.

local function explain(err)
  if traceback and type(err) == "string" and err:find("^[^\n]*:%d+: ")
    and not err:find("\nstack traceback:", 1, true) then
    local text = traceback(err, 2) -- No tail call, which would remove the level of this function.
    return text
  end
  return err
end

local function finish_caught(lock, how, ok, ...)
  if ok then return finish(lock, how, ...) end
  release_quietly(lock, how)
  error((...), 0)
end

local function run_catching(lock, how, fn, ...)
  return finish_caught(lock, how, xpcall(fn, explain, lock, ...))
end

-- xpcall of Lua 5.1 passes no arguments.
local function run_without_arguments(lock, how, fn, ...)
  local count, arguments = select("#", ...), { ... }
  return finish_caught(lock, how, xpcall(function() return fn(lock, unpack(arguments, 1, count)) end, explain))
end

local run = run_catching
if not select(2, xpcall(function(argument) return argument end, explain, true)) then run = run_without_arguments end
do
  local probe = setmetatable({}, { __close = function() run = run_closing end })
  for _ in once, nil, nil, probe do break end -- luacheck: ignore 512
end

--- Acquires, runs fn(lock, ...), and releases. `how` is the argument of lock:release(). Frees a
--- lock that was refused, which no caller has seen.
function section.run(lock, how, fn, ...)
  local validity, message, code = lock:acquire()
  if validity then return run(lock, how, fn, ...) end
  if type(lock) == "userdata" then discard(lock) end -- The lock of a loop is a table.
  return nil, message, code
end

return section
