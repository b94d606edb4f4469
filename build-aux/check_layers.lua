-- Checks that folders are layers: a module uses its own folder and lower ones, and no modules of a
-- folder form a cycle. Checks also which module writes a field, and the names of unit tests.
--
--     lua build-aux/check_layers.lua BUILD_DIRECTORY [list]
--
-- A module is a .c file and its header. It uses another module if it includes its header or calls
-- its functions (the symbols of the object files say so). "list" prints every dependency that
-- points upwards.
--
-- SPDX-License-Identifier: MIT

-- From the lowest to the highest. The ceilings are the reached figures, and only go down.
local HOUSES = {
  {
    top = "csrc/core",
    objects = "/obj/core",
    layers = { "base", "options", "wire", "node", "lock", "wait", "lease", "lifecycle", "operator", "" },
    upward = 0,
    cyclic = 0,
  },
  { top = "csrc/driver", objects = "/obj/driver", layers = { "os", "net", "client", "api" }, upward = 0, cyclic = 0 },
  { top = "csrc/binding", objects = "/5.4/obj", layers = { "" }, upward = 0, cyclic = 0 },
}

local build, wants_list = arg[1], arg[2] == "list"

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text:gmatch("[^\n]+")
end

local function add(graph, from, to)
  if from and to and from ~= to then
    graph[from] = graph[from] or {}
    graph[from][to] = true
  end
end

-- The module of a path below |top|: without the extension.
local function module_of(top, path)
  local rest = path:match("^" .. top:gsub("%p", "%%%0") .. "/(.*)%.%w+$")
  return rest
end

local function add_includes(graph, top, modules)
  for line in lines_of(("grep -rn --include='*.[ch]' '^#include \"' %s"):format(top)) do
    local path, header = line:match("^(.-):%d+:#include \"(.-)\"")
    local from, name = module_of(top, path), header:gsub("%.%w+$", "")
    local beside = (from:match("^(.*/)") or "") .. name
    add(graph, from, modules[name] and name or modules[beside] and beside or nil)
  end
end

