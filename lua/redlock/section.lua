--- What with() does: a function runs while a lock is held.
---
--- 1. Acquire; without the lock the function does not run.
--- 2. Run the function. An error goes on to the caller after the release (5.), with its traceback.
--- 3. Look whether the lease lasted that long, then release.
--- 4. Return true and what the function returned; or that another may have held the lock meanwhile.
--- 5. On an error: release, and keep to the function's error whatever becomes of the release.

local discard = require("redlock.core").discard

local section = {}

local pcall, select, xpcall = pcall, select, xpcall
local unpack = table.unpack or unpack -- luacheck: ignore
local traceback = type(debug) == "table" and debug.traceback

-- 5.
local function give_back(lock, how)
  pcall(lock.cancel, lock)
  pcall(lock.release, lock, how)
end

-- 3. and 4. An operation that the function has left in flight must not keep the lock from its release.
local function finish(lock, how, ...)
  local outlived = lock:remaining() == 0
  lock:cancel()
  local released, message, code = lock:release(how)
  if code == "not_held" or code == "closed" then
    return true, ... -- The function gave the lock back itself.
  elseif not released and code == "lost" then
    return nil, message, code, ... -- Said by an extend within the function, or by the release.
  elseif outlived or code == "expired" then
    return nil, "the function ran for longer than the lease: another may have held the lock meanwhile",
      "expired", ...
  end
  -- A release that could not be confirmed, or was not waited for, does not change that the lock was held until then.
  return true, ...
end

-- ------------------------------------------------------------------------------- Lua 5.4 and newer
-- The fourth value of a generic `for` is closed when the loop is left, also by an error, which passes
-- through: nobody catches it, so its traceback is whole. Older versions ignore the value.

local guard_class = {}

function guard_class.__close(guard)
  if guard.lock then give_back(guard.lock, guard.how) end
end

local function settle(guard, ...)
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
    return settle(guard, fn(lock, ...))
  end
end

-- ----------------------------------------------------------------------------------- older versions
-- The error is caught and raised again. A text that says where it was raised is for people: they are
-- given the traceback with it. Everything else is raised again as it was.

local function explain(err)
  if traceback and type(err) == "string" and err:find("^[^\n]*:%d+: ")
    and not err:find("\nstack traceback:", 1, true) then
    local text = traceback(err, 2) -- no tail call: it would take away the level of this function
    return text
  end
  return err
end

local function settle_caught(lock, how, ok, ...)
  if ok then return finish(lock, how, ...) end
  give_back(lock, how)
  error((...), 0)
end

local function run_catching(lock, how, fn, ...)
  return settle_caught(lock, how, xpcall(fn, explain, lock, ...))
end

-- The xpcall of Lua 5.1 hands no arguments on.
local function run_without_arguments(lock, how, fn, ...)
  local count, arguments = select("#", ...), { ... }
  return settle_caught(lock, how, xpcall(function() return fn(lock, unpack(arguments, 1, count)) end, explain))
end

local run = run_catching
if not select(2, xpcall(function(argument) return argument end, explain, true)) then run = run_without_arguments end
do
  local probe = setmetatable({}, { __close = function() run = run_closing end })
  for _ in once, nil, nil, probe do break end -- luacheck: ignore 512
end

--- Acquires, runs fn(lock, ...), releases. `how` is what lock:release() is given. Of a lock that was refused, which
--- nobody else has, the library keeps nothing.
function section.run(lock, how, fn, ...)
  local validity, message, code = lock:acquire()
  if validity then return run(lock, how, fn, ...) end
  if type(lock) == "userdata" then discard(lock) end -- That of cqueues is a table.
  return nil, message, code
end

return section
