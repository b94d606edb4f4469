-- A mutation run over the decision lines of the core: changes one operator or one truth value at a time,
-- and sees whether a test notices: the simulator first, then the unit tests.
--
--     lua build-aux/sim_mutants.lua [file ...]        [all that decide]
--
-- The figures are one line per file, then their sum. Mutants that survive are printed; those that are
-- known to change nothing are listed, with the reason, in csrc/test/sim/equivalent.lua, and any other
-- fails the run. So does a file whose tests fail before anything is changed.
--
-- What does not compile, or compiles to the same code, is no mutant.
-- A failed assertion and a crash are kills. So is a program that does not end within 10 s of processor
-- time, whatever else the machine does; how many those were is said. Waiting costs no such time, so a
-- program that waits is ended after 300 s. Nothing but rl_oom looks at a real clock: it must fail twice.
-- Environment: CC, HIREDIS_CFLAGS, HIREDIS_LIBS, CMOCKA_LIBS, SEEDS (of the simulator [600], 0: unit tests
-- only), STATEMENTS=1 to drop statements, too.
--
-- SPDX-License-Identifier: MIT

local CC = os.getenv("CC") or "cc"
local HIREDIS_CFLAGS = os.getenv("HIREDIS_CFLAGS") or ""
local HIREDIS_LIBS = os.getenv("HIREDIS_LIBS") or "-lhiredis"
local CMOCKA_LIBS = os.getenv("CMOCKA_LIBS") or "-lcmocka"
local SEEDS = tonumber(os.getenv("SEEDS") or 600)
local FIRST_SEEDS = math.min(SEEDS, 60) -- before the unit tests; the others after them
local FILES = { "rl_quorum.c", "rl_validity.c", "rl_time.h", "rl_timers.c", "rl_lock_queue.c", "rl_token.c",
  "rl_reply.c", "rl_options.c", "rl_attempt.c", "rl_message.c", "rl_command.c", "rl_buffer.c", "rl_node.c", "rl_core.c",
  "rl_lock.c" } -- rl_address.c reads configuration and is fuzzed; rl_error.c is a table
local STATEMENTS = os.getenv("STATEMENTS")
local UNITS = "rl_lock_acquire rl_lock_extend rl_lock_release rl_lock_nodes rl_lock_retry rl_core rl_node rl_quorum "
  .. "rl_validity rl_options rl_attempt rl_time rl_timers rl_token rl_reply rl_lock rl_regression rl_message "
  .. "rl_command rl_buffer rl_oom"

local OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " != " }, { " != ", " == " },
  { " && ", " || " }, { " || ", " && " }, { " + 1", " + 2" }, { " - ", " + " }, { "&= ~", "|= " }, { "|= ", "&= ~" },
  { "true", "false" }, { "false", "true" }, { "(!", "(" }, { "rl_time_min(", "rl_time_max(" },
  { "rl_time_max(", "rl_time_min(" }, { "++", "--" }, { "_GRANTED", "_TAKEN" }, { "_TAKEN", "_GRANTED" },
}

local changed_tree = dofile("build-aux/changed_tree.lua")
local run, must, write = changed_tree.run, changed_tree.must, changed_tree.write

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

-- What says nothing to a caller or a node is not a decision.
local function decides(line, inside)
  return inside and not (line:find("assert(", 1, true) or line:find("snprintf", 1, true) or line:find("^%s*/?%*")
    or line:find("^%s*for ") or line:find("^#") or line:find('^%s*"') or line:find("^%s*case ")
    or line:find("^%s*default") or line:find("^static ") or line:find("^}"))
end

