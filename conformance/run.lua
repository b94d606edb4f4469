-- Runs the statements against libraries:
--
--     lua5.4 conformance/run.lua quick                  our adapters and the negative controls
--     lua5.4 conformance/run.lua all [FILE]             every library; writes its verdicts to FILE
--     lua5.4 conformance/run.lua interop [FILE]         ours against each library on one key
--                                                       ONLY names one library or statement;
--                                                       OURS is redlock or redlock-guard
--     lua5.4 conformance/run.lua NAME[=STATEMENT]...    some libraries, or one statement of them;
--                                                       plain:DEFECT is a wrong variant of ours
--     lua5.4 conformance/run.lua command STATEMENT|all COMMAND...     your own adapter;
--                                                       NODES=1: it uses one node
--
-- CONFORMANCE_SECONDS is the length of a contest, CONFORMANCE_WIDTH the number of statements that
-- run at once. quick prints "ok" or "not ok" for each statement. It fails if one of ours does not
-- hold, or if a control was not detected. The other modes only report.
--
-- SPDX-License-Identifier: MIT

local uv = require "luv"
local Farm = require "conformance.farm"
local World = require "conformance.world"
local adapters = require "conformance.adapters"
local controls = require "conformance.controls"
local interop = require "conformance.interop"
local statements = require "conformance.statements"
local task = require "conformance.task"

local NODES = 3
local DEADLINE, HANG_DEADLINE = 30000, 5000 -- ms for a call

-- Statements that a correct library may fail: the algorithm does not promise them.
local UNPROMISED = { ["redlock"] = { ["restart-empty"] = true }, plain = { ["restart-empty"] = true } }

-- A statement whose result is not as expected is repeated if this process stalled meanwhile.
local STALL_MS, REPEATS = 200, 5

local directory = assert(uv.fs_mkdtemp((os.getenv("TMPDIR") or "/tmp") .. "/conformance-XXXXXX"))
local build = os.getenv("BUILD") or "build"
local failures = 0

local function log_of(name)
  os.execute("mkdir -p " .. build .. "/conformance/log")
  return ("%s/conformance/log/%s.log"):format(build, name:gsub("%W", "-"))
end

-- Counts how often the scheduler kept this process waiting.
local stalls = 0
local function watch_stalls()
  local due
  uv.new_timer():start(20, 20, function()
    local now = task.now()
    if due and now > due + STALL_MS then stalls = stalls + 1 end
    due = now + 20
  end)
end

local function find(list, name)
  for _, entry in ipairs(list) do
    if entry.name == name then return entry end
  end
  error(("%s is unknown"):format(name), 0)
end

-- ---------------------------------------------------------------------------------------- runs

local function settings_for(farm, run)
  return { farm = farm, kind = run.kind, ours = find(adapters, os.getenv("OURS") or "redlock"),
    log = log_of(run.kind.name), deadline = run.deadline or DEADLINE,
    settle = run.settle, seconds = run.seconds or tonumber(os.getenv("CONFORMANCE_SECONDS")) or 3,
    clockshim = uv.fs_realpath(build .. "/chaos/chaos_clockshim.so") or "" }
end

-- Runs several runs at once, each worker on nodes of its own. Calls done(run, verdict, text).
local function run_all(runs, done)
  local farms = {}
  task.each(runs, tonumber(os.getenv("CONFORMANCE_WIDTH")) or 4, function(run, worker)
    if not farms[worker] then
      local path = ("%s/%d"):format(directory, worker)
      assert(uv.fs_mkdir(path, 448))
      farms[worker] = Farm.new(NODES, path)
    end
    local farm = farms[worker]
    farm:ask_all("FLUSHALL")
    farm:ask_all("SCRIPT", "FLUSH")
    if run.statement.several and run.kind.nodes == 1 then
      return done(run, "none", "one node")
    end
    for attempt = 1, REPEATS do
      local stalls_before = stalls
      local verdict, text = World.judge(settings_for(farm, run), run.statement)
      local good = not run.is_good or run.is_good(verdict, text)
      if good or stalls == stalls_before or attempt == REPEATS then return done(run, verdict, text) end
      print(("# %s: %s is repeated after a stall (%s)"):format(run.kind.name, run.statement.name, text))
      farm:ask_all("FLUSHALL")
    end
  end)
end

local function report(good, name, text)
  failures = failures + (good and 0 or 1)
  print(("%s - %s%s"):format(good and "ok" or "not ok", name, text ~= "" and ": " .. text or ""))
  io.flush()
end

local function is_promised(kind, statement)
  local unpromised = UNPROMISED[kind.name]
  return not (unpromised and unpromised[statement.name])
end

