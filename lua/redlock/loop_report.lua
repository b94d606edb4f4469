--- Calls on_lost and on_event of clients of loops.

local loss = require "redlock.loss"

-- Returns true if a coroutine can wait within pcall: not in Lua 5.1.
local can_wait_in_pcall = coroutine.resume(coroutine.create(function() assert(pcall(coroutine.yield)) end))

-- on_lost and on_event run in coroutines of their own, because they may wait. Another coroutine
-- resumes them and catches their errors. If the loop resumes waiting coroutines itself, pcall
-- catches them, or in Lua 5.1 the loop.
local function report(loop, on_lost, lock, reason)
  local spawned = loop.spawn(function()
    if loop.collects then
      loss.tell_yielding(on_lost, lock, reason)
    elseif can_wait_in_pcall then
      loss.tell(on_lost, lock, reason)
    else
      on_lost(lock, reason)
    end
  end)
  if not spawned then loss.tell(on_lost, lock, reason) end
end

return report
