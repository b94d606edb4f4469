-- A changed copy of this tree, which the controls and mutants build and test with make.
--
-- SPDX-License-Identifier: MIT

local changed_tree = {}

local GAP_MAX = 300 -- how many bytes that are not white space "..." may stand for

-- Returns output and exit status of a shell command, in each version of Lua.
function changed_tree.run(command)
  local pipe = assert(io.popen("( " .. command .. " ) 2>&1; echo \"status $?\""))
  local text = pipe:read("*a")
  pipe:close()
  local output, status = text:match("^(.*)status (%d+)%s*$")
  return output, tonumber(status)
end

-- Returns the output of a shell command; raises an error if it fails.
function changed_tree.must(command)
  local output, status = changed_tree.run(command)
  if status ~= 0 then
    error(command .. "\n" .. output, 0)
  end
  return output
end

function changed_tree.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function changed_tree.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- ------------------------------------------------------------------------------ changes of a text

-- Returns the text without white space, and the position of each of its bytes.
local function compact(text)
  local bytes, places = {}, {}
  for place, byte in text:gmatch("()(%S)") do
    bytes[#bytes + 1] = byte
    places[#places + 1] = place
  end
  return table.concat(bytes), places
end

-- Finds |parts| in |dense|, in order with gaps. Returns first, last, and the gaps as pairs of
-- positions, or nil.
local function match_at(dense, parts, start)
  local first, last = dense:find(parts[1], start, true)
  local gaps, from = {}, first
  for i = 2, #parts do
    if not first then
      return nil
    end
    local next_first, next_last = dense:find(parts[i], last + 1, true)
    if not next_first or next_first - last > GAP_MAX then
      return match_at(dense, parts, from + 1)
    end
    gaps[#gaps + 1] = { last + 1, next_first - 1 }
    first, last = next_first, next_last
  end
  return from, last, gaps
end

-- A source text: { path, text }.
function changed_tree.source(path, text)
  local dense, places = compact(text)
  return { path = path, text = text, dense = dense, places = places }
end

local function parts_of(pattern)
  local parts = {}
  for part in (pattern .. "..."):gmatch("(.-)%.%.%.") do
    parts[#parts + 1] = compact(part)
  end
  return parts
end

-- Counts |from| in |source|, in any white space; "..." in it matches any short text.
function changed_tree.count(source, from)
  local parts, count, start = parts_of(from), 0, 1
  while true do
    local first = match_at(source.dense, parts, start)
    if not first then
      return count
    end
    count, start = count + 1, first + 1
  end
end

-- Returns the text of |source| with |to| in place of |from|; "..." in |to| is the text that it
-- matches in |from|.
function changed_tree.replace(source, from, to)
  local first, last, gaps = match_at(source.dense, parts_of(from), 1)
  local text, places, gap = source.text, source.places, 0
  local instead = to:gsub("%.%.%.", function()
    gap = gap + 1
    return text:sub(places[gaps[gap][1] - 1] + 1, places[gaps[gap][2] + 1] - 1)
  end)
  return text:sub(1, places[first] - 1) .. instead .. text:sub(places[last] + 1)
end

-- --------------------------------------------------------------------------------------- the copy

local copy = {}
copy.__index = copy

-- Returns the copy at |directory|.
function changed_tree.at(directory, settings)
  return setmetatable({ directory = directory, settings = settings, changed = {} }, copy)
end

-- Copies the tree, or another copy with its build, into a temporary directory. |settings| are those
-- of make, as "CFLAGS=-O1".
function changed_tree.copy(settings, from)
  local directory = changed_tree.must("mktemp -d"):match("%S+")
  changed_tree.must(("tar cf - -C %s --exclude=./.git %s . | tar xf - -C %s"):format(from or ".",
    from and "" or "--exclude=./build", directory))
  return changed_tree.at(directory, settings)
end

-- Runs a command in the copy. Returns its output and status.
function copy:run(command)
  return changed_tree.run("cd " .. self.directory .. " && unset MAKEFLAGS MFLAGS MAKELEVEL; " .. command)
end

function copy:make(targets)
  return self:run((os.getenv("WRAPPER") or "") .. " make -s " .. self.settings .. " " .. targets)
end

-- Like make(), but raises an error if it fails.
function copy:must_make(targets)
  local output, status = self:make(targets)
  if status ~= 0 then
    error("make " .. targets .. "\n" .. output, 0)
  end
end

-- Writes files into the copy: { [path] = text }.
function copy:change(texts)
  for path, text in pairs(texts) do
    self.changed[path] = self.changed[path] or changed_tree.read(self.directory .. "/" .. path)
    changed_tree.write(self.directory .. "/" .. path, text)
  end
end

function copy:restore()
  for path, text in pairs(self.changed) do
    changed_tree.write(self.directory .. "/" .. path, text)
  end
  self.changed = {}
end

-- Runs main(tree), which returns true on success, removes |tree| and ends the program.
function changed_tree.finish(tree, main)
  local ok, result = pcall(main, tree)
  changed_tree.run("rm -rf " .. tree.directory)
  if not ok then
    print("not ok - " .. tostring(result))
  end
  os.exit(ok and result and 0 or 1)
end

return changed_tree
