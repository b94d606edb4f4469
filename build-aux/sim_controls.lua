-- Runs the negative controls of the simulator (csrc/test/sim/controls.lua): every one must be caught.
--
--     lua build-aux/sim_controls.lua [name ...]
--
-- Environment: CC, CFLAGS, HIREDIS_CFLAGS, HIREDIS_LIBS, SEEDS (how many seeds each may take [10000]),
-- TABLE (a file for the result as a Markdown table), ONLY (listen to one checker alone: then survivors
-- are no failure, only told).
--
-- SPDX-License-Identifier: MIT

local controls = dofile("csrc/test/sim/controls.lua")
local unreached = dofile("csrc/test/sim/unreached.lua")
local statements = dofile("build-aux/sim_statements.lua")

local CC = os.getenv("CC") or "cc"
local CFLAGS = os.getenv("CFLAGS") or "-O1 -g"
local HIREDIS_CFLAGS = os.getenv("HIREDIS_CFLAGS") or ""
local HIREDIS_LIBS = os.getenv("HIREDIS_LIBS") or "-lhiredis"
local SEEDS = os.getenv("SEEDS") or "10000"
local ONLY = os.getenv("ONLY")
local CMOCKA_LIBS = os.getenv("CMOCKA_LIBS") or "-lcmocka"

local changed_core = dofile("build-aux/changed_core.lua")
local run, must, read, write = changed_core.run, changed_core.must, changed_core.read, changed_core.write

local function mutated(control)
  local text = read("csrc/core/" .. control.file)
  local from = type(control.from) == "table" and control.from or { control.from }
  local to = type(control.to) == "table" and control.to or { control.to }
  for i = 1, #from do
    -- Exactly once: a control that no longer applies tests nothing.
    local made, trouble = changed_core.replace(text, from[i], to[i])
    text = made or error(("%s: its text is %s:\n%s"):format(control.name, trouble, from[i]), 0)
  end
  return text
end

local scratch = must("mktemp -d"):match("%S+")

local function compile(source, object)
  return CC .. " -std=c11 -D_GNU_SOURCE " .. CFLAGS .. " -Icsrc/include -Icsrc/core -Icsrc/test/sim "
    .. HIREDIS_CFLAGS .. " -c -o " .. object .. " " .. source
end

local function build()
  local objects = {}
  for source in must("ls csrc/core/rl_*.c csrc/test/sim/*.c"):gmatch("%S+") do
    local name = source:match("([^/]+)%.c$")
    objects[name] = scratch .. "/" .. name .. ".o"
    must(compile(source, objects[name]))
  end
  return objects
end

