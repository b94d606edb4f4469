-- A mutation run: changes one operator or one truth value at a time in the lines that decide, and
-- checks that a test detects it. csrc/test/mutants.lua lists the files and their tests.
--
--     lua build-aux/mutants.lua [file or directory ...]         [all of them]
--     lua build-aux/mutants.lua rl_lock.c:120,131 ...           these lines only
--     lua build-aux/mutants.lua check                           the lists are true to the tree: a second
--
-- Mutants that survive are printed. Those that are known to change nothing are listed, with the
-- reason, in csrc/test/equivalent.lua, by function and operator; any other fails the run. So does
-- an entry that is not needed, and a file whose tests fail before anything is changed. The figures
-- are written to build/mutants.md.
--
-- A change that does not compile, or compiles to the same code, is no mutant. A failed assertion
-- and a crash are kills. So is a program that uses more than 10 s of processor time, or takes five
-- times as long as it did before: their number is reported. Any test but the simulator must fail
-- twice. Environment: CC and other variables of the Makefile; JOBS, how many files at a time [2];
-- STATEMENTS=1 to drop statements, too; TESTS, which of the tests and in which order, by parts of
-- their names, for a first look [all]; WRAPPER, a prefix of each command that builds or tests, as
-- "nice -n 10"; REUSE=1, build/ is copied as well; VERBOSE. Every test runs in a network and a
-- process namespace of its own where that is allowed.
--
-- SPDX-License-Identifier: MIT

local changed_tree = dofile("build-aux/changed_tree.lua")
local mutate = dofile("build-aux/mutate.lua")
local must, read = changed_tree.must, changed_tree.read

local JOBS = os.getenv("JOBS") or "2"
local WRAPPER = os.getenv("WRAPPER") or ""
local STATEMENTS = os.getenv("STATEMENTS")
local TESTS = os.getenv("TESTS")
local SETTINGS = "CFLAGS=-O1"
local PLAN = dofile("csrc/test/mutants.lua")
local EQUIVALENT = dofile("csrc/test/equivalent.lua")
local EXCUSED_TESTS = 4 -- what is listed as equivalent is tried by so many
local COUNTS = { "mutants", "killed", "equivalent", "survived", "hung" }

-- ----------------------------------------------------------------------------------------- the plan

-- The rule of the plan for a file: the first whose pattern it has.
local function rule_of(path)
  for _, rule in ipairs(PLAN) do
    if path:find(rule.files) then
      return rule
    end
  end
  return nil
end

local function sources()
  return must("find csrc/core csrc/driver csrc/binding lua -name '*.[ch]' -o -name '*.lua' | sort"):gmatch("%S+")
end

