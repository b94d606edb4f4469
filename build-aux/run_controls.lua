-- Runs the negative controls (csrc/test/controls.lua): each must be detected by its observer.
--
--     lua build-aux/run_controls.lua check                  its changes have their places in the core
--     lua build-aux/run_controls.lua list chaos             names, and the violation that the chaos checker must report
--     lua build-aux/run_controls.lua simulator [name ...]   by the simulator
--     lua build-aux/run_controls.lua replay [name ...]      by the random walks of the model
--
-- The table of checkers is written to build/controls-simulator.md, build/controls-replay.md.
-- Only the changed file of a control is compiled, and linked with the objects that are there.
-- Environment, which the Makefile sets: COMPILE, the command without sources; OBJECTS of the
-- observer, LIBS, BUILD; SEEDS, how many the simulator may need [10000]; WALKS, how many the replay
-- may need [20000]; ONLY, one checker: then survivors are only reported;
-- ARGUMENTS of the simulator, such as --labels;
-- JOBS, how many processes share the controls [1]; PART, which of them this one has ("1/2").
--
-- SPDX-License-Identifier: MIT

local changed_tree = dofile("build-aux/changed_tree.lua")
local controls = dofile("build-aux/read_controls.lua")

local SEEDS = os.getenv("SEEDS") or "10000"
local WALKS = os.getenv("WALKS") or "20000"
local ONLY = os.getenv("ONLY")
local ARGUMENTS = os.getenv("ARGUMENTS") or ""
local JOBS = tonumber(os.getenv("JOBS")) or 1
local PART = os.getenv("PART")

local BUILD = os.getenv("BUILD") or "build"
local PROGRAMS = { simulator = BUILD .. "/sim/sim", replay = BUILD .. "/model/model_replay" }

-- Returns the source of an object, and true if its list of dependencies has a file.
local function source_of(object)
  return (object:gsub("^.*/obj/", "csrc/"):gsub("^" .. BUILD .. "/", "csrc/test/"):gsub("csrc/test/test/", "csrc/test/")
    :gsub("%.o$", ".c"))
end

local function depends(object, path)
  return (" " .. changed_tree.read((object:gsub("%.o$", ".d"))) .. " "):find("%s" .. path:gsub("%p", "%%%0") .. "[%s:]")
end

-- The core in a directory of this process, in which files are changed.
local workshop = {}
workshop.__index = workshop

local function open_workshop(observer)
  local directory = ("%s/controls/%s-%s"):format(BUILD, observer, (PART or "all"):gsub("/", "-"))
  changed_tree.must(("rm -rf %s && mkdir -p %s && cp -r csrc/core %s/core"):format(directory, directory, directory))
  return setmetatable({ directory = directory, observer = observer, program = directory .. "/program" }, workshop)
end

function workshop:write(texts)
  for path in pairs(texts) do
    changed_tree.write(self.directory .. path:gsub("^csrc", ""), texts[path])
  end
end

