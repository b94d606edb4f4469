--- credentials: a function that says as whom to log in (csrc/binding/rl_lua_credentials.c), asked by a driver that is
--- written in Lua, in a coroutine of its own. It may wait there: its yields are handed on to the loop, or it is
--- resumed itself, as in luv. What Lua 5.1 has for pcall cannot be yielded across; a coroutine can, and catches
--- errors as well, those before it is resumed by somebody else.

local core = require "redlock.core"

local credentials = {}

local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield
local pcall = pcall
local give = core.give_credentials
local can_wait_in_pcall = resume(create(function() assert(pcall(yield)) end))

-- Whoever presses Ctrl-C means the program.
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

--- Asks the function of a client for a node, and hands on what it returns or raises.
function credentials.ask(handle, asked, node, index)
  if can_wait_in_pcall then
    hand_on(handle, index, pcall(asked, node, index))
    return
  end
  local thread = create(function() give(handle, index, true, asked(node, index)) end)
  carry_on(handle, index, thread, resume(thread))
end

return credentials
