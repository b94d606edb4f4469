-- Counts what makes our English hard to read, and fails if a count exceeds its ceiling.
--
--     lua build-aux/check_language.lua [list NAME]          prints the places of one count
--
-- The ceilings are the figures that were reached: they only go down. Lower one whenever its count is lower.
-- CONTRIBUTING.md has the rules.
--
-- SPDX-License-Identifier: MIT

local PRODUCT = "csrc/core csrc/driver csrc/binding csrc/tls csrc/cli csrc/include lua"
local TESTS = "csrc/test spec bench examples build-aux"
local DOCS = "README.md CONTRIBUTING.md CHANGELOG.md docs"

-- The first commit whose subject the rules bind.
local FIRST_COMMIT = "6dfc0f7"

local RULES = {
  {
    name = "relative",
    what = "sentences that start with a relative clause (Who, What, Whoever, Whose)",
    where = PRODUCT .. " " .. TESTS .. " " .. DOCS,
    patterns = { "^%s*[/*%-#|]*%s*(Who)%f[%W]", "^%s*[/*%-#|]*%s*(What)%f[%W]",
      "%S[/*] (Who)%f[%W]", "%S[/*] (What)%f[%W]", "[%.:;|] (Who)%f[%W]", "[%.:;|] (What)%f[%W]",
      "%f[%w](Whoever)%f[%W]", "%f[%w](Whose)%f[%W]" },
    questions = true,
    ceiling = 504,
  },
  { name = "whether", what = "predicates documented as \"Whether ...\"", where = PRODUCT .. " " .. TESTS,
    patterns = { "[/*%-]%s*(Whether)%f[%W]" }, ceiling = 3 },
  { name = "nobody", what = "nobody, somebody, anybody, everybody", where = PRODUCT .. " " .. DOCS,
    patterns = { "%f[%a]([Nn]obody)%f[%A]", "%f[%a]([Ss]omebody)%f[%A]",
      "%f[%a]([Aa]nybody)%f[%A]", "%f[%a]([Ee]verybody)%f[%A]" },
    ceiling = 342 },
  { name = "long", what = "comment lines over 100 columns", where = "csrc", patterns = {}, columns = 100,
    ceiling = 1503 },
}

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text:gmatch("[^\n]+")
end

local function count_in(rule, line)
  local count = 0
  if rule.columns and #line > rule.columns and line:find("^%s*[/ ]?%*") then count = 1 end
  for _, pattern in ipairs(rule.patterns) do
    for _ in line:gmatch(pattern) do count = count + 1 end
  end
  if rule.questions and line:find("?", 1, true) then return 0 end
  return count
end

local function check(rule, wants_list)
  local count = 0
  for path in lines_of("git ls-files -- " .. rule.where) do
    local number = 0
    -- This file and the lists of its words would count themselves.
    if path ~= "build-aux/check_language.lua" and path:find("%.%a+$") and not path:find("%.hex$") then
      local file = io.open(path)
      for line in file and file:lines() or function() end do
        number = number + 1
        local found = count_in(rule, line)
        count = count + found
        if found > 0 and wants_list then print(("%s:%d: %s"):format(path, number, line)) end
      end
      if file then file:close() end
    end
  end
  local good = count <= rule.ceiling
  print(("%s - %d %s (ceiling %d)"):format(good and "ok" or "not ok", count, rule.what, rule.ceiling))
  return good
end

-- A subject is imperative, of 60 characters at most, and has a body that says why.
local function check_commits()
  local bad = 0
  local log = "git log --no-merges --format='%%h%%x09%%s%%x09%%b%%x00' %s..HEAD 2>/dev/null | tr '\\n\\0' ' \\n'"
  for line in lines_of(log:format(FIRST_COMMIT)) do
    local hash, subject, body = line:match("^%s*(%S+)\t(.-)\t(.*)$")
    local trouble = subject and (#subject > 60 and "longer than 60 characters"
      or subject:find("^%S+: ") and "begins with a topic"
      or subject:find("%f[%w][Ww]ho%f[%W]") and "says who instead of what"
      or subject:find("^%l") and "begins in lower case"
      or not body:find("%S") and "has no body")
    if trouble then
      bad = bad + 1
      print(("  %s %s: %s"):format(hash, subject, trouble))
    end
  end
  print(("%s - %d commits since %s break the rules of subjects")
    :format(bad == 0 and "ok" or "not ok", bad, FIRST_COMMIT))
  return bad == 0
end

local good = true
for _, rule in ipairs(RULES) do
  if arg[1] ~= "list" or arg[2] == rule.name then good = check(rule, arg[1] == "list") and good end
end
if arg[1] ~= "list" then good = check_commits() and good end
os.exit(good and 0 or 1)
