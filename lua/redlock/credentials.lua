--- Calls the function of option 'credentials' (csrc/binding/rl_lua_credentials.c) for drivers that
--- are written in Lua, in a coroutine of its own. The function may wait: its yields go to the loop,
--- or, as in luv, the loop resumes it directly. pcall of Lua 5.1 cannot be yielded across, so a
--- coroutine catches the errors.

local core = require "redlock.core"

local credentials = {}

local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield
local pcall = pcall
local give = core.give_credentials
local can_wait_in_pcall = resume(create(function() assert(pcall(yield)) end))

-- Passes on the error of Ctrl-C, which must end the program.
local function go_on(ok, err)
  if not ok and type(err) == "string" and err:find("interrupted!", -12, true) then error(err, 0) end
end

local function hand_on(handle, index, ok, ...)
  give(handle, index, ok, ...)
  go_on(ok, (...))
end

local function carry_on(handle, index, thread, ok, ...)
  if not ok then
    hand_on(handle, index, false, (...))
  elseif status(thread) ~= "dead" then
    return carry_on(handle, index, thread, resume(thread, yield(...)))
  end
end

--- Calls the function for a node, and gives its results or its error to the library.
function credentials.ask(handle, fn, node, index)
  if can_wait_in_pcall then
    hand_on(handle, index, pcall(fn, node, index))
    return
  end
  local thread = create(function() give(handle, index, true, fn(node, index)) end)
  carry_on(handle, index, thread, resume(thread))
end

return credentials
