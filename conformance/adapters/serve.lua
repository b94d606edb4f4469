-- The loop of an adapter in Lua: reads requests, calls handlers[op](request), writes the answers.
--
-- SPDX-License-Identifier: MIT

local json = require "conformance.json"

return function(handlers)
  for line in io.lines() do
    local request = json.decode(line)
    local handler = handlers[request.op]
    local ok, answer = pcall(handler or error, request)
    if not ok then answer = { ok = false, error = tostring(answer) } end
    answer.id = request.id
    io.write(json.encode(answer), "\n")
    io.flush()
  end
end
