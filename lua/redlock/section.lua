--- What with() does: a function runs while a lock is held.

local section = {}

local pcall = pcall

local function finish(lock, ok, ...)
  local outlived = lock:remaining() == 0
  local released, message, code = lock:release()
  if not ok then
    error((...), 0)
  elseif code == "not_held" or code == "closed" then
    return ... -- The function gave the lock back itself.
  elseif outlived or code == "expired" then
    return nil, "the function ran for longer than the lease: another may have held the lock meanwhile",
      "expired", ...
  elseif not released and code == "lost" then
    return nil, message, code, ...
  end
  -- A release that could not be confirmed does not change that the lock was held all the time.
  return ...
end

--- Acquires, runs fn(lock, ...), releases. An error of fn is raised again, unchanged.
function section.run(lock, fn, ...)
  local validity, message, code = lock:acquire()
  if not validity then return nil, message, code end
  return finish(lock, pcall(fn, lock, ...))
end

return section
