-- Throw-away redis-servers on Unix sockets, and commands to them that bypass the relays.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"
local task = require "conformance.task"

local Farm = {}
Farm.__index = Farm

local running = {} -- processes, by pid

-- Reads one reply. Returns its value and the position after it, or nil while a part is missing.
local function read_reply(bytes, at)
  local kind, line, after = bytes:match("^(.)([^\r]*)\r\n()", at)
  if not kind then return nil end
  if kind == "+" or kind == "-" then return kind == "-" and "-" .. line or line, after end
  local number = tonumber(line)
  if kind == ":" then return number, after end
  if number < 0 then return false, after end
  if kind == "$" then
    if #bytes < after + number + 1 then return nil end
    return bytes:sub(after, after + number - 1), after + number + 2
  end
  local list = {}
  for index = 1, number do
    local value
    value, after = read_reply(bytes, after)
    if value == nil then return nil end
    list[index] = value
  end
  return list, after
end

local function request_of(words)
  local parts = { ("*%d\r\n"):format(#words) }
  for _, word in ipairs(words) do parts[#parts + 1] = ("$%d\r\n%s\r\n"):format(#tostring(word), word) end
  return table.concat(parts)
end

-- Sends a command on a connection of its own. Returns the reply, or nil if there is none.
local function ask(path, words)
  return task.wait(function(done)
    local pipe, bytes = uv.new_pipe(false), ""
    local function finish(reply)
      if not pipe:is_closing() then pipe:close() end
      done(reply)
    end
    pipe:connect(path, function(failure)
      if failure then return finish(nil) end
      pipe:write(request_of(words))
      pipe:read_start(function(broken, more)
        if broken or not more then return finish(nil) end
        bytes = bytes .. more
        local reply = read_reply(bytes, 1)
        if reply ~= nil then finish(reply) end
      end)
    end)
  end)
end

--- Starts a process that ends with this one. Returns its handle; |exited|(status) is called later.
function Farm.spawn(program, options, exited)
  local handle, pid
  handle, pid = uv.spawn(program, options, function(status)
    running[pid] = nil
    if not handle:is_closing() then handle:close() end
    if exited then exited(status) end
  end)
  assert(handle, ("cannot start %s: %s"):format(program, pid))
  running[pid] = handle
  return handle
end

--- Ends all processes of all farms.
function Farm.kill_all()
  for pid in pairs(running) do uv.kill(pid, "sigkill") end
end

function Farm.new(count, directory)
  local self = setmetatable({ count = count, directory = directory, paths = {}, servers = {} }, Farm)
  for node = 1, count do
    self.paths[node] = ("%s/%d.sock"):format(directory, node)
    self:start(node)
  end
  return self
end

-- Returns the words that start a server. It dies with this process, if the system has setpriv(1).
local function server_words(...)
  local words = { os.getenv("REDLOCK_TEST_SERVER") or "redis-server", ... }
  if os.execute("command -v setpriv >/dev/null 2>&1") then
    table.move({ "setpriv", "--pdeathsig", "KILL" }, 1, 3, 1, table.move(words, 1, #words, 4))
  end
  return words
end

--- Starts a server without data, and waits for it.
function Farm:start(node)
  local path = self.paths[node]
  os.remove(path)
  local server = {}
  local words = server_words("--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
    "--daemonize", "no", "--dir", self.directory, "--logfile", path .. ".log")
  server.handle = Farm.spawn(table.remove(words, 1), { args = words }, function()
    server.ended = true
    if server.on_end then server.on_end() end
  end)
  self.servers[node] = server
  assert(task.eventually(60000, function() return ask(path, { "PING" }) == "PONG" end), "a redis-server does not start")
end

--- Kills a server, and starts it again without its data.
function Farm:restart_empty(node)
  local server = self.servers[node]
  task.wait(function(done)
    if server.ended then return done() end
    server.on_end = done
    server.handle:kill("sigkill")
  end)
  self:start(node)
end

function Farm:ask(node, ...) return ask(self.paths[node], { ... }) end

function Farm:ask_all(...)
  for node = 1, self.count do self:ask(node, ...) end
end

-- How to read the token of each type of key, in which libraries keep it.
local READERS = { string = { "GET" }, hash = { "HKEYS" }, zset = { "ZRANGE", 0, -1 } }

--- The token in a key; false if the key does not exist.
function Farm:value(node, key)
  local reader = READERS[self:ask(node, "TYPE", key)]
  if not reader then return false end
  local value = self:ask(node, reader[1], key, table.unpack(reader, 2))
  return type(value) == "table" and table.concat(value, " ") or value
end

--- How many of the nodes have the key.
function Farm:holders(key)
  local count = 0
  for node = 1, self.count do
    if self:ask(node, "EXISTS", key) == 1 then count = count + 1 end
  end
  return count
end

--- The time, on the clock of task.now(), at which the key of a node ends; nil if it has none.
function Farm:key_end(node, key)
  local earliest
  for _ = 1, 5 do
    local before = task.now()
    local rest = self:ask(node, "PTTL", key)
    if not rest or rest < 0 then return nil end
    earliest = math.min(earliest or math.huge, task.now() + rest)
    if task.now() - before < 20 then break end
  end
  return earliest
end

return Farm
