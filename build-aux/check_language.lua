-- Counts what makes our English hard to read, and fails if a count exceeds its ceiling.
--
--     lua build-aux/check_language.lua [list NAME]          prints the places of one count
--
-- The ceilings are the figures that were reached: they only go down. Lower one whenever its count
-- is lower. CONTRIBUTING.md has the rules.
--
-- SPDX-License-Identifier: MIT

local PRODUCT = "csrc/core csrc/driver csrc/binding csrc/tls csrc/cli csrc/include lua"
local TESTS = "csrc/test spec bench examples build-aux conformance"
local DOCS = "README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs"
local TREE = PRODUCT .. " " .. TESTS .. " " .. DOCS

-- The first commit whose subject the rules bind, and how many since then break them.
local FIRST_COMMIT = "6dfc0f7"
local COMMIT_CEILING = 0

-- Words that were replaced, also as parts of identifiers. The terms are those of docs/design.md.
local RETIRED = { "owed", "owes", "debts?", "ballots?", "rl_listeners?", "keepers?", "carriers?", "unheard", "crowd",
  "slow_retry", "alarms?", "lent", "polite", "parked", "told" }

-- Pronouns that hide the actor.
local NO_ACTOR = { "others", "himself", "oneself", "him", "his", "someone", "anyone", "everyone", "whom", "theirs",
  "one's" }

-- Phrases that hide a duty or its bearer: "must" and the present tense say it.
local STIFF = { "is to be", "are to be", "was to be", "were to be", "has to be", "have to be", "had to be", "any more" }

local function whole_words(words)
  local patterns = {}
  for index, word in ipairs(words) do patterns[index] = "%f[%a]" .. word:gsub("s%?$", "s?") .. "%f[%A]" end
  return patterns
end

local function count_patterns(patterns, line)
  local count = 0
  for _, pattern in ipairs(patterns) do
    for _ in line:gmatch(pattern) do count = count + 1 end
  end
  return count
end

-- Returns a counter of the places of some patterns in a line.
local function counter(patterns)
  return function(line) return count_patterns(patterns, line) end
end

local count_relative = counter { "^%s*[/*%-#|]*%s*(Who)%f[%W]", "^%s*[/*%-#|]*%s*(What)%f[%W]",
  "%S[/*] (Who)%f[%W]", "%S[/*] (What)%f[%W]", "[%.:;|] (Who)%f[%W]", "[%.:;|] (What)%f[%W]",
  "%f[%w](Whoever)%f[%W]", "%f[%w](Whose)%f[%W]" }
local count_whether = counter { "[/*%-]%s*(Whether)%f[%W]" }
local count_nobody = counter { "%f[%a][Nn]obody%f[%A]", "%f[%a][Ss]omebody%f[%A]", "%f[%a][Aa]nybody%f[%A]",
  "%f[%a][Ee]verybody%f[%A]" }
local count_retired_words = counter(whole_words(RETIRED))

-- alarm(2) is a system call, and a listener elsewhere is a socket that listens.
local function count_retired(line) return count_retired_words((line:gsub("%f[%w]alarm%(", ""))) end
local count_stiff = counter(whole_words(STIFF))
local count_no_actor = counter(whole_words(NO_ACTOR))


-- "The others" of something that was just named are no hidden actors.
local function count_actors(line) return count_no_actor((line:gsub("[Tt]he others", ""))) end

local function is_c(path) return path:find("%.[ch]$") end
local function is_script(path) return path:find("%.lua$") or path:find("%.sh$") or path:find("%.mk$") end
local function is_page(path) return path:find("%.md$") end

-- Returns true if the line is one of a comment.
local function is_comment(path, line)
  if is_c(path) then return line:find("^%s*/?%*") or line:find("//", 1, true) or line:find("/*", 1, true) end
  if path:find("%.lua$") then return line:find("^%s*%-%-") or line:find("%s%-%-%s") end
  return line:find("^%s*#")
end

local function is_sentence(path, line)
  return is_page(path) and not line:find("^[|!#]") and not line:find("^- `` ") and not line:find("^    ")
end

