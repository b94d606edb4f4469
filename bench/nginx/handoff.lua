--- The load and the figures of bench/nginx/handoff, which says what is measured:
---
---     luajit handoff.lua <nginx's port> <the nodes' ports> <rounds> <requests> <way> ...

local socket = require "socket"

-- More than the requests' budget, so that a request which is never answered is seen.
local PATIENCE_S = 90
-- What is left to be sent after the last answer belongs to the turn.
local QUIET_S = 0.3

local http_port, node_ports, rounds, requests = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])

-- ------------------------------------------------------------------------------------ requests

local function ask(path, way)
  local connection = assert(socket.connect("127.0.0.1", http_port))
  return {
    connection = connection,
    text = "GET " .. path .. " HTTP/1.0\r\nHost: localhost\r\nWay: " .. (way or "") .. "\r\n\r\n",
    parts = {},
  }
end

--- Returns true if the answer has come to its end.
local function read(request)
  local bytes, err, part = request.connection:receive("*a")
  request.parts[#request.parts + 1] = bytes or part
  if err == "timeout" then return false end
  request.connection:close()
  return true
end

--- Sends them all before it reads, and returns the status and the body of each.
local function answers(asked)
  local waiting, of = {}, {}
  for index, request in ipairs(asked) do
    assert(request.connection:send(request.text))
    request.connection:settimeout(0)
    waiting[index], of[request.connection] = request.connection, request
  end
  local deadline = socket.gettime() + PATIENCE_S
  while #waiting > 0 and socket.gettime() < deadline do
    for _, connection in ipairs((socket.select(waiting, nil, 1))) do
      if read(of[connection]) then of[connection] = nil end
    end
    local left = {}
    for _, connection in ipairs(waiting) do
      if of[connection] then left[#left + 1] = connection end
    end
    waiting = left
  end
  local answered = {}
  for index, request in ipairs(asked) do
    local status, body = table.concat(request.parts):match("^HTTP/%d%.%d (%d+).-\r\n\r\n(.*)$")
    answered[index] = { status = tonumber(status), body = body or "no answer" }
  end
  return answered
end

-- --------------------------------------------------------------------------- processors, commands

local nodes = {}
for port in node_ports:gmatch("%d+") do nodes[#nodes + 1] = assert(socket.connect("127.0.0.1", port)) end

local worker_pid = answers({ ask("/hold/pid") })[1].body
local pipe = assert(io.popen("getconf CLK_TCK"))
local ticks = pipe:read("*n")
pipe:close()

local function worker_us()
  local file = assert(io.open("/proc/" .. worker_pid .. "/stat"))
  local user, system = file:read("*a"):match("%) %a" .. (" %-?%d+"):rep(10) .. " (%d+) (%d+)")
  file:close()
  return (user + system) * 1e6 / ticks
end

--- What has been used so far: commands of all nodes, with what scripts call, and processor time in
--- us.
local function totals()
  local sum = { commands = 0, nodes_us = 0, worker_us = worker_us() }
  for _, node in ipairs(nodes) do
    assert(node:send("INFO everything\r\n"))
    local info = assert(node:receive(tonumber(assert(node:receive("*l")):match("^%$(%d+)")) + 2))
    for name, calls in info:gmatch("\ncmdstat_([^:]+):calls=(%d+)") do
      if name ~= "info" then sum.commands = sum.commands + calls end
    end
    for seconds in info:gmatch("\nused_cpu_%l+:([%d.]+)") do sum.nodes_us = sum.nodes_us + seconds * 1e6 end
  end
  return sum
end

-- ------------------------------------------------------------------------------------- figures

local function new_figures(way)
  return {
    way = way, had = 0, failed = 0, overlaps = 0, ms = 0, slowest = math.huge, fastest = 0,
    handed = {}, waited = {}, held = {}, used = { commands = 0, nodes_us = 0, worker_us = 0 },
  }
end

--- Of one turn, in the order of the grants: the worker has one clock.
local function add_turn(figures, grants)
  if #grants == 0 then return end
  table.sort(grants, function(one, other) return one.granted < other.granted end)
  local first, last = math.huge, 0
  for _, grant in ipairs(grants) do
    if grant.granted < last then
      figures.overlaps = figures.overlaps + 1
    elseif grant.wanted < last then
      table.insert(figures.handed, grant.granted - last)
    end
    table.insert(figures.waited, grant.granted - grant.wanted)
    table.insert(figures.held, grant.begun - grant.granted)
    first, last = math.min(first, grant.wanted), math.max(last, grant.begun)
  end
  local rate = #grants * 1000 / (last - first)
  figures.slowest, figures.fastest = math.min(figures.slowest, rate), math.max(figures.fastest, rate)
  figures.had, figures.ms = figures.had + #grants, figures.ms + last - first
end

local function percentile(samples, fraction)
  table.sort(samples)
  return samples[math.floor(fraction * (#samples - 1)) + 1] or 0
end

local function print_figures(figures, width)
  local had, used = math.max(figures.had, 1), figures.used
  print(string.format("%-" .. width .. "s had=%d failed=%d overlaps=%d rate=%.1f (%.1f..%.1f) "
    .. "handoff_p50=%.3f handoff_p99=%.3f wait_p50=%.0f wait_p99=%.0f wait_max=%.0f hold_p50=%.2f "
    .. "commands=%.1f worker_us=%.0f nodes_us=%.0f",
    figures.way, figures.had, figures.failed, figures.overlaps, figures.had * 1000 / math.max(figures.ms, 1),
    figures.slowest, figures.fastest, percentile(figures.handed, 0.5), percentile(figures.handed, 0.99),
    percentile(figures.waited, 0.5), percentile(figures.waited, 0.99), percentile(figures.waited, 1),
    percentile(figures.held, 0.5), used.commands / #nodes / had, used.worker_us / had, used.nodes_us / had))
end

-- --------------------------------------------------------------------------------------- turns

--- Each turn has its own key, because an earlier turn may leave a lease.
local keys = 0

local function turn(figures, count)
  keys = keys + 1
  local asked, grants = {}, {}
  for index = 1, count do asked[index] = ask("/hold?key=bench:handoff:" .. keys, figures.way) end
  for _, answer in ipairs(answers(asked)) do
    local wanted, granted, begun, why = answer.body:match("^([%d.]+) ([%d.]+) ([%d.]+) (.*)$")
    if answer.status == 200 and wanted then
      table.insert(grants, { wanted = tonumber(wanted), granted = tonumber(granted), begun = tonumber(begun) })
    end
    if why ~= "" then
      figures.failed = figures.failed + 1
      figures.why = figures.why or why or answer.body
    end
  end
  add_turn(figures, grants)
  socket.sleep(QUIET_S)
end

local all, width = {}, 0
for index = 5, #arg do
  width = math.max(width, #arg[index])
  -- One request makes the client and its connections, and is not counted.
  local first = new_figures(arg[index])
  turn(first, 1)
  assert(first.had == 1, first.why)
  all[#all + 1] = new_figures(arg[index])
end
for _ = 1, rounds do
  for _, figures in ipairs(all) do
    local before = totals()
    turn(figures, requests)
    for name, value in pairs(totals()) do figures.used[name] = figures.used[name] + value - before[name] end
  end
end
for _, figures in ipairs(all) do
  print_figures(figures, width)
  if figures.why then io.stderr:write("the first that failed: ", figures.why, "\n") end
end
