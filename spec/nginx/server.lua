--- Starts a real nginx with a generated configuration on a free port, and looks at what it answers
--- and at what it logs.

local socket = require "socket"

local helper = require "spec.helper"

local server = {}
server.__index = server

-- Another nginx than that of the system (build-aux/cross.sh), and its directory of lua-resty-core.
local MODULES = os.getenv("REDLOCK_TEST_NGINX_MODULES") or "/usr/lib/nginx/modules/"
local RESTY = os.getenv("REDLOCK_TEST_NGINX_LUA")

local function command(text)
  local pipe = assert(io.popen(text, "r"))
  local output = pipe:read("*a")
  pipe:close()
  return (output:gsub("%s+$", ""))
end

local own_pid = command("echo $PPID")
local root = command("pwd")
local started = 0
local servers = {} -- all that were started

server.sanitized = os.getenv("REDLOCK_TEST_SANITIZER") ~= nil

-- By its whole name, because it starts itself again to be upgraded.
local NGINX = os.getenv("REDLOCK_TEST_NGINX") or command("PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx")

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local function absolute(paths)
  return (paths:gsub("[^;]+", function(path)
    return path:sub(1, 1) == "/" and path or root .. "/" .. path:gsub("^%./", "")
  end))
end

--- Where nginx finds the module of this tree: the path and the cpath of this process.
function server.lua_paths()
  return (RESTY and RESTY .. "/?.lua;" or "") .. absolute(package.path), absolute(package.cpath)
end

