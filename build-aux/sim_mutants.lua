-- A mutation run over the decision lines of the core: changes one operator or one truth value at a time,
-- and sees whether a test notices: the simulator first, then the unit tests.
--
--     lua build-aux/sim_mutants.lua [file.c ...]        [all that decide]
--
-- Mutants that survive are printed; those that are known to change nothing are listed, with the
-- reason, in csrc/test/sim/equivalent.lua, and any other fails the run.
-- Environment: CC, HIREDIS_CFLAGS, HIREDIS_LIBS, CMOCKA_LIBS, SEEDS (of the simulator [600]), STATEMENTS=1
-- to drop statements, too.
--
-- SPDX-License-Identifier: MIT

local CC = os.getenv("CC") or "cc"
local HIREDIS_CFLAGS = os.getenv("HIREDIS_CFLAGS") or ""
local HIREDIS_LIBS = os.getenv("HIREDIS_LIBS") or "-lhiredis"
local CMOCKA_LIBS = os.getenv("CMOCKA_LIBS") or "-lcmocka"
local SEEDS = os.getenv("SEEDS") or "600"
local FILES = { "rl_quorum.c", "rl_validity.c", "rl_lock.c", "rl_core.c", "rl_node.c", "rl_options.c", "rl_attempt.c" }
local STATEMENTS = os.getenv("STATEMENTS")
local UNITS = "rl_lock_acquire rl_lock_extend rl_lock_release rl_lock_nodes rl_lock_retry rl_core rl_node rl_quorum "
  .. "rl_validity rl_options rl_attempt rl_lock rl_regression rl_oom"

local OPERATORS = {
  { " >= ", " > " }, { " > ", " >= " }, { " <= ", " < " }, { " < ", " <= " }, { " == ", " != " }, { " != ", " == " },
  { " && ", " || " }, { " || ", " && " }, { " + 1", " + 2" }, { " - ", " + " }, { "&= ~", "|= " }, { "|= ", "&= ~" },
  { "true", "false" }, { "false", "true" }, { "(!", "(" }, { "rl_time_min(", "rl_time_max(" },
  { "rl_time_max(", "rl_time_min(" }, { "++", "--" }, { "_GRANTED", "_TAKEN" }, { "_TAKEN", "_GRANTED" },
}

local function run(command)
  local pipe = assert(io.popen("( " .. command .. " ) 2>&1; echo \"status $?\""))
  local text = pipe:read("*a")
  pipe:close()
  local output, status = text:match("^(.*)status (%d+)%s*$")
  return output, tonumber(status)
end

