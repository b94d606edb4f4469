-- Checks docs/safety.md: each promise, assumption and rule names its evidence, and each name is
-- that of an existing test, checker, control or configuration of the model.
--
--     lua build-aux/check_safety.lua [page]        [docs/safety.md]
--
-- SPDX-License-Identifier: MIT

local page = arg[1] or "docs/safety.md"

local function read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

-- All files of some directories in one text.
local function read_all(pattern)
  local pipe = assert(io.popen("cat " .. pattern .. " 2>/dev/null"))
  local text = pipe:read("*a")
  pipe:close()
  return text
end

local texts = {
  model = read_all("csrc/test/model/*"),
}

-- Controls that the simulator or the replay detects, and those of the fault tests.
local controls = { control = {}, chaos = {} }
for _, control in ipairs(dofile("build-aux/read_controls.lua").load()) do
  controls.control[control.name] = control.by.simulator or control.by.replay
  controls.chaos[control.name] = control.by.chaos
end

-- The path of each test program, by its name.
local programs = {}
for path in io.popen("ls csrc/test/unit/*/*_test.c csrc/test/integration/*_test.c"):lines() do
  programs[path:match("([^/]+)%.c$")] = path
end

local function test_exists(file, name)
  local text = programs[file] and read(programs[file])
  if (text or ""):find("TEST(" .. name .. ")", 1, true) then
    return true
  end
  -- Declared, and in the list of tests; a macro may make the list.
  local _, count = (text or ""):gsub("%f[%w_]" .. name .. "%f[^%w_]", "")
  return count >= 2
end

local function spec_exists(file, title)
  for _, directory in ipairs({ "spec/", "spec/integration/", "spec/nginx/" }) do
    local text = read(directory .. file .. ".lua")
    if text and text:find('it("' .. title, 1, true) then
      return true
    end
  end
  return false
end

-- Returns true if "kind/name" exists, and nil if it is no reference.
local function exists(reference)
  local file, title = reference:match('^spec/([%w_]+)/"(.+)"$')
  if file then
    return spec_exists(file, title)
  end
  local kind, name = reference:match("^([%w_]+)/([%w_%-]+)$")
  if kind == nil then
    return nil
  elseif kind:find("_test$") then
    return test_exists(kind, name)
  elseif kind == "check" then
    return read("csrc/test/sim/check_" .. name .. ".c") ~= nil
  elseif controls[kind] then
    return controls[kind][name] ~= nil
  elseif texts[kind] then
    return texts[kind]:find('[%({]%s*"' .. name:gsub("%-", "%%-") .. '"') ~= nil
  end
  -- A path is no reference; anything else is a misspelt one.
  if kind == "csrc" then
    return nil
  end
  return false
end

-- Returns an array of the mistakes in a text, and its number of references.
local function faults_of(text)
  local faults, names, labels = {}, 0, {}
  for line in text:gmatch("[^\n]+") do
    local statement = line:match("^| ([%u-]+%d+) |")
    if statement and labels[statement] then
      faults[#faults + 1] = statement .. " is the label of two rows"
    end
    labels[statement or ""] = true
    local found = 0
    -- The table that explains the notation has names that end in "name" or "title".
    for reference in line:gmatch("`([^`]+)`") do
      local explains = reference:find("/name$") or reference:find('/"title"$')
      local known
      if not explains then
        known = exists(reference)
      end
      if known == false then
        faults[#faults + 1] = ("`%s` does not exist"):format(reference)
      end
      found = found + (known and 1 or 0)
    end
    if statement and found == 0 then
      faults[#faults + 1] = statement .. " names nothing that holds it"
    end
    names = names + found
  end
  return faults, names
end

-- Negative controls.
local wrong = {
  "| P1 | A promise. | `csrc/test` |",
  "| P1 | A promise. | `check/no-such-checker` |",
  "| A1 | An assumption. | `control/no-such-control` |",
  "| RULE-1 | A rule. | `rl_extend_test/no_such_test` |",
  '| RULE-1 | A rule. | `spec/keys_spec/"no such spec"` |',
  "| P1 | A promise. | `check/exclusion` `contrl/no-drift` |",
  "| P1 | A promise. | `check/exclusion` `rl_lock_tst/nothing` |",
  "A sentence. `model/no-such-configuration`",
  "| P1 | A promise. | `check/exclusion` |\n| P1 | Another promise. | `check/exclusion` |",
}
for _, line in ipairs(wrong) do
  if #faults_of(line) == 0 then
    print("not ok - check_safety takes this: " .. line)
    os.exit(1)
  end
end

local faults, names = faults_of(assert(read(page), page .. " is not there"))
for _, fault in ipairs(faults) do
  print("not ok - " .. page .. ": " .. fault)
end
if #faults > 0 or names == 0 then
  os.exit(1)
end
print(("ok - %s: each of its %d references exists"):format(page, names))
