--- The completions of the tool for bash, zsh and fish. Help, pages and completions have the same
--- names.
if _VERSION == "Lua 5.1" then return end

local tables = dofile("build-aux/cli_tables.lua")

local BASH = [[
. completion/redlock.bash
COMP_WORDS=(%s "%s")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_redlock
printf '%%s\n' "${COMPREPLY[@]}"
]]

-- Runs a command with a home directory of its own. Returns its output, and true if it succeeded.
local function run(command)
  local pipe = assert(io.popen(([[
    export HOME=$(mktemp -d)
    (%s) 2>&1
    status=$?
    rm -rf "$HOME"
    echo "status $status"]]):format(command)))
  local output, status = pipe:read("*a"):match("^(.*)status (%d+)\n$")
  pipe:close()
  return output, status == "0"
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Returns the sorted words that a shell offers for |current| after the line |before|.
local function bash_offers(before, current)
  local output = run("bash --norc -c " .. quoted(BASH:format(before, current)))
  local words = {}
  for word in output:gmatch("[^\n]+") do words[#words + 1] = word end
  table.sort(words)
  return words
end

local function fish_offers(line)
  local output = run("fish --no-config -c " .. quoted("source completion/redlock.fish; complete -C "
    .. quoted(line):gsub("^(.*)$", "%1")))
  local words = {}
  for word in output:gmatch("([^\t\n]+)[^\n]*\n") do words[#words + 1] = word end
  table.sort(words)
  return words
end

local function has(list, wanted)
  for _, word in ipairs(list) do
    if word == wanted then return true end
  end
  return false
end

local function verbs()
  local names = {}
  for _, verb in ipairs(tables.verbs) do names[#names + 1] = verb.name end
  table.sort(names)
  return names
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

describe("completion", function()
  it("bash offers the verbs", function()
    assert.are.same(verbs(), bash_offers("redlock", ""))
    assert.are.same({ "doctor" }, bash_offers("redlock --tls -n h1", "doc"))
    assert.are.same(verbs(), bash_offers("redlock help", ""))
  end)

  it("bash offers the options of the verb", function()
    assert.are.same({ "--wait" }, bash_offers("redlock run", "--wa"))
    assert.are.same({}, bash_offers("redlock nodes", "--wa"))
    assert.are.same({ "--wait" }, bash_offers("redlock", "--wa"))
  end)

  it("bash offers values", function()
    assert.are.same({ "1.2", "1.3" }, bash_offers("redlock --tls-min-version", ""))
    assert.are.same({ "1.2", "1.3" }, bash_offers("redlock --tls-min-version =", ""))
    assert.are.same({ "warn" }, bash_offers("redlock run --on-lost", "w"))
    assert.are.same({ "README.md" }, bash_offers("redlock --nodes-file", "READ"))
    assert.are.same({}, bash_offers("redlock --wait", ""))
    assert.are.same({}, bash_offers("redlock run", ""))
  end)

  it("bash offers commands after the resource", function()
    assert.is_true(has(bash_offers("redlock run job", "tru"), "true"))
    assert.is_true(has(bash_offers("redlock -n h run -w 3s job --", "tru"), "true"))
    assert.are.same({ "README.md" }, bash_offers("redlock run job -- cat", "READ"))
    assert.are.same({ "--wait" }, bash_offers("redlock run job", "--wai"))
    assert.are.same({}, bash_offers("redlock run job cat", "--wai"))
    assert.is_true(has(bash_offers("redlock lead job", "tru"), "true"))
    assert.are.same({ "README.md" }, bash_offers("redlock lead job -- cat", "READ"))
  end)

  it("zsh completes the command of each verb that runs one", function()
    local text = read("completion/_redlock")
    assert.is_truthy(text:find("\n  run%)[^\n]*_normal'"))
    assert.is_truthy(text:find("\n  lead%)[^\n]*_normal'"))
  end)

  it("zsh loads it", function()
    local output, ok = run("zsh -f -n completion/_redlock")
    assert.is_truthy(ok, output)
    output, ok = run("zsh -f -c 'fpath=(completion $fpath); autoload -Uz compinit _redlock && compinit -D -u "
      .. "&& [[ $_comps[redlock] = _redlock ]]'")
    assert.is_truthy(ok, output)
    assert.are.equal("", output)
  end)

  it("fish offers verbs and options", function()
    local _, ok = run("fish -n completion/redlock.fish")
    assert.is_truthy(ok)
    assert.are.same(verbs(), fish_offers("redlock "))
    assert.are.same({ "--wait" }, fish_offers("redlock run --wai"))
    assert.are.same({}, fish_offers("redlock nodes --wai"))
    assert.are.same({ "1.2", "1.3" }, fish_offers("redlock --tls-min-version "))
    assert.is_true(has(fish_offers("redlock run job tru"), "true"))
    assert.is_true(has(fish_offers("redlock run --wait 3s job -- tru"), "true"))
    assert.is_false(has(fish_offers("redlock run tru"), "true"))
    assert.is_true(has(fish_offers("redlock lead job tru"), "true"))
  end)
end)

describe("help, manual page, docs/cli.md and completions", function()
  local accepted = {}
  for _, group in ipairs(tables.groups) do
    for _, option in ipairs(#group.verbs > 0 and group.options or {}) do accepted[#accepted + 1] = option end
  end
  local help = run((os.getenv("BUILD") or "build") .. "/bin/redlock --help")
  local texts = { ["redlock --help"] = help, ["docs/redlock.1"] = read("docs/redlock.1"):gsub("Fl %-", "--"),
    ["docs/cli.md"] = read("docs/cli.md"), ["completion/redlock.bash"] = read("completion/redlock.bash"),
    ["completion/_redlock"] = read("completion/_redlock"),
    ["completion/redlock.fish"] = read("completion/redlock.fish"):gsub("%-l (%l)", "--%1") }

  it("name the same verbs and options", function()
    for name, text in pairs(texts) do
      for _, option in ipairs(accepted) do
        local pattern = "%-%-" .. option.name:gsub("%-", "%%-") .. "%f[^%w-]"
        assert.is_truthy(text:find(pattern), ("%s lacks --%s"):format(name, option.name))
      end
      for _, verb in ipairs(tables.verbs) do
        assert.is_truthy(text:find("%f[%w-]" .. verb.name:gsub("%-", "%%-") .. "%f[^%w-]"),
          ("%s lacks the verb %s"):format(name, verb.name))
      end
    end
  end)

  it("name no other option", function()
    local known = {}
    for _, option in ipairs(tables.options) do known[option.name] = true end
    for name, text in pairs(texts) do
      -- Options of other programs stand in code blocks.
      for option in text:gsub("\n```.-\n```", ""):gsub("\n    [^\n]*", ""):gmatch("%f[%w-]%-%-(%l[%l%d-]+)") do
        assert.is_true(known[option] == true, ("%s names --%s"):format(name, option))
      end
    end
  end)

  it("name the same exit statuses", function()
    for status in help:match("Exit status.*$"):gmatch("\n  (%d+) ") do
      assert.is_truthy(texts["docs/cli.md"]:find("\n| [^|]*%f[%d]" .. status .. "%f[%D]"),
        "docs/cli.md lacks the exit status " .. status)
      assert.is_truthy(texts["docs/redlock.1"]:find("\n%.It " .. status .. "%f[%D]"),
        "docs/redlock.1 lacks the exit status " .. status)
    end
  end)
end)