local RULES = {
  { name = "relative", what = "sentences that start with a relative clause (Who, What, Whoever, Whose)", where = TREE,
    count = function(line) return line:find("?", 1, true) and 0 or count_relative(line) end, ceiling = 0 },
  { name = "whether", what = "predicates documented as \"Whether ...\"", where = PRODUCT .. " " .. TESTS,
    count = count_whether, ceiling = 0 },
  { name = "nobody", what = "nobody, somebody, anybody, everybody", where = PRODUCT .. " " .. DOCS,
    count = count_nobody, ceiling = 2 },
  { name = "actor", what = "comments and sentences with others, him, his and the like for an actor", where = TREE,
    count = function(line, path)
      return (is_comment(path, line) or is_sentence(path, line)) and count_actors(line) or 0
    end, ceiling = 17 },
  { name = "stiff", what = "is to be, has to be, any more: phrases for which there is a plain word", where = TREE,
    count = function(line, path)
      return (is_comment(path, line) or is_sentence(path, line)) and count_stiff(line) or 0
    end, ceiling = 38 },
  { name = "retired", what = "retired words, also in identifiers", where = TREE, count = count_retired,
    ceiling = 0 },
  { name = "long", what = "comment lines of C over 100 columns", where = "csrc examples bench",
    count = function(line, path)
      return is_c(path) and #line > 100 and line:find("^%s*[/ ]?%*") and 1 or 0
    end, ceiling = 1 },
  { name = "long-script", what = "comment lines of Lua, shell and make over 100 columns", where = TREE .. " Makefile",
    count = function(line, path)
      local is_whole = line:find("^%s*%-%-%-?[^@-]") or line:find("^%s*#")
      return is_script(path) and #line > 100 and is_whole and not line:find("-----", 1, true) and 1 or 0
    end, ceiling = 14 },
  { name = "long-page", what = "lines of pages over 120 columns with several sentences", where = DOCS,
    count = function(line, path)
      return is_sentence(path, line) and #line > 120 and line:find("[%.:] %u") and 1 or 0
    end, ceiling = 0 },
}

local LABEL_CEILING = 0
local WORD_CEILING = 0

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text:gmatch("[^\n]+")
end

-- Calls visit(path, number, line) for each line of the files that git knows in some places.
local function each_line(where, visit)
  for path in lines_of("git ls-files -- " .. where) do
    -- This file and the lists of its words would count themselves.
    if not path:find("build%-aux/check_language.lua") and path:find("[%./]%a+$") and not path:find("%.hex$") then
      local file, number = io.open(path), 0
      for line in file and file:lines() or function() end do
        number = number + 1
        visit(path, number, line)
      end
      if file then file:close() end
    end
  end
end

local function report(count, what, ceiling)
  local good = count <= ceiling
  print(("%s - %d %s (ceiling %d)"):format(good and "ok" or "not ok", count, what, ceiling))
  return good
end

local function check(rule, wants_list)
  local count = 0
  local fenced
  each_line(rule.where, function(path, number, line)
    if number == 1 then fenced = false end
    if is_page(path) and line:find("^```") then fenced = not fenced end
    local found = is_page(path) and fenced and 0 or rule.count(line, path)
    count = count + found
    if found > 0 and wants_list then print(("%s:%d: %s"):format(path, number, line)) end
  end)
  return report(count, rule.what, rule.ceiling)
end

-- A label such as ACQ-1 names a numbered step or rule. One module defines it, in an indented line.
local function check_labels(wants_list)
  local module_of, count = {}, 0
  each_line(PRODUCT .. " docs", function(path, number, line)
    local label = line:match("^%s*[/%*%-]+%s%s+%(?(%u+%-?%d+)%. ") or line:match("^| (%u+%-?%d+) | ")
    local module = path:gsub("%.%a+$", "")
    if label and module_of[label] ~= module then
      if module_of[label] then
        count = count + 1
        if wants_list then print(("%s:%d: %s is also a label of %s"):format(path, number, label, module_of[label])) end
      end
      module_of[label] = module
    end
  end)
  return report(count, "labels of rules that a second module uses", LABEL_CEILING)
end

-- A sentence may take several lines of a paragraph or of an item.
local function check_words(wants_list)
  local count, paragraph, start, fenced = 0, "", nil, false
  local function finish()
    for sentence in (paragraph:gsub("`[^`]*`", "code"):gsub("%]%([^)]*%)", "]") .. " "):gmatch("(.-)[%.:;?!]%s") do
      local _, words = sentence:gsub("%w%S*", "")
      if words > 25 then
        count = count + 1
        if wants_list then print(("%s: %d words: %s"):format(start, words, sentence)) end
      end
    end
    paragraph, start = "", nil
  end
  each_line(DOCS, function(path, number, line)
    if number == 1 then
      finish()
      fenced = false
    end
    if line:find("^```") then fenced = not fenced end
    if fenced or not line:find("%S") or not is_sentence(path, line) or line:find("^```") then return finish() end
    if line:find("^%s*[-*] ") or line:find("^%s*%d+%. ") then finish() end
    start = start or path .. ":" .. number
    paragraph = paragraph .. line:gsub("^%s*[-*%d.]+ ", "") .. " "
  end)
  finish()
  return report(count, "sentences of pages with more than 25 words", WORD_CEILING)
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
  return report(bad, ("commits since %s that break the rules of subjects"):format(FIRST_COMMIT), COMMIT_CEILING)
end

local good = true
local wants_list = arg[1] == "list"
for _, rule in ipairs(RULES) do
  if not wants_list or arg[2] == rule.name then good = check(rule, wants_list) and good end
end
if not wants_list or arg[2] == "words" then good = check_words(wants_list) and good end
if not wants_list or arg[2] == "labels" then good = check_labels(wants_list) and good end
if not wants_list then good = check_commits() and good end
os.exit(good and 0 or 1)
