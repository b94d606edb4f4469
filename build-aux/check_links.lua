-- Checks that each link between pages leads to a file and to a heading that exist.
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
if not good or total == 0 then os.exit(1) end
print(("ok - each of the %d links of %d pages leads to a file and a heading that exist"):format(total, pages))
