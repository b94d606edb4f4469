-- Checks that each link of the built site leads to a file and to an anchor that exist, and that the
-- API pages have all functions.
--
--     lua build-aux/check_site.lua [build/site]
--
-- SPDX-License-Identifier: MIT

local links = dofile((arg[0]:match("^.*/") or "") .. "links.lua")

local function without_entities(text) return (text:gsub("&amp;", "&"):gsub("%%20", " ")) end

-- Returns the set of the anchors of an HTML page.
local function anchors_of(text)
  local anchors = {}
  for id in text:gmatch('%sid="([^"]*)"') do anchors[without_entities(id)] = true end
  for name in text:gmatch('<a name="([^"]*)"') do anchors[name] = true end
  return anchors
end

-- Returns an array of the broken links of a page, and its number of links.
local function faults_of(page, text, read)
  local faults, count = {}, 0
  for attribute in text:gsub("<!%-%-.-%-%->", ""):gmatch('<%a[^>]-%s[hs]r[ec]f?="([^"]*)"') do
    local target = without_entities(attribute)
    if not links.is_external(target) and not target:find("^//") then
      count = count + 1
      local path, anchor = links.resolve(target:find("^/") and "" or page, (target:gsub("^/", "")))
      path = (path == "" or path:find("/$")) and path .. "index.html" or path:gsub("%?.*$", "")
      local content = read(path)
      if not content then
        faults[#faults + 1] = ("%s: %s: there is no %s"):format(page, target, path)
      elseif anchor ~= "" and not anchors_of(content)[anchor] then
        faults[#faults + 1] = ("%s: %s: %s has no such anchor"):format(page, target, path)
      end
    end
  end
  return faults, count
end

-- Negative controls.
local files = { ["a.html"] = '<p id="x">', ["docs/b.html"] = '<h2 class="y" id="z">' }
local function read_control(path) return files[path] end
local broken = { '<a href="c.html">', '<a class="x" href="a.html#z">', '<img alt="" src="docs/c.svg">',
  '<a href="#z">', '<script src="/c.js">', '<a href="a.html"><a href="docs/b.html#x">' }
local whole = { '<a href="a.html#x">', '<a href="docs/b.html#z">', '<a href="https://c.example/">',
  '<!-- <a href="c"> -->' }
local function expect(texts, count)
  for _, text in ipairs(texts) do
    assert(#faults_of("a.html", text, read_control) == count, "check_site is wrong about " .. text)
  end
end
expect(broken, 1)
expect(whole, 0)

local site = arg[1] or "build/site"
local cache = {}
local function read(path)
  if cache[path] == nil then cache[path] = links.read(site .. "/" .. path) or false end
  return cache[path]
end

-- Returns the functions of a source that have no anchor in its page, and the number of all.
local function lacking(text, anchors, pattern)
  local names, count = {}, 0
  for name in text:gmatch(pattern) do
    count = count + 1
    local anchor = name:find("^redlock_") and name or name:gsub("[^%w]+", "-")
    if not name:find("_sized$") and not anchors[anchor] then names[#names + 1] = name end
  end
  return names, count
end
local LUA_FUNCTION, C_FUNCTION = "\nfunction ([%w_.:]+)%(", "\nREDLOCK_%u+ [%w_ ]-[ *](redlock_[%w_]+)%("
assert(#lacking("\nfunction lock:free()\nfunction lock:is_held()", { ["lock-is-held"] = true }, LUA_FUNCTION) == 1)
assert(#lacking("\nREDLOCK_EXTERN const char *redlock_x(void);", { redlock_y = true }, C_FUNCTION) == 1)

local good, pages, total = true, 0, 0
for page, source in pairs({ ["api/lua.html"] = "lua/redlock/types.lua", ["api/c.html"] = "csrc/include/redlock.h" }) do
  local pattern = page:find("lua") and LUA_FUNCTION or C_FUNCTION
  local names, count = lacking(links.read(source), anchors_of(read(page) or ""), pattern)
  good = good and #names == 0 and count > 30
  for _, name in ipairs(names) do print(("not ok - %s lacks %s of %s"):format(page, name, source)) end
  if #names == 0 then print(("ok - %s has the %d functions of %s"):format(page, count, source)) end
end
local list = assert(io.popen("cd '" .. site .. "' && find . -name '*.html' | sed 's|^./||' | sort"))
for page in list:lines() do
  local faults, count = faults_of(page, read(page), read)
  for _, fault in ipairs(faults) do
    good = false
    print("not ok - " .. fault)
  end
  pages, total = pages + 1, total + count
end
list:close()
if not good or total == 0 then os.exit(1) end
print(("ok - each of the %d links of %d pages of the site leads to an existing file and anchor"):format(total, pages))