-- The mutants of a line, each as the line that stands in its place.
local function mutants_of(line)
  local made = {}
  local code = line:gsub("%s*/%*.-%*/", "")
  for _, operator in ipairs(OPERATORS) do
    local from = 1
    while true do
      local first, last = code:find(operator[1], from, true)
      if not first then
        break
      end
      made[#made + 1] = code:sub(1, first - 1) .. operator[2] .. code:sub(last + 1)
      from = last + 1
    end
  end
  if not STATEMENTS then
    return made
  end
  if code:find("^%s+[%w_]+[%w_%->%.%[%]]*[^=]*;$") and not code:find("^%s*return") and not code:find("^%s*break")
    and not code:find("^%s*continue") and not code:find("^%s+[%w_]+ %*?[%w_]+ =")
    and not code:find("^%s+[%w_]+ %*?[%w_]+;$")
    or code:find("^%s+[%w_%->%.%[%]%*]+ [|&%-+]?= [^=]*;$") then
    made[#made + 1] = code:match("^%s*") .. ";"
  end
  return made
end

local scratch = must("mktemp -d"):match("%S+")
local CORE = scratch .. "/core" -- a copy, which is changed
local INCLUDES = " -Icsrc/include -I" .. CORE .. " -Icsrc/driver -Icsrc/test/lib -Icsrc/test/sim " .. HIREDIS_CFLAGS

local function compile(source, object, level)
  return CC .. " -std=c11 -D_GNU_SOURCE -pthread -w -fPIC " .. level .. INCLUDES .. " -c -o " .. object .. " " .. source
end

local function wraps(source)
  local options = ""
  for name in run("grep -oh '__wrap_[A-Za-z0-9_]*' " .. source .. " | sort -u"):gmatch("__wrap_(%w+)") do
    options = options .. " -Wl,--wrap=" .. name
  end
  return options
end

-- Compiles every file; returns the names of the objects.
local function compile_all(sources, level)
  local objects = {}
  for source in must("ls " .. sources):gmatch("%S+") do
    local object = scratch .. "/" .. source:gsub("/", "_"):gsub("%.c$", ".o")
    must(compile(source, object, level))
    objects[#objects + 1] = object
  end
  return objects
end

-- The core and the driver are a shared library: a mutant is linked once, for all programs.
local function link_core(made)
  return CC .. " -shared -o " .. scratch .. "/libcore.so " .. table.concat(made.core, " ") .. " " .. made.driver
end

local function build_unit(made, name)
  local source, program = "csrc/test/unit/" .. name .. "_test.c", scratch .. "/" .. name .. "_test"
  must(CC .. " -pthread" .. wraps(source) .. " -o " .. program .. " " .. compile_all(source, "-O1")[1] .. " "
    .. made.helpers .. made.libraries .. " " .. CMOCKA_LIBS)
  return { name = name, program = program }
end

local function build()
  must("mkdir " .. CORE .. " && cp csrc/core/* " .. CORE)
  local made = { core = compile_all(CORE .. "/rl_*.c", "-O1"), units = {} }
  made.driver = table.concat(compile_all("csrc/driver/rl_*.c", "-O1"), " ")
  must(link_core(made))
  made.libraries = " -L" .. scratch .. " -Wl,-rpath," .. scratch .. " -lcore " .. HIREDIS_LIBS .. " -pthread -lm"
  local simulator = table.concat(compile_all("csrc/test/sim/*.c", "-O2"), " ")
  must(CC .. " -o " .. scratch .. "/sim " .. simulator .. made.libraries)
  made.helpers = table.concat(compile_all("csrc/test/lib/*.c", "-O1"), " ")
  for name in UNITS:gmatch("%S+") do
    made.units[#made.units + 1] = build_unit(made, name)
  end
  return made
end

-- Those of the file itself first.
local function units_of(made, file)
  local name, own, others = file:gsub("%.[ch]$", ""), {}, {}
  for _, unit in ipairs(made.units) do
    table.insert(unit.name:find(name, 1, true) == 1 and own or others, unit)
  end
  for _, unit in ipairs(others) do
    own[#own + 1] = unit
  end
  return own
end

-- Whether the program fails, and whether that is because it does not end.
local function fails(command)
  local _, status = run("ulimit -c 0; ulimit -t 10; timeout -k 1 300 " .. command)
  return status ~= 0, status == 124 or status == 137 or status == 152
end

local function simulator_fails(first, seeds)
  if seeds <= 0 then
    return false
  end
  return fails(("%s/sim --seed %d --runs %d"):format(scratch, first, seeds))
end

-- Who notices: "simulator", "units"; nil when nobody does; and whether a program did not end.
local function noticed(units)
  local failed, hung = simulator_fails(1, FIRST_SEEDS)
  if failed then
    return "simulator", hung
  end
  for _, unit in ipairs(units) do
    failed, hung = fails(unit.program)
    if failed and unit.name == "rl_oom" then
      failed, hung = fails(unit.program)
    end
    if failed then
      return "units", hung
    end
  end
  failed, hung = simulator_fails(FIRST_SEEDS + 1, SEEDS - FIRST_SEEDS)
  if failed then
    return "simulator", hung
  end
  return nil
end

-- As noticed(), for the changed text of a file; or "compiler". |original| is what the file compiles to.
local function killer(made, units, file, text, original)
  write(CORE .. "/" .. file, text)
  local header = file:find("%.h$")
  local compiled, made_of = pcall(compile_all, CORE .. (header and "/rl_*.c" or "/" .. file), "-O1")
  if not compiled or (original and select(2, run("cmp -s " .. made_of[1] .. " " .. original)) == 0) then
    return "compiler"
  end
  must(link_core(made))
  if header and units[1] then -- Its own test has what is inline in it, too.
    build_unit(made, units[1].name)
  end
  return noticed(units)
end

-- The entry of the list that excuses the mutant.
local function known(equivalent, line, mutant)
  for _, one in ipairs(equivalent) do
    if line:find(one.line, 1, true) and mutant:find(one.mutant, 1, true) then
      return one
    end
  end
  return nil
end

-- Calls visit(number, line, mutant, text) for every mutant of a file.
local function each_mutant(lines, visit)
  local inside = false
  for number, line in ipairs(lines) do
    if line:find("^[%w_].*{$") or (line:find("^ .*%) {$") and not inside) then
      inside = true
    elseif line:find("^}") then
      inside = false
    elseif decides(line, inside) then
      for _, mutant in ipairs(mutants_of(line)) do
        lines[number] = mutant
        local text = table.concat(lines, "\n") .. "\n"
        lines[number] = line
        visit(number, line, mutant, text)
      end
    end
  end
end

local function say(name, count)
  local total = "%-15s %3d mutants: %3d killed by the simulator, %3d by unit tests, %2d equivalent, %d survived; "
  local sum = count.simulator + count.units + count.excused + count.survived
  print((total .. "%d of those killed did not end"):format(name, sum, count.simulator, count.units, count.excused,
    count.survived, count.hung))
  io.flush()
end

local function mutate(made, equivalent, file)
  local count = { simulator = 0, units = 0, compiler = 0, hung = 0, excused = 0, survived = 0 }
  local units = units_of(made, file)
  local lines = lines_of("csrc/core/" .. file)
  local original = table.concat(lines, "\n") .. "\n"
  if killer(made, units, file, original) then
    error(file .. ": the tests fail without any change", 0)
  end
  local compiled = not file:find("%.h$") and scratch .. "/original.o"
  if compiled then
    must("cp " .. compile_all(CORE .. "/" .. file, "-O1")[1] .. " " .. compiled)
  end
  each_mutant(lines, function(number, line, mutant, text)
    local by, hung = killer(made, units, file, text, compiled)
    local excuse = known(equivalent, line, mutant)
    count.hung = count.hung + (hung and 1 or 0)
    if excuse and (by == nil or by == "compiler") then
      excuse.used = true
    end
    if by then
      count[by] = count[by] + 1
    elseif excuse then
      count.excused = count.excused + 1
    else
      count.survived = count.survived + 1
      io.write(("survived - %s:%d\n    - %s\n    + %s\n"):format(file, number, line:match("^%s*(.*)$"),
        mutant:match("^%s*(.*)$")))
      io.flush()
    end
  end)
  assert(not killer(made, { units[1] }, file, original))
  for _, one in ipairs(equivalent) do
    if original:find(one.line, 1, true) and not one.used and not STATEMENTS then
      print(("not needed - %s: %s -> %s"):format(file, one.line, one.mutant))
      count.survived = count.survived + 1 -- A list with too much in it excuses what nobody has looked at.
    end
  end
  return count
end

local function main()
  local equivalent = dofile("csrc/test/sim/equivalent.lua")
  local core, stale = must("cat csrc/core/*"), {}
  for _, one in ipairs(equivalent) do
    if not core:find(one.line, 1, true) then
      stale[#stale + 1] = one.line
    end
  end
  if #stale > 0 then
    error("equivalent.lua has lines that are not there any more:\n  " .. table.concat(stale, "\n  "), 0)
  end
  local made = build()
  local all = { simulator = 0, units = 0, hung = 0, excused = 0, survived = 0 }
  for _, file in ipairs(#arg > 0 and arg or FILES) do
    local count = mutate(made, equivalent, file)
    for name, number in pairs(all) do
      all[name] = number + count[name]
    end
    say(file, count)
  end
  say("together", all)
  return all.survived == 0
end

changed_tree.finish({ directory = scratch }, main)