local function link(objects, instead, by)
  local list = {}
  for name, object in pairs(objects) do
    list[#list + 1] = name == instead and by or object
  end
  must(CC .. " " .. CFLAGS .. " -o " .. scratch .. "/sim " .. table.concat(list, " ") .. " " .. HIREDIS_LIBS)
end

-- The unit test, built with the changed file in place of the real one, must fail.
local function unit(control, changed)
  local sources = {}
  for source in must("ls csrc/core/rl_*.c csrc/driver/rl_*.c csrc/test/lib/*.c"):gmatch("%S+") do
    if source ~= "csrc/core/" .. control.file then
      sources[#sources + 1] = source
    end
  end
  must(CC .. " -std=c11 -D_GNU_SOURCE -pthread " .. CFLAGS .. " -Icsrc/include -Icsrc/core -Icsrc/driver "
    .. "-Icsrc/test/lib " .. HIREDIS_CFLAGS .. " -o " .. scratch .. "/unit csrc/test/unit/" .. control.unit .. ".c "
    .. changed .. " " .. table.concat(sources, " ") .. " " .. HIREDIS_LIBS .. " " .. CMOCKA_LIBS .. " -lm")
  local output, status = run("timeout 60 " .. scratch .. "/unit")
  return status ~= 0 and { by = control.unit, seeds = "-", detail = output:match("%[  FAILED  %] ([%w_]+)") or "" }
end

local function simulate(control)
  local breach = control.breach and " --break " .. control.breach or ""
  local only = ONLY and " --only " .. ONLY or ""
  local output, status = run("timeout 300 " .. scratch .. "/sim --runs " .. SEEDS .. breach .. only)
  local checker, seeds = output:match("caught by (%w+) within (%d+) seeds")
  if checker == "assertion" then
    return { by = "an assertion of the core", seeds = seeds, detail = output:match("Assertion [^\n]*") }
  elseif checker then
    return { by = checker, seeds = seeds, detail = output:match("seed %d+: %w+: ([^\n]*)") }
  end
  return nil, output:sub(-300) .. " (status " .. status .. ")"
end

local function control_one(control, objects)
  if control.breach then
    link(objects)
    return simulate(control)
  end
  local changed = scratch .. "/changed_" .. control.file
  local object = scratch .. "/changed.o"
  write(changed, mutated(control))
  must(compile(changed, object))
  if control.unit then
    return unit(control, changed)
  end
  link(objects, control.file:match("^(.*)%.c$"), object)
  return simulate(control)
end

-- Each statement of the checkers has been seen to fail, or is known not to be reachable. Returns whether.
local function all_said(said)
  local sources = {}
  for path in must("ls csrc/test/sim/*.c"):gmatch("%S+") do
    sources[#sources + 1] = { name = path, text = read(path) }
  end
  local found = statements.of(sources)
  local good, left = true, statements.unsaid(found, said)
  local excused = {}
  for _, statement in ipairs(left) do
    excused[statement.format] = true
    if not unreached[statement.format] then
      print(("not ok - no control makes %s say: %s"):format(statement.source, statement.format))
      good = false
    end
  end
  for format in pairs(unreached) do
    if not excused[format] then
      print("not ok - unreached.lua has what is said, or is no statement: " .. format)
      good = false
    end
  end
  if good then
    print(("ok - %d of %d statements of the checkers have been seen to fail; the others are listed with reasons")
      :format(#found - #left, #found))
  end
  return good
end

local function main()
  local wanted = {}
  for _, name in ipairs(arg) do
    wanted[name] = true
  end
  local objects = build()
  local survived, caught, by_simulator, total, slowest, checkers, said = 0, 0, 0, 0, 0, {}, {}
  local lines = { "| control | what is wrong | caught by | seeds |", "| --- | --- | --- | ---: |" }
  for _, control in ipairs(controls) do
    if #arg == 0 or wanted[control.name] then
      local found, output = control_one(control, objects)
      total = total + 1
      if found then
        caught = caught + 1
        by_simulator = by_simulator + (control.unit and 0 or 1)
        checkers[found.by] = (checkers[found.by] or 0) + 1
        said[#said + 1] = { checker = found.by, detail = found.detail or "" }
        slowest = math.max(slowest, tonumber(found.seeds) or 0)
        io.write(("ok - %s: %s, within %s seeds: %s\n"):format(control.name, found.by, found.seeds,
          (found.detail or ""):sub(1, 110)))
        lines[#lines + 1] = ("| %s | %s | %s | %s |"):format(control.name, control.what, found.by, found.seeds)
      else
        survived = survived + 1
        io.write(("not ok - %s (%s) survived: %s\n"):format(control.name, control.what, output or ""))
      end
      io.flush()
    end
  end
  if os.getenv("TABLE") then
    write(os.getenv("TABLE"), table.concat(lines, "\n") .. "\n")
  end
  print(("%d controls, %d caught, %d of them by the simulator (within %d seeds at most), %d survived")
    :format(total, caught, by_simulator, slowest, survived))
  local silent = 0
  for source in must("ls csrc/test/sim/check_*.c"):gmatch("check_(%w+)%.c") do
    print(("%s: %d"):format(source, checkers[source] or 0))
    silent = silent + (checkers[source] and 0 or 1)
  end
  -- A checker that no control has made to fail is not known to be one.
  return ONLY or survived == 0
    and (#arg > 0 or (by_simulator * 10 >= total * 9 and silent == 0 and all_said(said)))
end

changed_core.finish(main, scratch)
