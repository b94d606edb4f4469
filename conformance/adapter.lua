-- An adapter: a process that speaks the protocol of docs/conformance.md for one library.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"
local Farm = require "conformance.farm"
local json = require "conformance.json"
local task = require "conformance.task"

local Adapter = {}
Adapter.__index = Adapter

local function environment(changes)
  local list = {}
  for name, value in pairs(uv.os_environ()) do
    if changes[name] == nil then list[#list + 1] = name .. "=" .. value end
  end
  for name, value in pairs(changes) do list[#list + 1] = name .. "=" .. value end
  return list
end

-- Answers the call that an answer names. A line that is no JSON goes to the log of errors.
local function on_line(self, line)
  local ok, answer = pcall(json.decode, line)
  local call = ok and type(answer) == "table" and self.calls[answer.id]
  if not call then return end
  self.calls[answer.id] = nil
  answer.received = task.now()
  call.finish(answer)
end

--- Starts the process of |kind|, an entry of conformance/adapters.lua. |log| receives its errors.
function Adapter.start(kind, log, changes)
  local self = setmetatable({ calls = {}, last = 0, kind = kind }, Adapter)
  local input, output, text = uv.new_pipe(false), uv.new_pipe(false), ""
  local errors = assert(uv.fs_open(log, "a", 420))
  local words = { table.unpack(kind.command) }
  local program = table.remove(words, 1)
  local variables = {}
  for name, value in pairs(kind.environment or {}) do variables[name] = value end
  for name, value in pairs(changes or {}) do variables[name] = value end
  self.input = input
  self.handle = Farm.spawn(program, { args = words, stdio = { input, output, errors }, env = environment(variables) },
    function(status)
      self.ended = ("the adapter ended with status %d"):format(status)
      for _, call in pairs(self.calls) do call.finish({ ok = false, error = self.ended, died = true }) end
    end)
  uv.fs_close(errors)
  output:read_start(function(_, bytes)
    if not bytes then return output:close() end
    text = text .. bytes
    for line in text:gmatch("([^\n]*)\n") do on_line(self, line) end
    text = text:match("[^\n]*$")
  end)
  return self
end

--- Sends a request. The returned call has |answer| as soon as the adapter has answered.
function Adapter:send(request)
  local call = { sent = task.now() }
  self.last = self.last + 1
  request.id = self.last
  call.finish = function(answer)
    call.answer = answer
    if call.wake then call.wake() end
  end
  self.calls[self.last] = call
  if self.ended or self.input:is_closing() then
    call.finish({ ok = false, error = self.ended or "the adapter is closed", died = true })
  else
    self.input:write(json.encode(request) .. "\n")
  end
  return call
end

--- Waits for the answer of a call. Returns it, or nil after |ms|.
function Adapter.await(call, ms)
  if call.answer then return call.answer end
  local timer
  task.wait(function(done)
    call.wake = done
    timer = task.after(ms, done)
  end)
  if not timer:is_closing() then timer:close() end
  return call.answer
end

--- Ends the process.
function Adapter:shut()
  if not self.input:is_closing() then self.input:close() end
  if not self.ended and not self.handle:is_closing() then self.handle:kill("sigkill") end
end

return Adapter