local function must(command)
  local output, status = run(command)
  if status ~= 0 then
    error(command .. "\n" .. output, 0)
  end
  return output
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

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
    and not code:find("^%s*continue") and not code:find("^%s+[%w_]+ %*?[%w_]+ =") and not code:find("^%s+[%w_]+ %*?[%w_]+;$")
    or code:find("^%s+[%w_%->%.%[%]%*]+ [|&%-+]?= [^=]*;$") then
    made[#made + 1] = code:match("^%s*") .. ";"
  end
  return made
end

local scratch = must("mktemp -d"):match("%S+")
local INCLUDES = " -Icsrc/include -Icsrc/core -Icsrc/driver -Icsrc/test -Icsrc/test/sim " .. HIREDIS_CFLAGS

local function compile(source, object, level)
  return CC .. " -std=c11 -D_GNU_SOURCE -pthread -w " .. level .. INCLUDES .. " -c -o " .. object .. " " .. source
end

local function wraps(source)
  local options = ""
  for name in run("grep -oh '__wrap_[A-Za-z0-9_]*' " .. source .. " | sort -u"):gmatch("__wrap_(%w+)") do
    options = options .. " -Wl,--wrap=" .. name
  end
  return options
end

local function build()
  local made = { core = {}, sim = {}, helpers = {}, units = {} }
  local function all(pattern, list, level)
    for source in must("ls " .. pattern):gmatch("%S+") do
      local object = scratch .. "/" .. source:gsub("/", "_"):gsub("%.c$", ".o")
      must(compile(source, object, level))
      list[#list + 1] = { source = source, object = object }
    end
  end
  all("csrc/core/rl_*.c", made.core, "-O1")
  all("csrc/driver/rl_*.c", made.core, "-O1")
  all("csrc/test/sim/*.c", made.sim, "-O2")
  all("csrc/test/*.c | grep -v '_test\\.c$' | grep -v _fuzz", made.helpers, "-O1")
  for name in UNITS:gmatch("%S+") do
    local source = "csrc/test/" .. name .. "_test.c"
    if select(2, run("test -e " .. source)) == 0 then
      all(source, made.units, "-O1")
    end
  end
  for _, test in ipairs(made.units) do
    test.wraps = wraps(test.source)
  end
  return made
end

local function objects(list, instead, by)
  local names = {}
  for _, one in ipairs(list) do
    names[#names + 1] = one.source == instead and by or one.object
  end
  return table.concat(names, " ")
end

-- Who notices: "simulator", a unit test, "compiler"; nil when nobody does.
local function killer(made, source, text)
  local changed, object = scratch .. "/mutant.c", scratch .. "/mutant.o"
  write(changed, text)
  if select(2, run(compile(changed, object, "-O1"))) ~= 0 then
    return "compiler"
  end
  local core = objects(made.core, source, object)
  must("rm -f " .. scratch .. "/core.a && ar rcs " .. scratch .. "/core.a " .. core)
  must(CC .. " -o " .. scratch .. "/sim " .. objects(made.sim) .. " " .. scratch .. "/core.a " .. HIREDIS_LIBS .. " -pthread -lm")
  if select(2, run("timeout -k 1 60 " .. scratch .. "/sim --runs " .. SEEDS)) ~= 0 then
    return "simulator"
  end
  for _, test in ipairs(made.units) do
    must(CC .. " -pthread" .. test.wraps .. " -o " .. scratch .. "/unit " .. test.object .. " " .. objects(made.helpers)
      .. " " .. scratch .. "/core.a " .. CMOCKA_LIBS .. " " .. HIREDIS_LIBS .. " -lm")
    if select(2, run("timeout -k 1 60 " .. scratch .. "/unit")) ~= 0 then
      return "unit tests"
    end
  end
  return nil
end

local function known(equivalent, file, line, mutant)
  for _, one in ipairs(equivalent) do
    if one.file == file and line:find(one.line, 1, true) and mutant:find(one.mutant, 1, true) then
      return one.why
    end
  end
  return nil
end

local function main()
  local exists, equivalent = pcall(dofile, "csrc/test/sim/equivalent.lua")
  equivalent = exists and equivalent or {}
  local made = build()
  local killed, survived, excused, total = {}, 0, 0, 0
  for _, file in ipairs(#arg > 0 and arg or FILES) do
    local source = "csrc/core/" .. file
    local lines = lines_of(source)
    local inside = false
    for number, line in ipairs(lines) do
      if line:find("^[%w_].*{$") or (line:find("^ .*%) {$") and not inside) then
        inside = true
      elseif line:find("^}") then
        inside = false
      elseif decides(line, inside) then
        for _, mutant in ipairs(mutants_of(line)) do
          lines[number] = mutant
          local by = killer(made, source, table.concat(lines, "\n") .. "\n")
          lines[number] = line
          local why = not by and known(equivalent, file, line, mutant)
          if by ~= "compiler" then
            total = total + 1
          end
          if by then
            killed[by] = (killed[by] or 0) + 1
          elseif why then
            excused = excused + 1
          else
            survived = survived + 1
            io.write(("survived - %s:%d\n    - %s\n    + %s\n"):format(file, number, line:match("^%s*(.*)$"),
              mutant:match("^%s*(.*)$")))
            io.flush()
          end
        end
      end
    end
  end
  print(("%d mutants: %d killed by the simulator, %d by unit tests, %d equivalent, %d survived"):format(total,
    killed.simulator or 0, killed["unit tests"] or 0, excused, survived))
  return survived == 0
end

local ok, result = pcall(main)
run("rm -rf " .. scratch)
if not ok then
  io.stderr:write(tostring(result), "\n")
end
os.exit(ok and result and 0 or 1)
