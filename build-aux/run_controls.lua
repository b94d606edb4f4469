-- Runs the negative controls (csrc/test/controls.lua): every one must be noticed by whom it names.
--
--     lua build-aux/run_controls.lua check                  its changes have their places in the core
--     lua build-aux/run_controls.lua list chaos             names, and what the chaos checker must say
--     lua build-aux/run_controls.lua simulator [name ...]   by the simulator, or its unit test
--     lua build-aux/run_controls.lua replay [name ...]      by the random walks of the model
--
-- What each was noticed by is written to build/controls-simulator.md, build/controls-replay.md.
-- Environment: CC and what else the Makefile takes; SEEDS, how many the simulator may need [10000]; WALKS, how
-- many the replay may need [20000]; ONLY, one checker that is listened to alone: then survivors are only told; JOBS,
-- how many processes share the simulator's controls [1]; PART, which of them this one has ("1/2").
--
-- SPDX-License-Identifier: MIT

local changed_tree = dofile("build-aux/changed_tree.lua")
local controls = dofile("build-aux/controls.lua")

local SEEDS = os.getenv("SEEDS") or "10000"
local WALKS = os.getenv("WALKS") or "20000"
local ONLY = os.getenv("ONLY")
local JOBS = tonumber(os.getenv("JOBS")) or 1
local PART = os.getenv("PART")

-- What noticed the control, after how many runs, and what it said; or nil and the output.
local function simulate(tree, control)
  local options = (control.switch and " --break " .. control.name or "") .. (ONLY and " --only " .. ONLY or "")
    .. (control.by.arguments and " " .. control.by.arguments or "")
  local trouble, status = tree:make("build/sim/sim")
  if status ~= 0 then
    return nil, trouble
  end
  local output = tree:run("timeout 300 build/sim/sim --runs " .. SEEDS .. options)
  local checker, seeds = output:match("caught by (%w+) within (%d+) seeds")
  if checker == "assertion" then
    return "an assertion of the core", seeds, output:match("Assertion [^\n]*")
  elseif checker then
    return checker, seeds, output:match("seed %d+: %w+: ([^\n]*)")
  end
  return nil, output
end

local function replay(tree)
  tree:must_make("build/model/model_replay")
  local output, status = tree:run("timeout 300 build/model/model_replay --only-walks --walks " .. WALKS)
  local walks = output:match("not ok %- replay: (%d+) random walks")
  if status == 1 and walks then
    return "a difference", walks, output:match("([^\n]*)\nnot ok %- replay")
  elseif status == 134 then
    return "an assertion of the core", "-", output:match("Assertion [^\n]*")
  end
  return nil, output
end

local function unit(tree, control)
  local program = "build/test/" .. control.by.unit
  tree:must_make(program)
  local output, status = tree:run("timeout 60 " .. program)
  if status ~= 0 then
    return control.by.unit, "-", output:match("%[  FAILED  %] ([%w_]+)")
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
    local mine = control.by[observer] or (observer == "simulator" and control.by.unit)
    if mine and (#names == 0 or wanted[control.name]) then
      found[#found + 1] = control
      known[control.name] = true
    end
  end
  for _, name in ipairs(names) do
    assert(known[name], name .. ": there is no such control of the " .. observer)
  end
  return found
end

local function observe(tree, observer, control)
  tree:change(control.texts)
  local by, runs, said
  if observer == "replay" then
    by, runs, said = replay(tree)
  elseif control.by.unit then
    by, runs, said = unit(tree, control)
  else
    by, runs, said = simulate(tree, control)
  end
  tree:restore()
  return by, runs, said
end

-- A checker that no control has made to fail is not known to be one. Returns whether all have.
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

-- Tells of each control of |list|, as the lines of a part that all() reads. Returns how many survived.
local function each(tree, observer, list)
  local survived = 0
  for _, control in ipairs(list) do
    local by, runs, said = observe(tree, observer, control)
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

-- Runs JOBS processes, and counts what their lines tell. Returns whether all controls were noticed.
local function all(observer, list)
  local pipes, lines, noticed, slowest, seen = {}, {}, {}, 0, 0
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
        slowest = math.max(slowest, tonumber(runs) or 0)
        lines[name] = ("| %s | %s |"):format(by, runs)
      end
    end
    pipes[job]:close()
  end
  print(("# %d controls, %d survived; the slowest took %d runs"):format(#list, #list - seen, slowest))
  local rows = { "| control | what is wrong | noticed by | after runs |", "| --- | --- | --- | ---: |" }
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
  changed_tree.finish(changed_tree.copy("CFLAGS='-O1 -g'"), function(tree)
    if observer == "replay" and replay(tree) then
      error("the core as it is fails the replay", 0)
    end
    local survived = each(tree, observer, wanted)
    if not PART then
      print(("# %d controls, %d survived"):format(#wanted, survived))
    end
    return survived == 0 or ONLY
  end)
else
  print("usage: lua build-aux/run_controls.lua check | list chaos | simulator [name ...] | replay [name ...]")
  os.exit(2)
end