-- A wrong variant of the example adapter.
local function wrong(defect)
  local command = { table.unpack(find(adapters, "plain").command) }
  command[#command + 1] = defect
  return { name = "plain:" .. defect, command = command }
end

-- Controls: the statement must fail, and not because a call did not end, unless it must hang.
local function control_runs(runs)
  for _, control in ipairs(controls) do
    for index = 2, #control do
      local list = control.interop and interop or statements
      table.insert(runs, { kind = wrong(control[1]), control = control, statement = find(list, control[index]),
        deadline = control.hangs and HANG_DEADLINE, settle = 1000, seconds = 60,
        is_good = function(verdict, text)
          return verdict == "fails" and (text:find("did not end", 1, true) ~= nil) == (control.hangs or false)
        end })
    end
  end
end

local function own_runs(runs, kind, list)
  for _, statement in ipairs(list) do
    table.insert(runs, { kind = kind, statement = statement, is_good = function(verdict)
      return verdict == (is_promised(kind, statement) and "holds" or "fails")
    end })
  end
end

local function quick()
  local runs = {}
  for _, kind in ipairs(adapters) do
    if kind.own then own_runs(runs, kind, statements) end
  end
  own_runs(runs, find(adapters, "plain"), interop)
  control_runs(runs)
  run_all(runs, function(run, verdict, text)
    local name = run.kind.name .. ": " .. run.statement.name
    local good = run.is_good(verdict, text)
    if run.control then
      report(good, name, good and "" or ("the control was not detected (%s %s)"):format(verdict, text))
    else
      report(good, name, verdict == "holds" and "" or verdict .. ": " .. text)
    end
  end)
end

local function one_line(text) return (text:gsub("%s+", " ")) end

-- Returns the rows of a file of results by library and statement.
local function read_rows(path)
  local rows = {}
  local file = path and io.open(path)
  for line in file and file:lines() or function() end do
    local library, statement = line:match("^([^\t]*)\t([^\t]*)")
    if library ~= "library" then rows[library .. "\t" .. statement] = line end
  end
  if file then file:close() end
  return rows
end

local function write_rows(path, rows)
  local list = {}
  for _, line in pairs(rows) do list[#list + 1] = line:match("^(.-)%s*$") end
  table.sort(list)
  local file = assert(io.open(path, "w"))
  file:write("library\tstatement\tverdict\tobservation\n", table.concat(list, "\n"), "\n")
  file:close()
end

-- Runs and prints. Returns the rows of the results by library and statement.
local function reported(runs)
  local rows = {}
  run_all(runs, function(run, verdict, text)
    local name = run.kind.name .. ": " .. run.statement.name
    print(("%-10s %s%s"):format(verdict, name, text ~= "" and ": " .. text or ""))
    io.flush()
    local id = run.kind.name .. "\t" .. run.statement.name
    rows[id] = ("%s\t%s\t%s"):format(id, verdict, one_line(text))
  end)
  for _, kind in ipairs(adapters) do
    if kind.version then rows[kind.name .. "\t@version"] = kind.name .. "\t@version\t" .. kind.version .. "\t" end
  end
  return rows
end

-- Runs statements with each library that wanted(kind) selects. With ONLY, the file keeps the
-- results of earlier runs.
local function all(list, wanted, path)
  local runs, only = {}, os.getenv("ONLY") or ""
  for _, kind in ipairs(adapters) do
    for _, statement in ipairs(list) do
      local is_named = only == "" or only == kind.name or only == statement.name
      if wanted(kind) and is_named then table.insert(runs, { kind = kind, statement = statement }) end
    end
  end
  local rows = only == "" and {} or read_rows(path)
  for id, row in pairs(reported(runs)) do rows[id] = row end
  if path then write_rows(path, rows) end
end

local function some(names)
  local runs = {}
  for _, word in ipairs(names) do
    local name, only = word:match("^([^=]+)=?(.*)$")
    local defect = name:match("^plain:(.+)$")
    local kind = defect and wrong(defect) or find(adapters, name)
    for _, statement in ipairs(statements) do
      if only == "" or only == statement.name then table.insert(runs, { kind = kind, statement = statement }) end
    end
  end
  reported(runs)
end

local function own_adapter(only, command)
  local runs = {}
  for _, statement in ipairs(statements) do
    if only == "all" or only == statement.name then
      local kind = { name = "adapter", command = command, nodes = tonumber(os.getenv("NODES")) }
      table.insert(runs, { kind = kind, statement = statement })
    end
  end
  reported(runs)
end

-- ---------------------------------------------------------------------------------------- main

local function finish(status)
  Farm.kill_all()
  os.execute("rm -rf " .. directory)
  os.exit(status)
end
uv.new_signal():start("sigpipe", function() end) -- an adapter may end at any time
for _, signal in ipairs { "sigint", "sigterm", "sighup" } do
  uv.new_signal():start(signal, function() finish(130) end)
end

task.start(function()
  local ok, message = xpcall(function()
    watch_stalls()
    if arg[1] == "quick" then quick()
    elseif arg[1] == "all" then all(statements, function(kind) return not kind.interop end, arg[2])
    elseif arg[1] == "interop" then all(interop, function(kind) return not kind.own end, arg[2])
    elseif arg[1] == "command" then own_adapter(arg[2], { table.unpack(arg, 3) })
    else some(arg) end
  end, debug.traceback)
  if not ok then
    print("not ok - " .. tostring(message))
    failures = failures + 1
  end
  finish(failures == 0 and 0 or 1)
end)
uv.run()
