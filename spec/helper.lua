--- Throw-away redis-servers for the specs, and what is needed to look at them from outside.
--- REDLOCK_TEST_SERVER names another program than redis-server.
---
--- Processes are started and signalled through the shell, because luaposix does not exist for Lua
--- 5.4 on every system. A watchdog in the background ends a test that has hung for two minutes, and
--- removes servers and files when the process that runs the specs is gone, however it ended.
---
--- No deadline here is a promise of the product: each is far beyond what a slow machine needs.

local socket = require "socket"

local helper = {}

local TEST_LIMIT = 120 -- seconds
local DEADLINE = 45 -- seconds, of a wait for a condition: less than a lease of a minute
local HOST = "127.0.0.1"

helper.interpreter = os.getenv("REDLOCK_SPEC_LUA")
  or (rawget(_G, "jit") and "luajit" or "lua" .. _VERSION:match("%d%.%d"))

-- Inside nginx a child would keep the connection of the request open, and who asked would wait for
-- its end.
local WITHOUT_DESCRIPTORS = [[bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}
  [ $fd -le 2 ] || eval "exec $fd>&-"; done; exec "$@"' - ]]

local function read_command(command)
  local pipe = assert(io.popen(command, "r"))
  local text = pipe:read("*a")
  pipe:close()
  return (text:gsub("%s+$", ""))
end

function helper.write_file(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

function helper.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local directory = read_command("mktemp -d")
assert(directory ~= "", "mktemp -d failed")
helper.directory = directory
local own_pid = read_command("echo $PPID")

-- -------------------------------------------------------------------------------------- watchdog

local function beat(seconds, name)
  helper.write_file(directory .. "/beat.new", string.format("%d %s\n", os.time() + seconds, name:gsub("%s+", " ")))
  os.rename(directory .. "/beat.new", directory .. "/beat")
end

--- Gives the running test more time than the usual two minutes.
function helper.limit(seconds)
  beat(math.max(seconds, TEST_LIMIT), helper.test_name or "?")
end

local FOREVER = 1000000

helper.write_file(directory .. "/pids", "")
beat(FOREVER, "start")
helper.write_file(directory .. "/watchdog.sh", [[
while kill -0 "$1" 2>/dev/null; do
  sleep 0.5
  [ -e "$2/pids" ] && pids=$(cat "$2/pids")
  [ -e "$2/beat" ] && read -r deadline name < "$2/beat" || continue
  if [ "$(date +%s)" -gt "$deadline" ]; then
    echo "HUNG: $name" >&2
    kill -KILL "$1"
    break
  fi
done
[ -e "$2/pids" ] && pids=$(cat "$2/pids")
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$2"
]])
os.execute(WITHOUT_DESCRIPTORS
  .. string.format("sh %s/watchdog.sh %s %s >/dev/null </dev/null &", directory, own_pid, directory))

do
  local loaded, busted = pcall(require, "busted")
  if loaded and busted.subscribe then
    busted.subscribe({ "test", "start" }, function(element)
      helper.test_name = element.name
      beat(TEST_LIMIT, element.name)
      return nil, true
    end)
    busted.subscribe({ "test", "end" }, function()
      beat(FOREVER, "between tests")
      return nil, true
    end)
  end
end

-- ------------------------------------------------------------------------------------------ waits

helper.now = socket.gettime

--- Polls until `condition` returns something true, and returns that; fails after the deadline.
function helper.eventually(condition, what, seconds)
  local deadline = socket.gettime() + (seconds or DEADLINE)
  while true do
    local value = condition()
    if value then return value end
    if socket.gettime() > deadline then error("in vain waited for: " .. (what or "a condition"), 2) end
    socket.sleep(0.002)
  end
end

local running = {} -- pid -> node
local observed = {} -- functions that list pids

--- Counts the delays of further processes, whose pids `list` returns, as those of the nodes.
function helper.observe(list)
  observed[#observed + 1] = list
end

local function queued_of(pid)
  local file = io.open("/proc/" .. pid .. "/schedstat")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return (tonumber(text:match("^%d+ (%d+)")) or 0) / 1000000
end

-- Returns for how many milliseconds each process was ready while another had the processor.
local function queued()
  local all = {}
  for pid in pairs(running) do all[pid] = queued_of(pid) end
  for _, list in ipairs(observed) do
    for _, pid in ipairs(list()) do all[pid] = queued_of(pid) end
  end
  return all
end

-- Begins to observe. Returns a function that returns the milliseconds since then, and the longest
-- delay: of this process by its witness, or of one that it needs.
local function observation()
  local witness = require "witness"
  assert(witness.start(), "no thread for the witness")
  local before, began = queued(), witness.now()
  return function()
    local took, delay = witness.now() - began, witness.delay(began)
    for pid, milliseconds in pairs(queued()) do delay = math.max(delay, milliseconds - (before[pid] or 0)) end
    return took, delay
  end
end

-- The time limit of the test begins anew.
local function say_repeated(delay, err)
  local why = err and ": " .. tostring(err) or ""
  print(("# repeated: %s, a stall of %.1f ms%s"):format(helper.test_name or "?", delay, why))
  helper.limit(0)
end

--- Runs `block` and fails unless it ends within `bound` milliseconds plus the delay of this process
--- (csrc/test/lib/witness.h) or of the nodes. Runs it again if the delay is longer than the bound.
function helper.within(bound, block)
  for repetition = 0, 20 do
    local observed_since = observation()
    block()
    local took, delay = observed_since()
    if delay <= bound or repetition == 20 then
      if took > bound + delay then
        error(("took %.1f ms; the bound is %.1f ms, and the scheduler delayed the process by %.1f ms")
          :format(took, bound, delay), 2)
      end
      return
    end
    say_repeated(delay)
  end
end

--- Runs `block`, in which the product itself has a bound of so many milliseconds (a lease, the time
--- that the end of a process may take). Runs it again if it fails and this process or a node was
--- delayed for longer.
function helper.unless_stalled(bound, block)
  for _ = 1, 20 do
    local observed_since = observation()
    local ok, err = pcall(block)
    if ok then return end
    local _, delay = observed_since()
    if delay <= bound then error(err, 0) end
    say_repeated(delay, err)
  end
  block()
end

--- Lets so many seconds pass, in which something must not happen. No test may need more of them to
--- succeed.
function helper.pass(seconds, turn)
  local until_when = socket.gettime() + seconds
  repeat
    if turn then turn() else socket.sleep(0.002) end
  until socket.gettime() > until_when
end

-- A loop that LuaJIT compiles keeps alive what it was compiled for: the condition, and a lock in it
-- that a test has dropped.
local jit = rawget(_G, "jit")
if jit then
  jit.off(helper.eventually)
  jit.off(helper.pass)
end

-- ------------------------------------------------------------------------------------------ nodes

local Node = {}
Node.__index = Node

local function record()
  local pids = {}
  for pid in pairs(running) do pids[#pids + 1] = pid end
  helper.write_file(directory .. "/pids", table.concat(pids, "\n") .. "\n")
end

local function free_port()
  return assert(require("witness").port(), "no port of " .. HOST .. " is free")
end

local function read_reply(connection)
  local line, err = connection:receive("*l")
  if not line then return nil, err end
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "+" then
    return rest
  elseif kind == "-" then
    return nil, rest
  elseif kind == ":" then
    return tonumber(rest)
  elseif kind == "$" then
    if rest == "-1" then return false end
    local bulk = connection:receive(tonumber(rest) + 2)
    return bulk and bulk:sub(1, -3)
  elseif kind == "*" then
    local list = {}
    for index = 1, tonumber(rest) do list[index] = read_reply(connection) end
    return list
  end
  error("unexpected reply: " .. line)
end

--- Sends a command on a connection of its own. A nil bulk comes back as false, an error as nil and
--- its text.
function Node:command(...)
  local connection, err = socket.connect(HOST, self.port)
  if not connection then return nil, err end
  connection:settimeout(DEADLINE)
  local words = { ... }
  local parts = { "*" .. #words .. "\r\n" }
  for _, word in ipairs(words) do
    word = tostring(word)
    parts[#parts + 1] = "$" .. #word .. "\r\n" .. word .. "\r\n"
  end
  connection:send(table.concat(parts))
  local reply, message = read_reply(connection)
  connection:close()
  return reply, message
end

--- How many keys it has, without the signs that somebody has waited, which live for a minute.
function Node:keys_left()
  local count = 0
  for _, key in ipairs(self:command("KEYS", "*") or {}) do
    if not key:find(":redlock%-wait$") then count = count + 1 end
  end
  return count
end

function Node:signal(name)
  os.execute("kill -" .. name .. " " .. self.pid .. " 2>/dev/null")
end

-- A process of one thread is stopped when the signal has been delivered, which /proc tells.
function Node:stop()
  self:signal("STOP")
  helper.eventually(function()
    local file = io.open("/proc/" .. self.pid .. "/stat")
    if not file then return true end
    local text = file:read("*a")
    file:close()
    if text:match("%) (%a)") == "T" then return true end
    self:signal("STOP") -- Another process may just have continued it (build-aux/busy.c).
  end, "a node to stop")
  self.stopped = true
end

function Node:continue()
  self:signal("CONT")
  self.stopped = false
end

function Node:kill()
  self:signal("KILL")
  helper.eventually(function()
    local connection = socket.connect(HOST, self.port)
    if connection then connection:close() end
    return not connection
  end, "a node to be gone")
  running[self.pid] = nil
  record()
  self.killed = true
end

local SENTINEL = [[
port %d
bind %s
dir %s
sentinel monitor mymaster %s %d %d
sentinel down-after-milliseconds mymaster 500
sentinel failover-timeout mymaster 1000
]]

-- Returns the words that start a server, or a Sentinel.
local function words_of(node)
  if node.master then
    local path = directory .. "/sentinel-" .. node.port .. ".conf"
    helper.write_file(path, SENTINEL:format(node.port, HOST, directory, HOST, node.master, node.quorum))
    return path .. " --sentinel"
  end
  return ("--port %d --bind %s --save '' --appendonly no --dir %s %s"):format(node.port, HOST, directory,
    node.arguments)
end

local function launch(node)
  local command = WITHOUT_DESCRIPTORS
    .. string.format("%s %s --daemonize no --logfile %s/redis-%d.log >/dev/null 2>&1 </dev/null & echo $!",
    os.getenv("REDLOCK_TEST_SERVER") or "redis-server", words_of(node), directory, node.port)
  node.pid = read_command(command)
  running[node.pid] = node
  record()
  local deadline = socket.gettime() + DEADLINE
  repeat
    local reply, err = node:command("INFO", "server")
    if reply and reply:match("process_id:" .. node.pid .. "\r") then return true end
    if err and err:match("NOAUTH") then return true end
    socket.sleep(0.005)
    local alive = io.open("/proc/" .. node.pid .. "/stat")
    if alive then alive:close() end
  until not alive or socket.gettime() > deadline
  running[node.pid] = nil
  record()
  return false
end

--- Starts a killed node again on its port, empty.
function Node:restart()
  helper.eventually(function() return launch(self) end, "a node to come back")
  self.killed, self.stopped = false, false
end

local function new_node(arguments, master, quorum)
  for _ = 1, 5 do
    local node = setmetatable({ arguments = arguments or "", port = free_port(), master = master, quorum = quorum },
      Node)
    if launch(node) then
      node.address = HOST .. ":" .. node.port
      return node
    end
  end
  error("no redis-server could be started; see " .. directory)
end

-- ------------------------------------------------------------------------------------------- farm

local Farm = {}
Farm.__index = Farm

--- Starts `count` servers. farm[1] ... are the nodes, farm.addresses what redlock.new() takes.
function helper.farm(count, arguments)
  local farm = setmetatable({ addresses = {} }, Farm)
  for index = 1, count do
    farm[index] = new_node(arguments)
    farm.addresses[index] = farm[index].address
  end
  return farm
end

--- Starts `count` Sentinels that call the server at the port `master` "mymaster". Most of them fail
--- over half a second after its last reply.
function helper.sentinels(count, master)
  local farm = setmetatable({ addresses = {} }, Farm)
  for index = 1, count do
    farm[index] = new_node(nil, master, math.floor(count / 2) + 1)
    farm.addresses[index] = farm[index].address
  end
  return farm
end

--- Brings every node back, and makes it as new.
function Farm:reset()
  for _, node in ipairs(self) do
    if node.stopped then node:continue() end
    if node.killed then node:restart() end
    node:command("FLUSHALL")
    node:command("SCRIPT", "FLUSH")
  end
end

function Farm:shut()
  for _, node in ipairs(self) do
    if not node.killed then node:kill() end
  end
end

--- On how many nodes a key has this value; without a value: on how many it exists.
function Farm:count(key, value)
  local count = 0
  for _, node in ipairs(self) do
    if not node.stopped and not node.killed then
      local found = node:command("GET", key)
      if found and (value == nil or found == value) then count = count + 1 end
    end
  end
  return count
end

function Farm:eventually_free(key, seconds)
  helper.eventually(function() return self:count(key) == 0 end, "the key " .. key .. " to be gone", seconds)
end

--- Uses a client until all nodes are connected and know the scripts: a round then reaches all of
--- them at once, where a new client is content with a majority. `pump` lets it do what it can do
--- without waiting.
function helper.warm(client, farm, pump, prefix)
  local key = (prefix or "") .. "warm"
  helper.eventually(function()
    local lock = client:acquire("warm")
    if not lock then return false end
    local all = helper.eventually(function()
      pump(client)
      local up = 0
      for _, node in ipairs(client:nodes()) do
        if node.state == "up" then up = up + 1 end
      end
      return up == #farm
    end, "all nodes to be connected") and farm:count(key, lock:token()) == #farm
    lock:release()
    helper.eventually(function()
      pump(client)
      return farm:count(key) == 0
    end, "the key warm to be gone")
    return all
  end, "a round that reaches all nodes")
end

--- A port of 127.0.0.1 on which no socket listens, and which no other test uses
--- (csrc/test/lib/port.h).
helper.free_port = free_port

-- ----------------------------------------------------------------------------------------- scripts

-- The command that runs a Lua file with this interpreter and the module's paths.
local function command_of(path, ...)
  local words = {}
  for index = 1, select("#", ...) do words[index] = helper.quote((select(index, ...))) end
  local suffix = _VERSION == "Lua 5.1" and "" or "_" .. _VERSION:match("%d%.%d"):gsub("%.", "_")
  local lua_path, lua_cpath = helper.quote(package.path), helper.quote(package.cpath)
  return string.format("LUA_PATH%s=%s LUA_CPATH%s=%s exec %s %s %s",
    suffix, lua_path, suffix, lua_cpath, helper.interpreter, helper.quote(path), table.concat(words, " "))
end

--- Runs a Lua file. Returns its output, the errors included, and whether it ended well.
function helper.run_file(path, ...)
  local output = read_command("(" .. command_of(path, ...) .. ") 2>&1 </dev/null; echo \"exit $?\"")
  local text, status = output:match("^(.-)\n?exit (%d+)$")
  return text, status == "0"
end

local function start(path, input, output, ...)
  return read_command("(" .. command_of(path, ...) .. ") >" .. helper.quote(output) .. " 2>&1 " .. input
    .. " & echo $!")
end

--- Starts a Lua file whose output goes to another file, and returns its process.
function helper.start_file(path, output, ...)
  return start(path, "</dev/null", output, ...)
end

--- The same with a pipe to read from, which is made with that name. It never ends.
function helper.start_reader(path, input, output, ...)
  assert(read_command("mkfifo " .. helper.quote(input) .. " 2>&1") == "", "mkfifo failed")
  return start(path, "<>" .. helper.quote(input), output, ...)
end

-- A process that has ended stays a zombie until its parent looks.
local function state_of(pid)
  local file = io.open("/proc/" .. pid .. "/stat")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return text:match("%) (%a)") or "Z"
end

--- Returns true if a process is stopped, which is so when the signal has been delivered.
function helper.is_stopped(pid)
  return state_of(pid) == "T"
end

--- Returns true if a process has ended.
function helper.is_gone(pid)
  return state_of(pid) == "Z"
end

--- As run_file() for a text. The addresses of the nodes are in `...` there.
function helper.run_script(text, ...)
  local path = directory .. "/script.lua"
  helper.write_file(path, text)
  return helper.run_file(path, ...)
end

return helper