local function modules()
  local lines = {}
  for _, name in ipairs { "ndk_http_module.so", "ngx_http_lua_module.so" } do
    if exists(MODULES .. name) then lines[#lines + 1] = "load_module " .. MODULES .. name .. ";" end
  end
  return table.concat(lines, "\n")
end

local OF_MAIN = [[
%(modules)
%(user)
pid %(directory)/nginx.pid;
error_log %(directory)/error.log notice;
daemon off;
]]

local OF_HTTP = [[

  access_log off;
  client_body_temp_path %(directory)/body;
  proxy_temp_path %(directory)/proxy;
  fastcgi_temp_path %(directory)/fastcgi;
  uwsgi_temp_path %(directory)/uwsgi;
  scgi_temp_path %(directory)/scgi;
  lua_package_path '%(path)';
  lua_package_cpath '%(cpath)';
]]

local CONFIGURATION = OF_MAIN .. [[
worker_processes %(workers);
%(main)
events { worker_connections 1024; }
http {
]] .. OF_HTTP .. [[
  lua_socket_log_errors off;
  %(http)
  init_by_lua_block {
    addresses = { %(addresses) }
    -- Nodes that answer have the time for that, however slow the machine is.
    PATIENT = { node_timeout = 30000 }
    -- Where the specs keep what outlives a request.
    kept = {}
    %(init)
  }
  %(init_worker)
  server {
    listen 127.0.0.1:%(port);
    %(server)
  }
}
]]

-- Preloading the runtimes: nginx has not been made with them. Its children do without, unless one
-- is to be another nginx.
local function preload()
  if not server.sanitized then return "" end
  local libraries = command("gcc -print-file-name=libasan.so") .. " " .. command("gcc -print-file-name=libubsan.so")
  return "LD_PRELOAD=" .. helper.quote(libraries) .. " ASAN_OPTIONS=detect_leaks=0:log_path=stderr"
end

function server:configure(text, given)
  local path, cpath = server.lua_paths()
  local values = {
    modules = modules(),
    user = command("id -u") == "0" and "user " .. command("id -un") .. " " .. command("id -gn") .. ";" or "",
    workers = given.workers or 1,
    directory = self.directory,
    main = (given.main or "") .. (server.sanitized and given.upgraded and "\nenv LD_PRELOAD;" or ""),
    path = path,
    cpath = cpath,
    http = given.http or "",
    addresses = "'" .. table.concat(given.addresses or {}, "', '") .. "'",
    init = given.init or "",
    init_worker = given.init_worker and "init_worker_by_lua_block {" .. given.init_worker .. "}" or "",
    port = self.port,
    server = given.server or "",
  }
  helper.write_file(self.directory .. "/nginx.conf", (text:gsub("%%%((%l[%l_]*)%)", values)))
end

local function answers(port)
  local connection = socket.connect("127.0.0.1", port)
  if connection then connection:close() end
  return connection ~= nil
end

-- It ends with the process that runs the specs, however that ends. Its parent has to be another one
-- than the shell that started it, or it would take no signal to upgrade itself. The directory goes
-- at about the same time, so the pids are read while it is there.
local function run(self)
  helper.write_file(self.directory .. "/run.sh", string.format([[
cd %s
(
  sh -c 'echo $PPID' > parent
  %s %s -p %s -c %s/nginx.conf -e %s/error.log 2>stderr &
  while kill -0 $! && [ ! -s nginx.pid ]; do sleep 0.01; done 2>/dev/null
)
pids=
while [ -s nginx.pid ] || [ -s nginx.pid.oldbin ]; do
  pids=$(cat nginx.pid.oldbin nginx.pid)
  kill -0 %s || break
  sleep 0.3
done 2>/dev/null
kill -TERM $pids 2>/dev/null
]], self.directory, preload(), NGINX, self.directory, self.directory, self.directory, own_pid))
  os.execute("(sh " .. self.directory .. "/run.sh; echo >" .. self.directory .. "/ended) >/dev/null 2>&1 </dev/null &")
  helper.eventually(function()
    if self:read("ended") ~= "" then error("nginx has not started: " .. self:read("error.log"), 0) end
    return answers(self.port)
  end, "nginx to start")
  self.pid = helper.eventually(function() return self:read("nginx.pid"):match("%d+") end, "nginx's pid")
  helper.eventually(function()
    local parent = self:stat(self.pid):match("%) %a (%d+)")
    return parent and parent ~= self:read("parent"):match("%d+")
  end, "its first parent to end")
  return self
end

local function new()
  started = started + 1
  local self = setmetatable({
    directory = helper.directory .. "/nginx-" .. started,
    port = helper.free_port(),
    read_to = 0,
  }, server)
  os.execute("mkdir " .. self.directory)
  servers[started] = self
  return self
end

--- Starts nginx. `given` holds parts of the configuration: init, init_worker, server, http, main,
--- workers, addresses (of the nodes; a global variable in nginx's Lua), upgraded (if it will be).
function server.start(given)
  local self = new()
  self:configure(CONFIGURATION, given)
  return run(self)
end

--- Starts nginx with a file of examples/nginx, whose nodes and port are replaced by those given.
--- Nodes that answer have the time for that.
function server.start_example(path, addresses)
  local self = new()
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  text = text:gsub("listen 127%.0%.0%.1:8080;", "listen 127.0.0.1:%%(port);")
    :gsub("127%.0%.0%.1:63(%d%d)", function(number) return addresses[tonumber(number) - 78] end)
    :gsub("127%.0%.0%.1:700(%d)", function(number) return addresses[tonumber(number)] end)
    :gsub("{ prefix = ", "{ node_timeout = 20000, prefix = ")
    :gsub("http {", "http {" .. OF_HTTP:gsub("%%", "%%%%"), 1)
  self:configure(OF_MAIN .. text, {})
  return run(self)
end

function server:read(name)
  local file = io.open(self.directory .. "/" .. name)
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text
end

function server:signal(name)
  os.execute("kill -" .. name .. " " .. self.pid .. " 2>/dev/null")
end

-- All processes of all servers.
helper.observe(function()
  local pids = {}
  for _, one in ipairs(servers) do
    local master = not one.stopped and one.pid
    local file = master and io.open("/proc/" .. master .. "/task/" .. master .. "/children")
    pids[#pids + 1] = master or nil
    for pid in (file and file:read("*a") or ""):gmatch("%d+") do pids[#pids + 1] = pid end
    if file then file:close() end
  end
  return pids
end)

--- The processes that serve now.
-- A loader that runs nginx leaves its arguments behind the title of the process.
function server:workers()
  local pids, found = {}, command("pgrep -P " .. self.pid .. " -f 'worker process *($|/)'")
  for pid in found:gmatch("%d+") do pids[#pids + 1] = pid end
  return pids
end

function server.stat(_, pid)
  local file = io.open("/proc/" .. pid .. "/stat")
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text or ""
end

-- Or it is a zombie, whose parent has not looked yet.
local function is_gone(pid)
  local text = server:stat(pid)
  return text == "" or text:match("%) (%a)") == "Z"
end

--- Loads the configuration again, and waits until the old workers have gone.
function server:reload()
  local old = self:workers()
  self:signal("HUP")
  for _, pid in ipairs(old) do
    helper.eventually(function() return is_gone(pid) end, "the old worker to end")
  end
end

--- Ends it by a signal, QUIT if nothing else is said, and waits until it has gone.
function server:stop(signal)
  if self.stopped then return end
  self.stopped = true
  self:signal(signal or "QUIT")
  helper.eventually(function() return is_gone(self.pid) end, "nginx to end")
end

-- ------------------------------------------------------------------------------------- requests

local Request = {}
Request.__index = Request

--- Begins a request, with a body if there is one; several can be under way.
function server:request(path, body, headers)
  local connection = assert(socket.connect("127.0.0.1", self.port))
  connection:settimeout(100)
  local length = body and "Content-Length: " .. #body .. "\r\n" or ""
  assert(connection:send((body and "POST " or "GET ") .. path .. " HTTP/1.0\r\nHost: localhost\r\n" .. length
    .. (headers or "") .. "\r\n" .. (body or "")))
  return setmetatable({ connection = connection }, Request)
end

--- The status, or nil when nothing came, and the body.
function Request:finish()
  local text, err, part = self.connection:receive("*a")
  self.connection:close()
  text = text or part
  local status, body = text:match("^HTTP/%d%.%d (%d+)[^\n]*\r\n.-\r\n\r\n(.*)$")
  return tonumber(status), body or err
end

function Request:abort()
  self.connection:close()
end

function server:get(path)
  return self:request(path):finish()
end

-- ------------------------------------------------------------------------------------------ log

--- What was logged as a warning or worse since the last call, without lines that match a pattern
--- given, and those about nodes that go down and come back.
function server:complaints(...)
  local patterns = { ... }
  local function expected(line)
    if line:find("redlock: node %S+ is down: ") or line:find("redlock: node %S+ is up again") then return true end
    for _, pattern in ipairs(patterns) do
      if line:find(pattern) then return true end
    end
    return false
  end
  local log = self:read("error.log")
  local lines, counts = {}, false
  for line in log:sub(self.read_to + 1):gmatch("[^\n]+") do
    local level = line:match("^%d+/%d+/%d+ %d+:%d+:%d+ %[(%l+)%]")
    -- What follows without a date belongs to the line before.
    if level then
      counts = level ~= "notice" and level ~= "info" and not expected(line)
    end
    if counts then lines[#lines + 1] = line end
  end
  self.read_to = #log
  for line in self:read("stderr"):gmatch("[^\n]+") do
    if not expected(line) then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

--- What nginx itself writes when a connection to a node is refused or breaks; nothing can turn it
--- off.
server.NODE_IS_GONE = "connect%(%) failed %(111: Connection refused%)"
server.CONNECTION_BROKE = "%(104: Connection reset by peer%)"

return server
