--- Methods of the lock that start an operation, made from the table of csrc/binding/rl_lua_operation.c. The other
--- methods are in C.

local core = require "redlock.core"
local options = require "redlock.options"
require "redlock.loss" -- which calls each on_lost

local run, start, release_send = core.run, core.start, core.release_send
local release_options = options.release
local detach, left_of = core.detach, core.left

local methods = core.lock_methods
local calls, numbers = {}, {} -- of the lock: by name; their codes

-- No tail calls here: C counts two functions up to the line that an error is reported for.

for name, call in pairs(core.operations) do
  if call.of == "lock" then
    local number, check = call.code, options.arguments[call.argument]
    calls[name] = { number = number, check = check, takes_options = call.argument == "options" }
    numbers[#numbers + 1] = number
    methods[name] = function(self, argument)
      local result, message, code
      if argument == nil then
        result, message, code = run(self, number)
      else
        result, message, code = run(self, number, check(argument, 2))
      end
      if result then return result end
      return nil, message, code
    end
  end
end

local RELEASE = core.operations.release.code

function methods.release(self, given)
  local released, message, code
  if given ~= nil and release_options(given, 2) then
    released, message, code = release_send(self)
  else
    released, message, code = run(self, RELEASE)
  end
  if released then return true end
  return nil, message, code
end

function methods.detach(self)
  local text, message, code = detach(self)
  if text then return text end
  return nil, message, code
end

-- The calls that can be started, as a sentence ends: "acquire", "extend" or "release".
local function startable()
  local names, quoted = {}, {}
  for name, call in pairs(calls) do names[call.number] = name end
  table.sort(numbers)
  for place, number in ipairs(numbers) do quoted[place] = '"' .. names[number] .. '"' end
  return table.concat(quoted, ", ", 1, #quoted - 1) .. " or " .. quoted[#quoted]
end

local START_TAKES = "redlock: lock:start() takes " .. startable()

function methods.start(self, operation, argument)
  local call = calls[operation]
  if not call then error(START_TAKES, 2) end
  if operation == "release" and argument ~= nil then release_options(argument, 2) end -- nothing waits here anyway
  local started, message, code
  if call.takes_options and argument ~= nil then
    started, message, code = start(self, call.number, call.check(argument, 2))
  else
    started, message, code = start(self, call.number, argument)
  end
  if started then return true end
  return nil, message, code
end

--- Raises an error at the caller's line unless the lock is held. Returns the milliseconds that are left.
function methods.check(self)
  local left, message = left_of(self)
  if not left then error(message, 2) end
  return left
end

return methods