-- The files that are named, each as "path" or, when only some lines were, as "path:12,40".
local function files_below(arguments)
  local paths = {}
  for path in sources() do
    local wanted, only = #arguments == 0, nil
    for _, argument in ipairs(arguments) do
      local place, numbers = argument:match("^(.-):([%d,]+)$")
      place = place or argument
      if path == place or path:sub(1, #place + 1) == place:gsub("/$", "") .. "/" or path:match("([^/]+)$") == place then
        wanted, only = true, numbers
      end
    end
    if wanted and rule_of(path) and not rule_of(path).none then
      paths[#paths + 1] = path .. (only and ":" .. only or "")
    end
  end
  return paths
end

-- The file, and the numbers of the lines, or nil.
local function of_name(named)
  return named:match("^[^:]+"), named:match(":(.*)$")
end

-- Returns true if an entry of the list of equivalents is for the mutant.
local function excuses(entry, mutant)
  return entry[1] == mutant.name and entry[2] == mutant.operator and (entry[3] or mutant.nth) == mutant.nth
    and mutant.path:find(entry.file or "", 1, true)
end

-- Finds entries of the list of equivalents that are for no operator, or for several, and files that
-- no rule is for.
local function check_lists()
  local files, faults = {}, {}
  for path in sources() do
    if not rule_of(path) then
      faults[#faults + 1] = path .. ": no rule of csrc/test/mutants.lua is for it"
    end
    files[path] = select(2, mutate.all(path, read(path), true))
  end
  for _, entry in ipairs(EQUIVALENT) do
    local found = 0
    for path, counts in pairs(files) do
      local count = path:find(entry.file or "", 1, true) and counts[entry[1]] and counts[entry[1]][entry[2]] or 0
      if count >= (entry[3] or 1) then
        found = found + (entry[3] and 1 or count)
      end
    end
    if found ~= 1 then
      faults[#faults + 1] = ("csrc/test/equivalent.lua: %s, %s%s is for %d operators"):format(entry[1], entry[2],
        entry[3] and ", " .. entry[3] or "", found)
    end
  end
  if #faults > 0 then
    error(table.concat(faults, "\n  "), 0)
  end
end

-- ---------------------------------------------------------------------------------------- the tests

local isolate = changed_tree.run("unshare -n -p -f --kill-child --mount-proc true")
isolate = isolate == ""
  and "unshare -n -p -f --kill-child --mount-proc sh -c 'ip link set lo up; exec \"$@\"' sh " or ""

-- How to build and run a test that the plan names: "simulator 1 60", "unit rl_x_test", "integration
-- x_test", "lua 5.4 rl_lua_x_test", "spec 5.4 spec/x_spec.lua", "luas 5.1", which is
-- spec/all_luas.lua.
local function test_of(tree, name)
  local kind, first, second = name:match("^(%S+) ?(%S*) ?(%S*)$")
  local test = { name = name, kind = kind, exact = kind == "simulator" }
  if kind == "simulator" then
    test.target, test.command = "build/sim/sim", ("build/sim/sim --seed %s --runs %s"):format(first, second)
  elseif kind == "unit" then
    test.target, test.command = "build/test/" .. first, "build/test/" .. first
  elseif kind == "integration" then
    test.target, test.command = "build/test/integration/" .. first, "build/test/integration/" .. first
  elseif kind == "lua" then
    test.target = ("LUA_VERSION=%s build/%s/test/%s"):format(first, first, second)
    test.command = ("build/%s/test/%s lua"):format(first, second) -- where redlock.lua is
  elseif kind == "spec" then
    test.target = "lua LUA_LIBRARY= LUA_VERSION=" .. first -- The library is for programs in C.
    test.command = ("make -s spec LUA_LIBRARY= LUA_VERSION=%s SPECS=%s %s %s"):format(first, second, tree.settings,
      "BUSTED_FLAGS='-o plainTerminal --no-keep-going '")
  elseif kind == "luas" then
    test.target = "lua LUA_LIBRARY= LUA_VERSION=" .. first
    test.command = "sh spec/all_luas.sh " .. first
  else
    error("csrc/test/mutants.lua: there is no such kind of test: " .. name, 0)
  end
  return test
end

-- Returns the flags with which busted runs only the failed spec of |output|; nil if there is none.
local function only_the_failed(output)
  local name = output:match("\nFailure %-> [^\n]+\n([^\n]+)\n") or output:match("\nError %-> [^\n]+\n([^\n]+)\n")
  return name and "--filter=" .. name:gsub("[^%w ]", "."):gsub(" ", ".")
end

-- Returns true if the test fails, true if it does not end, and the flags that run only the failed
-- part of a spec. |flags| are such.
local function fails(tree, test, flags)
  local output, status = tree:run(("ulimit -c 0; ulimit -t 10; %s timeout -k 1 %d %s%s%s"):format(WRAPPER,
    test.limit or 300, isolate, test.command, flags and (" BUSTED_FLAGS+=" .. flags) or ""))
  return status ~= 0, status == 124 or status == 137 or status == 152, status ~= 0 and only_the_failed(output) or nil
end

-- How long a test may take: five times what it takes without a change. nil, said once, when it
-- fails then.
local function limit_of(prototype, test)
  prototype:must_make(test.target)
  local started = os.time()
  if fails(prototype, test) and (test.exact or fails(prototype, test)) then
    print("not ok - without any change this fails, and is of no use: " .. test.name)
    return nil
  end
  return 10 + 5 * (os.time() - started)
end

-- Those of a rule that have |word| in their names, and are not in |list| yet, are added to it.
local function add_tests(list, tree, path, word)
  for _, entry in ipairs(rule_of(path)) do
    if entry:find(word, 1, true) and not list[entry] then
      list[#list + 1], list[entry] = test_of(tree, entry), true
    end
  end
end

-- Those of a rule, the test of the file itself first.
local function tests_of(tree, path)
  local list = {}
  if TESTS then
    for word in TESTS:gmatch("%S+") do
      add_tests(list, tree, path, word)
    end
  else
    add_tests(list, tree, path, path:match("([%w_]+)%.%w+$"))
    add_tests(list, tree, path, "")
  end
  return list
end

-- As fails(). On a busy machine a test may fail by itself: it must fail twice, and where real
-- servers are waited for it must pass without the change in between.
local function surely_fails(tree, prototype, test)
  for _ = 1, 3 do
    local failed, hung, only = fails(tree, test)
    if not failed or hung or test.exact then
      return failed, hung
    elseif only and fails(tree, test, only) then
      return true
    elseif test.kind ~= "integration" or not fails(prototype, test) then
      return fails(tree, test)
    end
  end
  return false
end

-- Where make leaves the object of a C file that a test is made of; nil of another.
local function object_of(path, test)
  local directory, name = path:match("^csrc/(%w+)/([%w_]+)%.c$")
  if not directory then
    return nil
  end
  local version = test.target:match("LUA_VERSION=(%S+)")
  return ("build/%s%s.o"):format(directory == "binding" and version .. "/obj/" or "obj/" .. directory .. "/", name)
end

-- Returns true if the object is the same as before the change, in the tree that nothing was changed
-- in.
local function is_same(tree, prototype, path, test)
  local object = object_of(path, test)
  return object and select(2, tree:run(("cmp -s %s %s/%s"):format(object, prototype.directory, object))) == 0
end

-- Returns the killer: a test of the first |most|, "compiler", or nil; and true if it did not end.
-- |tests| loses useless ones.
local function killer(tree, prototype, tests, path, most)
  local place = 0
  while place < math.min(most, #tests) do
    place = place + 1
    local test = tests[place]
    test.limit = test.limit or limit_of(prototype, test)
    if not test.limit then
      table.remove(tests, place)
      tests.useless = true
      return killer(tree, prototype, tests, path, most)
    end
    if select(2, tree:make(test.target)) ~= 0 then
      return "compiler"
    elseif place == 1 and is_same(tree, prototype, path, test) then
      return "compiler"
    end
    local failed, hung = surely_fails(tree, prototype, test)
    if failed then
      -- The killer of one mutant is likely to kill the next.
      table.remove(tests, place)
      table.insert(tests, 1, test)
      return test.name, hung
    end
  end
  return nil
end

-- ---------------------------------------------------------------------------------------- one file

local function excuse_of(mutant)
  for _, entry in ipairs(EQUIVALENT) do
    if excuses(entry, mutant) then
      return entry
    end
  end
  return nil
end

local function trim(text)
  return text:match("^%s*(.-)%s*$")
end

local function mutants_of(path, text, only)
  local wanted = {}
  for _, mutant in ipairs(mutate.all(path, text, STATEMENTS)) do
    if not only or ("," .. only .. ","):find("," .. mutant.number .. ",", 1, true) then
      wanted[#wanted + 1] = mutant
    end
  end
  return wanted
end

-- Prints the survivors, and the line "= path mutants killed equivalent survived hung", for the sum.
local function run_file(tree, prototype, named)
  local count = { mutants = 0, killed = 0, equivalent = 0, survived = 0, hung = 0 }
  local path, only = of_name(named)
  local text = read(path)
  local mutants = mutants_of(path, text, only)
  if #mutants == 0 then
    return true
  end
  local tests = tests_of(tree, path)
  for _, mutant in ipairs(mutants) do
    local began = os.time()
    tree:change({ [path] = mutate.text(text, mutant) })
    local excuse = excuse_of(mutant)
    local by, hung = killer(tree, prototype, tests, path, excuse and EXCUSED_TESTS or #tests)
    tree:restore()
    if excuse and (by == nil or by == "compiler") then
      excuse.used = true
    end
    local kind = by and "killed" or excuse and "equivalent" or "survived"
    if by ~= "compiler" then
      count.mutants = count.mutants + 1
      count[kind] = count[kind] + 1
      count.hung = count.hung + (hung and 1 or 0)
    end
    if kind == "survived" then
      print(("survived - %s:%d: \"%s\", \"%s\", %d\n    - %s\n    + %s"):format(path, mutant.number, mutant.name,
        mutant.operator, mutant.nth, trim(mutant.line), trim(mutant.mutant)))
    elseif os.getenv("VERBOSE") then
      print(("# %s:%d %s: %s [%d s]"):format(path, mutant.number, by or "equivalent", trim(mutant.mutant),
        os.time() - began))
    end
    io.flush()
  end
  for _, mutant in ipairs(only and {} or mutants) do
    local entry = excuse_of(mutant)
    if entry and not entry.used then
      print(("not needed - %s: \"%s\", \"%s\", %d"):format(path, mutant.name, mutant.operator, mutant.nth))
      count.survived = count.survived + 1 -- A list with too much in it excuses unchecked mutants.
    end
  end
  local figures = {}
  for i, name in ipairs(COUNTS) do
    figures[i] = tostring(count[name])
  end
  print(("= %s %s"):format(path, table.concat(figures, " ")))
  return count.survived == 0 and not tests.useless
end

-- --------------------------------------------------------------------------------------- all of them

-- Sums up the output of run_file(). Returns true if nothing survived.
local function sum_up(paths, output, all_well)
  local lines = { "| file | mutants | killed | equivalent | survived | of those killed, not ending |",
    "| --- | ---: | ---: | ---: | ---: | ---: |" }
  local sums, done = { 0, 0, 0, 0, 0 }, 0
  for path, figures in output:gmatch("\n= (%S+) ([%d ]+)") do
    local row = { path }
    for number in figures:gmatch("%d+") do
      row[#row + 1] = number
      sums[#row - 1] = sums[#row - 1] + tonumber(number)
    end
    done = done + 1
    lines[#lines + 1] = "| " .. table.concat(row, " | ") .. " |"
  end
  lines[#lines + 1] = ("| together | %d | %d | %d | %d | %d |"):format(sums[1], sums[2], sums[3], sums[4], sums[5])
  changed_tree.write("build/mutants.md", table.concat(lines, "\n") .. "\n")
  print(table.concat(lines, "\n"))
  return all_well and done == #paths and sums[4] == 0
end

local function run_all(prototype, paths)
  -- A target that comes with a variable is made alone.
  local alone, together, seen = {}, {}, {}
  for _, path in ipairs(paths) do
    for _, test in ipairs(tests_of(prototype, (of_name(path)))) do
      if not seen[test.target] then
        seen[test.target] = true
        table.insert(test.target:find("=", 1, true) and alone or together, test.target)
      end
    end
  end
  if #together > 0 then
    prototype:must_make("-j2 " .. table.concat(together, " "))
  end
  for _, target in ipairs(alone) do
    prototype:must_make("-j2 " .. target)
  end
  must("mkdir -p build")
  local command = ("printf '%%s\\n' %s | MUTANTS_PROTOTYPE=%s xargs -P %s -n 1 %s build-aux/mutants.lua --one"):format(
    table.concat(paths, " "), prototype.directory, JOBS, arg[-1])
  command = "cd " .. prototype.directory .. " && " .. command -- The tree may change meanwhile.
  local output, pipe = { "" }, io.popen("( " .. command .. "; echo \"status $?\" ) 2>&1")
  for line in pipe:lines() do
    output[#output + 1] = line
    if not line:find("^= ") and not line:find("^status ") then
      print(line)
      io.flush()
    end
  end
  pipe:close()
  return sum_up(paths, table.concat(output, "\n"), output[#output] == "status 0")
end

local ok, fault = pcall(check_lists)
if not ok then
  print("not ok - " .. fault)
  os.exit(1)
elseif arg[1] == "check" then
  print(("ok - mutants: %d files, %d equivalents: each has its place"):format(#files_below({}), #EQUIVALENT))
elseif arg[1] == "--one" then
  local prototype = changed_tree.at(os.getenv("MUTANTS_PROTOTYPE"), SETTINGS)
  changed_tree.finish(changed_tree.copy(SETTINGS, prototype.directory), function(tree)
    return run_file(tree, prototype, arg[2])
  end)
else
  local paths = files_below(arg)
  if #paths == 0 then
    print("not ok - no rule of csrc/test/mutants.lua is for what was named")
    os.exit(1)
  end
  changed_tree.finish(changed_tree.copy(SETTINGS, os.getenv("REUSE") and "."), function(tree)
    return run_all(tree, paths)
  end)
end
