--- The yardstick for redlock in nginx: the protocol of acquire and release alone, with the same
--- long-lived light threads and pipelined connections. It is no lock: it has no deadline, no retry,
--- no new token, checks no reply, and never reconnects.

-- luacheck: read_globals ngx
local semaphore = require "ngx.semaphore"

local bare = {}

local nodes, majority = {}, 0
local pool, pooled = {}, 0

local RELEASE = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
local TOKEN = ("0123456789abcdef"):rep(3):sub(1, 40)

local function write(node)
  while true do
    local count = node.pending
    if count > 0 then
      local bytes = table.concat(node.out, "", 1, count)
      node.pending = 0
      if not node.sock:send(bytes) then return end
    else
      node.wake:wait(3600)
    end
  end
end

-- Every reply is one line, in the order of the commands.
local function read(node)
  local fifo, rest = node.fifo, ""
  while true do
    local bytes = node.sock:receiveany(65536)
    if not bytes then return end
    if rest ~= "" then bytes = rest .. bytes end
    local from = 1
    while true do
      local at = bytes:find("\n", from, true)
      if not at then break end
      from = at + 1
      local operation = fifo[node.head]
      fifo[node.head] = nil
      node.head = node.head + 1
      if operation.sema then
        operation.votes = operation.votes + 1
        if operation.votes == majority then
          operation.sema:post(1)
          operation.sema = nil
        end
      end
    end
    rest = bytes:sub(from)
  end
end

local function serve(_, node)
  node.sock = ngx.socket.tcp()
  node.sock:settimeouts(1000, 1000, 86400000)
  assert(node.sock:connect(node.host, node.port))
  node.ready = true
  ngx.thread.spawn(write, node)
  read(node)
end

local function run(bytes)
  local sema
  if pooled > 0 then
    sema = pool[pooled]
    pooled = pooled - 1
  else
    sema = semaphore.new(0)
  end
  local operation = { votes = 0, sema = sema }
  for index = 1, #nodes do
    local node = nodes[index]
    local count = node.pending + 1
    node.out[count] = bytes
    node.pending = count
    node.fifo[node.tail] = operation
    node.tail = node.tail + 1
    if count == 1 then node.wake:post(1) end
  end
  sema:wait(5)
  pooled = pooled + 1
  pool[pooled] = sema
end

function bare.start(addresses)
  majority = math.floor(#addresses / 2) + 1
  for index, address in ipairs(addresses) do
    local host, port = address:match("^(.*):(%d+)$")
    nodes[index] = {
      host = host, port = tonumber(port), out = {}, pending = 0, fifo = {}, head = 1, tail = 1,
      wake = semaphore.new(0),
    }
    assert(ngx.timer.at(0, serve, nodes[index]))
  end
end

--- One lock and its release. `sha1` names the script, which has been loaded.
function bare.pair(name, sha1)
  run("*6\r\n$3\r\nSET\r\n$" .. #name .. "\r\n" .. name .. "\r\n$40\r\n" .. TOKEN
    .. "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n")
  run("*5\r\n$7\r\nEVALSHA\r\n$40\r\n" .. sha1 .. "\r\n$1\r\n1\r\n$" .. #name .. "\r\n" .. name
    .. "\r\n$40\r\n" .. TOKEN .. "\r\n")
end

bare.RELEASE = RELEASE

return bare
