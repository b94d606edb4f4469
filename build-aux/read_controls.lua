-- Reads the list of negative controls (csrc/test/controls.lua), and finds the places of their
-- changes in csrc/core. All errors of the list are reported at once, before anything is built.
--
-- SPDX-License-Identifier: MIT

local changed_tree = dofile("build-aux/changed_tree.lua")
local controls = {}

local OBSERVERS = { simulator = true, replay = true }

-- Returns a control with names for its parts; adds its errors to |faults|.
local function read_control(entry, faults)
  local control = { name = entry[1], what = entry[2], switch = entry.switch, by = {}, changes = {}, file = entry.file }
  for key, value in pairs(entry.by or { "simulator" }) do
    if type(key) == "number" then
      control.by[value] = true
    else
      control.by[key] = value
    end
  end
  for observer in pairs(control.by) do
    if not OBSERVERS[observer] and observer ~= "chaos" and observer ~= "arguments" then
      faults[#faults + 1] = ("%s: no observer is called %s"):format(control.name, observer)
    end
  end
  for i = 3, #entry, 2 do
    control.changes[#control.changes + 1] = { from = entry[i], to = entry[i + 1] }
  end
  if (#control.changes == 0) ~= (control.switch == true) then
    faults[#faults + 1] = control.name .. ": it is a switch, or it changes something"
  end
  return control
end

-- Returns the one source that has |from| once; or nil, and the error.
local function place_of(sources, texts, from, file)
  local found, total, places = nil, 0, {}
  for _, source in ipairs(sources) do
    local name = source.path:match("([^/]+)$")
    if not file or name == file then
      local current = texts[source.path] and changed_tree.source(source.path, texts[source.path]) or source
      local count = changed_tree.count(current, from)
      if count > 0 then
        found = current
        total = total + count
        places[#places + 1] = ("%s (%d)"):format(name, count)
      end
    end
  end
  if total == 0 then
    return nil, "is not there"
  elseif total > 1 then
    return nil, "stands in " .. table.concat(places, ", ")
  end
  return found
end

-- Fills in control.texts, { [path] = changed text }, or adds to |faults|.
local function apply(control, sources, faults)
  control.texts = {}
  for _, change in ipairs(control.changes) do
    local source, trouble = place_of(sources, control.texts, change.from, control.file)
    if source then
      control.texts[source.path] = changed_tree.replace(source, change.from, change.to)
    else
      faults[#faults + 1] = ("%s: this %s: %s"):format(control.name, trouble, change.from)
    end
  end
end

-- The controls, in their order, each { name, what, switch, by, texts }. Raises with all faults of
-- the list.
function controls.load(path)
  local sources, list, faults, names = {}, {}, {}, {}
  for source in changed_tree.must("ls csrc/core/*.[ch] csrc/core/*/*.[ch]"):gmatch("%S+") do
    sources[#sources + 1] = changed_tree.source(source, changed_tree.read(source))
  end
  for _, entry in ipairs(dofile(path or "csrc/test/controls.lua")) do
    local control = read_control(entry, faults)
    if names[control.name] then
      faults[#faults + 1] = control.name .. ": there are two of this name"
    end
    names[control.name] = true
    apply(control, sources, faults)
    list[#list + 1] = control
  end
  if #faults > 0 then
    error(("%d faults of the controls:\n  %s"):format(#faults, table.concat(faults, "\n  ")), 0)
  end
  return list
end

return controls
