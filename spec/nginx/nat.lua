--- Passes bytes between nginx and nodes, as a NAT does, until it forgets the connections that it
--- has:
---
---     nat.lua DIRECTORY PORT NODE ...     PORT and NODE are ports of 127.0.0.1
---
--- When there is a file `forget` in the directory, it is removed, and all connections of that
--- moment pass nothing any more and stay open. `accepted` holds how many were made since then.

local socket = require "socket"

local directory = arg[1]
local servers, of, partners = {}, {}, {} -- partners: by socket
local kept_open = {} -- luacheck: ignore

for index = 2, #arg, 2 do
  local server = assert(socket.bind("127.0.0.1", tonumber(arg[index])))
  servers[#servers + 1], of[server] = server, tonumber(arg[index + 1])
end

local function write(count)
  local file = assert(io.open(directory .. "/accepted.new", "w"))
  file:write(count)
  file:close()
  assert(os.rename(directory .. "/accepted.new", directory .. "/accepted"))
end

local function pass(from)
  local to = partners[from]
  local bytes, err, part = from:receive(65536)
  bytes = bytes or part
  if to and bytes ~= "" then to:send(bytes) end
  if err ~= "closed" then return end
  from:close()
  partners[from] = nil
  if to then
    to:close()
    partners[to] = nil
  end
end

local accepted = 0
write(accepted)
-- The directory goes with the process of the specs.
while os.rename(directory .. "/accepted", directory .. "/accepted") do
  local sockets = { unpack(servers) } -- luacheck: ignore
  for one in pairs(partners) do sockets[#sockets + 1] = one end
  for _, one in ipairs((socket.select(sockets, nil, 0.01))) do
    if of[one] then
      local client = assert(one:accept())
      local node = assert(socket.connect("127.0.0.1", of[one]))
      client:settimeout(0)
      client:setoption("tcp-nodelay", true)
      node:setoption("tcp-nodelay", true)
      node:settimeout(0)
      partners[client], partners[node] = node, client
      accepted = accepted + 1
      write(accepted)
    elseif partners[one] then
      pass(one)
    end
  end
  if os.remove(directory .. "/forget") then
    for one in pairs(partners) do kept_open[#kept_open + 1] = one end
    partners, accepted = {}, 0
    write(accepted)
  end
end
