-- Prepares the site: pages, pictures, linked sources, and API pages that are made from the sources.
--
--     lua build-aux/site.lua DIRECTORY       then: mkdocs build -f DIRECTORY/mkdocs.yml
--
-- SPDX-License-Identifier: MIT

local here = arg[0]:match("^.*/") or ""
local links = dofile(here .. "links.lua")
local pages = dofile(here .. "site/pages.lua")
local markup = dofile(here .. "site/markup.lua")
local lua_api = dofile(here .. "site/lua_api.lua")
local c_api = dofile(here .. "site/c_api.lua")

local directory = assert(arg[1], "site: name the directory to write")

local function write(path, text)
  local name = directory .. "/" .. path
  assert(os.execute("mkdir -p '" .. name:gsub("[^/]*$", "") .. "'"))
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
end

local function read(path) return assert(links.read(path), "site: cannot read " .. path) end

-- The files that pages link to.
local linked = {}
local function convert(path)
  write("pages/" .. path, pages.convert(links, path, read(path), function(target) linked[target] = true end))
end

local list = assert(io.popen("ls README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md"))
for path in list:lines() do convert(path) end
list:close()

for path in pairs(linked) do
  local kind = pages.kind_of(path)
  if kind == "picture" then write("pages/" .. path, read(path)) end
  if kind == "source" then write("pages/" .. path .. ".md", pages.of_source(path, read(path))) end
end

-- Returns the manual page with one title.
local function manual(path)
  local pipe = assert(io.popen("mandoc -T markdown " .. path))
  local text = pipe:read("*a")
  assert(pipe:close(), "site: mandoc cannot convert " .. path)
  return "# redlock(1)" .. ("\n" .. text:gsub("^[^\n]*\n", ""):gsub("\n[^\n]*\n*$", "")):gsub("\n#", "\n##") .. "\n"
end
write("pages/docs/redlock.1.md", manual("docs/redlock.1"))
write("pages/api/lua.md", lua_api.page(markup, { read("lua/redlock.lua"), read("lua/redlock/types.lua") }))
write("pages/api/c.md", c_api.page(markup, read("csrc/include/redlock.h")))
write("pages/site.css", read(here .. "site/site.css"))
write("mkdocs.yml", read(here .. "site/mkdocs.yml"))
