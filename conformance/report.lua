-- Writes the results of the suite into the tables of the pages, or checks that they are up to date:
--
--     lua5.4 conformance/report.lua [check]
--
-- A table stands between <!-- conformance NAME --> and <!-- end -->.
--
-- SPDX-License-Identifier: MIT

local adapters = require "conformance.adapters"
local interop = require "conformance.interop"
local statements = require "conformance.statements"

local WORDS = { holds = "yes", fails = "**no**", none = "–", untested = "?" }

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- Returns verdicts[library][statement], observations[library][statement] and versions[library].
local function results(path)
  local verdicts, observations, versions = {}, {}, {}
  for line in read(path):gmatch("[^\n]+") do
    local library, statement, verdict, text = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)\t?(.*)$")
    if statement == "@version" then
      versions[library] = verdict
    else
      verdicts[library], observations[library] = verdicts[library] or {}, observations[library] or {}
      verdicts[library][statement], observations[library][statement] = verdict, text
    end
  end
  return verdicts, observations, versions
end

local conform, observed, versions = results("conformance/results.tsv")
local together, seen_together = results("conformance/interop.tsv")

-- The libraries of a table of statements: not the example adapter.
local function libraries()
  local list = {}
  for _, kind in ipairs(adapters) do
    if conform[kind.name] and kind.name ~= "plain" then list[#list + 1] = kind end
  end
  return list
end

local function row(cells) return "| " .. table.concat(cells, " | ") .. " |" end

local function head(first, kinds)
  local names, rule = { first }, { "---" }
  for _, kind in ipairs(kinds) do
    names[#names + 1] = kind.title
    rule[#rule + 1] = ":-:"
  end
  return { row(names), "|" .. table.concat(rule, "|") .. "|" }
end

-- The table of the statements that selected(statement) returns.
local function table_of(selected)
  local kinds = libraries()
  local lines = head("", kinds)
  for _, statement in ipairs(statements) do
    if selected(statement) then
      local cells = { statement.says }
      for _, kind in ipairs(kinds) do
        cells[#cells + 1] = WORDS[conform[kind.name][statement.name] or "untested"]
      end
      lines[#lines + 1] = row(cells)
    end
  end
  return lines
end

local function some_library_fails(statement)
  for _, kind in ipairs(libraries()) do
    if conform[kind.name][statement.name] == "fails" then return true end
  end
  return false
end

local tables = {}

function tables.statements() return table_of(function() return true end) end

function tables.differences() return table_of(some_library_fails) end

-- The observation of a statement that failed.
function tables.observations()
  local lines = { "| library | statement | observation |", "|---|---|---|" }
  for _, kind in ipairs(libraries()) do
    for _, statement in ipairs(statements) do
      if conform[kind.name][statement.name] == "fails" then
        local text = observed[kind.name][statement.name]:gsub("|", "/")
        lines[#lines + 1] = row { kind.title, "`" .. statement.name .. "`", text }
      end
    end
  end
  return lines
end

function tables.versions()
  local lines = { "| library | version | from | nodes |", "|---|---|---|---|" }
  for _, kind in ipairs(adapters) do
    if not kind.own then
      lines[#lines + 1] = row { kind.title, versions[kind.name] or "–", kind.from, kind.nodes == 1 and "1" or "3" }
    end
  end
  return lines
end

function tables.interop()
  local lines = { "| library |", "|---|" }
  for _, statement in ipairs(interop) do
    lines[1] = lines[1] .. " " .. statement.says .. " |"
    lines[2] = lines[2] .. ":-:|"
  end
  for _, kind in ipairs(adapters) do
    if together[kind.name] then
      local cells = { kind.title }
      for _, statement in ipairs(interop) do
        local verdict = together[kind.name][statement.name] or "untested"
        local detail = statement.name == "contest" and verdict == "holds" and seen_together[kind.name][statement.name]
        cells[#cells + 1] = detail or WORDS[verdict]
      end
      lines[#lines + 1] = row(cells)
    end
  end
  return lines
end

-- A dagger marks a statement about several nodes.
function tables.list()
  local lines = { "| statement | says |", "|---|---|" }
  for _, statement in ipairs(statements) do
    local mark = statement.several and " \u{2020}" or ""
    lines[#lines + 1] = row { "`" .. statement.name .. "`", statement.says .. mark }
  end
  return lines
end

local stale = 0
for _, path in ipairs { "README.md", "docs/comparison.md", "docs/conformance.md" } do
  local text = read(path)
  local new = text:gsub("(<!%-%- conformance (%l+) %-%->\n).-(<!%-%- end %-%->)", function(first, name, last)
    return first .. table.concat(assert(tables[name], name)(), "\n") .. "\n" .. last
  end)
  if arg[1] == "check" then
    print(("%s - the tables of %s have the results of the suite"):format(new == text and "ok" or "not ok", path))
    stale = stale + (new == text and 0 or 1)
  elseif new ~= text then
    local file = assert(io.open(path, "w"))
    file:write(new)
    file:close()
    print("wrote " .. path)
  end
end
if stale > 0 then print("run `make conformance-page`") end
os.exit(stale == 0 and 0 or 1)
