-- Checks that each link between pages leads to a file and to a heading that exist, and that the
-- files and functions exist that the pages about the code name.
--
--     lua build-aux/check_links.lua          all pages that git knows
--
-- SPDX-License-Identifier: MIT

local links = dofile((arg[0]:match("^.*/") or "") .. "links.lua")

-- Returns an array of the broken links of a page. read(path) returns the text of a file.
local function faults_of(page, text, read)
  local faults, count = {}, 0
  for _, link in ipairs(links.of(text)) do
    if not links.is_external(link.target) then
      count = count + 1
      local path, anchor = links.resolve(page, link.target)
      local content = read(path)
      if not content then
        faults[#faults + 1] = ("%s:%d: %s: there is no %s"):format(page, link.line, link.target, path)
      elseif anchor ~= "" and not links.anchors(content)[anchor] then
        faults[#faults + 1] = ("%s:%d: %s: %s has no such heading"):format(page, link.line, link.target, path)
      end
    end
  end
  return faults, count
end

local CODE_PAGES = { "CONTRIBUTING.md", "docs/design.md" }
local SOURCES = "git ls-files -- csrc lua spec bench build-aux conformance examples"

-- Returns the texts of all sources by their paths and the ends of these, true for each folder, and
-- the set of their words.
local function read_sources()
  local texts, words = {}, {}
  local list = assert(io.popen(SOURCES))
  for path in list:lines() do
    local text = links.read(path) or ""
    texts[path] = text
    for at in path:gmatch("()/") do
      texts[path:sub(at + 1)] = (texts[path:sub(at + 1)] or "") .. text
      texts[path:sub(1, at - 1)] = true
    end
    if path:find("%.[chl]") then
      for word in text:gmatch("[%a_][%w_]*") do words[word] = true end
    end
  end
  list:close()
  return texts, words
end

-- Returns an array of the files and functions of a page that do not exist.
local function lost_names(page, text, texts, words)
  local faults = {}
  local function check(good, what, of)
    if not good then faults[#faults + 1] = ("%s: there is no %s%s"):format(page, what, of or "") end
  end
  text = text:gsub("\n```.-\n```", ""):gsub("%s+", " ")
  for name in text:gmatch("`([%w_/%.%-]+)`") do
    local folder = name:match("^([%l%-]+)/")
    if (texts[folder] or name:find("^[%l_%d]+%.[ch]$")) and not name:find("NAME") then check(texts[name], name) end
  end
  for name in text:gmatch("`([%a_][%w_]*)%(%)`") do check(words[name], name .. "()") end
  for name, path in text:gmatch("`([%a_][%w_]*)%(?%)?` in `([%w_/%.%-]+)`") do
    if type(texts[path]) == "string" then
      check(texts[path]:find(name, 1, true), name, " in " .. path)
    end
  end
  return faults
end

-- Negative controls: the files of a small repository, and pages with one broken link each.
local files = { ["README.md"] = "# Top\n", ["docs/a.md"] = "# A: `x(y)`\n## Same\n## Same\n```\n# no heading\n```\n" }
local function read_control(path) return files[path] end
local broken = { "[a](docs/b.md)", "[a](docs/a.md#b)", "[a](#b)", "![a](b.svg)", "[long\ntext](b.md)",
  "[a](docs/a.md#no-heading)", "[a](../README.md)", "[a](docs/a.md) and [b](docs/b.md)", "[![a](README.md)](b.md)" }
local whole = { "[a](docs/a.md#a-xy)", "[a](docs/a.md#same-1)", "`[a](b.md)`", "```\n[a](b.md)\n```",
  "[a](https://b.example/#c)", "[long\ntext](docs/a.md)" }

local function fail(message)
  print("not ok - check_links: " .. message)
  os.exit(1)
end
for _, text in ipairs(broken) do
  if #faults_of("README.md", text, read_control) ~= 1 then fail("accepts " .. text) end
end
for _, text in ipairs(whole) do
  if #faults_of("README.md", text, read_control) ~= 0 then fail("rejects " .. text) end
end
for _, text in ipairs { "`csrc/b.c`", "`b.c`", "`g()`", "`f()` in `c.c`" } do
  local control = { csrc = true, ["csrc/a.c"] = "f", ["a.c"] = "f", ["c.c"] = "" }
  local found = lost_names("a.md", text .. " `csrc/a.c` `f()` in `a.c`", control, { f = true })
  if #found ~= 1 then fail("accepts the name " .. text) end
end
if #faults_of("docs/b.md", "[a](../README.md#top)", read_control) ~= 0 then fail("does not leave a folder") end

local good, pages, total = true, 0, 0
local list = assert(io.popen("git ls-files -- '*.md'"))
for page in list:lines() do
  local faults, count = faults_of(page, assert(links.read(page)), links.read)
  for _, fault in ipairs(faults) do
    good = false
    print("not ok - " .. fault)
  end
  pages, total = pages + 1, total + count
end
list:close()
local texts, words = read_sources()
for _, page in ipairs(CODE_PAGES) do
  for _, fault in ipairs(lost_names(page, assert(links.read(page)), texts, words)) do
    good = false
    print("not ok - " .. fault)
  end
end
if not good or total == 0 then os.exit(1) end
print(("ok - each of the %d links of %d pages leads to a file and a heading that exist"):format(total, pages))