-- Compiles the objects that depend on the changed files, and links. Returns the program; or nil,
-- and the compiler's output.
function workshop:build(texts)
  local objects, commands = {}, { "set -e" }
  self:write(texts)
  for object in os.getenv("OBJECTS"):gmatch("%S+") do
    local source, stale = source_of(object), false
    for path in pairs(texts) do
      stale = stale or depends(object, path)
    end
    if stale then
      local mine = source:gsub("^csrc/core/", self.directory .. "/core/")
      objects[#objects + 1] = self.directory .. "/" .. source:gsub("/", "-"):gsub("c$", "o")
      commands[#commands + 1] = ("%s -iquote %s/core -c -o %s %s"):format(os.getenv("COMPILE"), self.directory,
        objects[#objects], mine)
    else
      objects[#objects + 1] = object
    end
  end
  commands[#commands + 1] = ("%s -o %s %s %s"):format(os.getenv("COMPILE"), self.program, table.concat(objects, " "),
    os.getenv("LIBS"))
  local output, status = changed_tree.run(table.concat(commands, "\n"))
  for path in pairs(texts) do
    texts[path] = changed_tree.read(path)
  end
  self:write(texts)
  return status == 0 and self.program or nil, output
end

-- Returns the checker that detected the control, the number of runs, and the violation; or nil and
-- the output.
local function simulate(program, control)
  local options = (control.switch and " --break " .. control.name or "") .. (ONLY and " --only " .. ONLY or "")
    .. (control.by.arguments and " " .. control.by.arguments or "") .. " " .. ARGUMENTS
  local output = changed_tree.run("timeout 1200 " .. program .. " --runs " .. SEEDS .. options)
  local checker, seeds = output:match("caught by (%w+) within (%d+) seeds")
  if checker == "assertion" then
    return "an assertion of the core", seeds, output:match("Assertion [^\n]*")
  elseif checker then
    return checker, seeds, output:match("seed %d+: %w+: ([^\n]*)")
  end
  return nil, output
end

local function replay(program)
  local output, status = changed_tree.run("timeout 1200 " .. program .. " --only-walks --walks " .. WALKS)
  local walks = output:match("not ok %- replay: (%d+) random walks")
  if status == 1 and walks then
    return "a difference", walks, output:match("([^\n]*)\nnot ok %- replay")
  elseif status == 134 then
    return "an assertion of the core", "-", output:match("Assertion [^\n]*")
  end
  return nil, output
end

-- Those of |list| that |observer| must notice, and that are wanted.
local function chosen(list, observer, names)
  local wanted, found, known = {}, {}, {}
  for _, name in ipairs(names) do
    wanted[name] = true
  end
  for _, control in ipairs(list) do
    if control.by[observer] and (#names == 0 or wanted[control.name]) then
      found[#found + 1] = control
      known[control.name] = true
    end
  end
  for _, name in ipairs(names) do
    assert(known[name], name .. ": there is no such control of the " .. observer)
  end
  return found
end

local function observe(shop, control)
  local program, trouble = PROGRAMS[shop.observer], nil
  if next(control.texts) then
    program, trouble = shop:build(control.texts)
  end
  if not program then
    return nil, trouble
  end
  return (shop.observer == "replay" and replay or simulate)(program, control)
end

-- A checker must detect at least one control. Returns true if all have.
local function all_checkers(noticed)
  local good = true
  for checker in changed_tree.must("ls csrc/test/sim/check_*.c"):gmatch("check_(%w+)%.c") do
    print(("# %s: %d"):format(checker, noticed[checker] or 0))
    if not noticed[checker] then
      print("not ok - no control makes the checker fail: " .. checker)
      good = false
    end
  end
  return good
end

-- The n-th of every |parts| controls.
local function part_of(list, part)
  local number, parts = part:match("^(%d+)/(%d+)$")
  local found = {}
  for i = tonumber(number), #list, tonumber(parts) do
    found[#found + 1] = list[i]
  end
  return found
end

-- Tells of each control of |list|, as the lines of a part that all() reads. Returns how many
-- survived.
local function each(shop, list)
  local survived = 0
  for _, control in ipairs(list) do
    local by, runs, said = observe(shop, control)
    if by then
      print(("ok - %s: %s, after %s runs: %s"):format(control.name, by, runs, (said or ""):sub(1, 110)))
    else
      survived = survived + 1
      print(("not ok - %s (%s) survived: %s"):format(control.name, control.what, runs:sub(-300)))
    end
    io.flush()
  end
  return survived
end

local SLOWEST = 10

-- Prints the controls that took most runs. |runs| maps names to numbers.
local function print_slowest(runs)
  local names = {}
  for name in pairs(runs) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b) return runs[a] > runs[b] or runs[a] == runs[b] and a < b end)
  for i = 1, math.min(SLOWEST, #names) do
    print(("# %6d runs: %s"):format(runs[names[i]], names[i]))
  end
end

-- Runs JOBS processes, and adds up their results. Returns true if all controls were detected.
local function all(observer, list)
  local pipes, lines, noticed, needed, seen = {}, {}, {}, {}, 0
  for job = 1, JOBS do
    pipes[job] = assert(io.popen(("PART=%d/%d %s %s %s"):format(job, JOBS, arg[-1], arg[0], observer)))
  end
  for job = 1, JOBS do
    for line in pipes[job]:lines() do
      print(line)
      io.flush()
      local name, by, runs = line:match("^ok %- (%S+): (.-), after (%S+) runs")
      if name then
        seen, noticed[by] = seen + 1, (noticed[by] or 0) + 1
        needed[name] = tonumber(runs)
        lines[name] = ("| %s | %s |"):format(by, runs)
      end
    end
    pipes[job]:close()
  end
  print(("# %d controls, %d survived; the slowest:"):format(#list, #list - seen))
  print_slowest(needed)
  local rows = { "| control | fault | detected by | after runs |", "| --- | --- | --- | ---: |" }
  for _, control in ipairs(list) do
    rows[#rows + 1] = lines[control.name] and ("| %s | %s %s"):format(control.name, control.what, lines[control.name])
  end
  changed_tree.run("mkdir -p build")
  changed_tree.write("build/controls-" .. observer .. ".md", table.concat(rows, "\n") .. "\n")
  return seen == #list and seen > 0 and (observer ~= "simulator" or all_checkers(noticed))
end

local observer, names = arg[1], {}
for i = 2, #arg do
  names[#names + 1] = arg[i]
end
local ok, list = pcall(controls.load)
if not ok then
  print("not ok - " .. list)
  os.exit(1)
elseif observer == "check" then
  print(("ok - %d controls: each change has one place in the core"):format(#list))
elseif observer == "list" then
  for _, control in ipairs(list) do
    if control.by.chaos then
      print(control.name .. " " .. control.by.chaos)
    end
  end
elseif observer == "simulator" or observer == "replay" then
  local wanted = chosen(list, observer, names)
  if #names == 0 and not PART and not ONLY then
    os.exit(all(observer, wanted) and 0 or 1)
  end
  wanted = PART and part_of(wanted, PART) or wanted
  if observer == "replay" and replay(PROGRAMS.replay) then
    print("not ok - the core as it is fails the replay")
    os.exit(1)
  end
  local survived = each(open_workshop(observer), wanted)
  if not PART then
    print(("# %d controls, %d survived"):format(#wanted, survived))
  end
  os.exit((survived == 0 or ONLY) and 0 or 1)
else
  print("usage: lua build-aux/run_controls.lua check | list chaos | simulator [name ...] | replay [name ...]")
  os.exit(2)
end