local function add_calls(graph, modules, directory)
  local owner, wanted = {}, {}
  for line in lines_of(("find %s -name '*.o' -exec nm -A -P {} +"):format(directory)) do
    local object, symbol, kind = line:match("^(%S-): (%S+) (%a)")
    local module = object and object:match("^" .. directory:gsub("%p", "%%%0") .. "/(.*)%.o$")
    -- An object of a deleted file has no module.
    local known = modules[module or ""]
    if known and kind == "U" then
      wanted[#wanted + 1] = { module, symbol }
    elseif known and kind:match("[TDBRC]") then
      owner[symbol] = module
    end
  end
  for _, use in ipairs(wanted) do
    add(graph, use[1], owner[use[2]])
  end
  assert(next(owner), directory .. " has no object files: run make first")
end

-- The modules of |graph| that are part of a cycle, in which every edge satisfies |within|.
local function cyclic_modules(graph, within)
  local function reaches(from, goal, seen)
    for to in pairs(graph[from] or {}) do
      if within(from, to) then
        if to == goal then return true end
        if not seen[to] then
          seen[to] = true
          if reaches(to, goal, seen) then return true end
        end
      end
    end
    return false
  end
  local found = {}
  for module in pairs(graph) do
    if reaches(module, module, {}) then found[#found + 1] = module end
  end
  table.sort(found)
  return found
end

local function check(house)
  local rank, modules, graph, upward = {}, {}, {}, {}
  for level, folder in ipairs(house.layers) do rank[folder] = level end
  local function level_of(module)
    return assert(rank[module:match("^(.*)/") or ""], module .. ": its folder is no layer")
  end
  for path in lines_of("find " .. house.top .. " -name '*.[ch]'") do modules[module_of(house.top, path)] = true end
  add_includes(graph, house.top, modules)
  add_calls(graph, modules, build .. house.objects)
  local count = 0
  for from, uses in pairs(graph) do
    for to in pairs(uses) do
      count = count + 1
      if level_of(to) > level_of(from) then upward[#upward + 1] = from .. " -> " .. to end
    end
  end
  table.sort(upward)
  local cyclic = cyclic_modules(graph, function(from, to) return level_of(from) == level_of(to) end)
  local good = #upward <= house.upward and #cyclic <= house.cyclic
  print(("%s - %s: %d dependencies, %d point upwards (ceiling %d), %d modules in cycles of their folder (ceiling %d)")
    :format(good and "ok" or "not ok", house.top, count, #upward, house.upward, #cyclic, house.cyclic))
  if wants_list or not good then
    for _, dependency in ipairs(upward) do print("  upwards: " .. dependency) end
    for _, module in ipairs(cyclic) do print("  in a cycle: " .. module) end
  end
  return good
end

-- The module that writes a field of rl_lock. Other modules call its functions.
local WRITERS = { phase = "lock/rl_lock", awaited = "lock/rl_round", result = "lock/rl_lock" }

-- The fields that |text| of |module| writes, although another module is their writer. A link has a
-- phase, too, and the record of automatic extends a result.
local OTHER_STRUCTS = { link = true, renewal = true }

local function foreign_writes(module, text)
  local found = {}
  for variable, field in text:gmatch("([%w%]%)]+)%->(%l+) [|&]?=[^=]") do
    if WRITERS[field] and WRITERS[field] ~= module and not OTHER_STRUCTS[variable] then found[#found + 1] = field end
  end
  return found
end

local function check_writers()
  local good = true
  for line in lines_of("grep -rn --include='*.[ch]' -e '->' csrc/core") do
    local path, number, text = line:match("^(.-):(%d+):(.*)$")
    for _, field in ipairs(foreign_writes(module_of("csrc/core", path), text)) do
      good = false
      print(("not ok - %s:%s writes %s: only %s may"):format(path, number, field, WRITERS[field]))
    end
  end
  if good then print("ok - one module writes a lock's phase, one its awaited nodes, and one its result") end
  return good
end

-- Returns true if the unit test |name| in |folder| has the name of a module of that folder, perhaps
-- with a subject behind it. A test of several modules begins with "every_".
local function is_named(folder, name, modules)
  if name:match("^every_") then return true end
  for _, top in ipairs { "csrc/core/", "csrc/driver/", "csrc/test/", "csrc/" } do
    local prefix = name
    while prefix do
      if modules[top .. folder .. "/" .. prefix] then return true end
      prefix = prefix:match("^(.*)_[^_]*$")
    end
  end
  return false
end

local function check_test_names()
  local modules, good, count = {}, true, 0
  for path in lines_of("find csrc -name '*.[ch]'") do modules[path:match("^(.*)%.")] = true end
  for path in lines_of("find csrc/test/unit -name '*_test.c'") do
    local folder, name = path:match("^csrc/test/unit/(.*)/(.*)_test%.c$")
    count = count + 1
    if not is_named(folder, name, modules) then
      good = false
      print("not ok - " .. path .. ": csrc has no such module of that folder; a test of several begins with every_")
    end
  end
  if good then print(("ok - %d unit tests have the name of their module"):format(count)) end
  return good
end

-- Negative controls: a cycle and a dependency across folders, of which only the cycle inside a
-- folder counts.
local graph = {
  ["a/x"] = { ["a/y"] = true },
  ["a/y"] = { ["a/x"] = true, ["b/z"] = true },
  ["b/z"] = { ["a/y"] = true },
}
local found = cyclic_modules(graph, function(from, to) return from:sub(1, 1) == to:sub(1, 1) end)
assert(table.concat(found, " ") == "a/x a/y", "a cycle is not found")
assert(#foreign_writes("lease/x", "  lock->phase = 1;") == 1, "a foreign write is not found")
assert(#foreign_writes("lock/rl_lock", "  lock->phase = 1;") == 0, "a write of the writer is found")
local release = { ["csrc/core/lease/rl_release"] = true }
assert(is_named("lease", "rl_release_late", release), "a test of a module is refused")
assert(not is_named("lease", "rl_lock_release", release), "a test without a module is not found")
assert(not is_named("wait", "rl_release", release), "a test in a wrong folder is not found")

local good = true
for _, house in ipairs(HOUSES) do good = check(house) and good end
good = check_writers() and good
good = check_test_names() and good
os.exit(good and 0 or 1)
