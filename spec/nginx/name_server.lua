--- A name server for the specs: every name is 127.0.0.1. Argument: a port.

local socket = require "socket"

local server = assert(socket.udp())
assert(server:setsockname("127.0.0.1", tonumber(arg[1])))

while true do
  local query, host, port = server:receivefrom()
  if query and #query > 16 then
    local finish = 13
    while query:byte(finish) ~= 0 do finish = finish + query:byte(finish) + 1 end
    local question = query:sub(13, finish + 4)
    local is_address = question:sub(-4, -3) == "\0\1"
    -- A reply to the same question, with one address of IPv4 or none.
    local reply = query:sub(1, 2) .. "\129\128\0\1\0" .. (is_address and "\1" or "\0") .. "\0\0\0\0" .. question
    if is_address then reply = reply .. "\192\12\0\1\0\1\0\0\0\60\0\4\127\0\0\1" end
    server:sendto(reply, host, port)
  end
end
