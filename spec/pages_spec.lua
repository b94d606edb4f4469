--- The code blocks of the pages, run as they are but for their ports.

if _VERSION == "Lua 5.1" then return end

local helper = require "spec.helper"
local page = require "spec.page"

local INSTALL = "make install LUA_VERSION=5.4 && ldconfig"

-- spec/nginx/pages_spec.lua runs the configurations of nginx.
-- The first two pages install by themselves, and each of their blocks is run.
local PAGES = { ["README.md"] = "", ["docs/get-started.md"] = "", ["docs/lua.md"] = INSTALL,
  ["docs/recipes.md"] = INSTALL }
local LANGUAGES = { sh = true, text = true, lua = true, c = true, nginx = true }

local function commands_of(blocks)
  local commands = ""
  for _, block in ipairs(blocks) do
    if block.language == "sh" then commands = commands .. block.text end
  end
  return commands
end

local function read(path)
  local file = io.open(path)
  local text = file and file:read("*a")
  if file then file:close() end
  return text
end

-- The anchors that GitHub gives to the headings of a page.
local function anchors_of(text)
  local anchors = {}
  for heading in ("\n" .. text):gsub("\n```.-\n```", ""):gmatch("\n#+ ([^\n]+)") do
    anchors[heading:lower():gsub("[^%w%s_-]", ""):gsub(" ", "-")] = true
  end
  return anchors
end

describe("pages", function()
  it("each link leads to a file and a heading", function()
    for path in io.popen("ls *.md docs/*.md .github/*.md .github/*/*.md 2>/dev/null"):lines() do
      local text, directory = read(path), path:match("^.*/") or ""
      for target in text:gsub("\n```.-\n```", ""):gmatch("%]%(([^)%s]+)%)") do
        if not target:find("^https?://") then
          local file, anchor = target:match("^([^#]*)#?(.*)$")
          local linked = file == "" and text or read(directory .. file)
          assert.is_truthy(linked or os.execute("test -d " .. directory .. file), path .. " links to " .. target)
          assert.is_true(anchor == "" or anchors_of(linked)[anchor], path .. " links to " .. target)
        end
      end
    end
  end)

  it("each file and each C function that a page names exists", function()
    local files = io.popen("git ls-files"):read("*a")
    local header = read("csrc/include/redlock.h") .. read("csrc/include/redlock_tls.h")
    local core = io.popen("cat csrc/*/*.[ch] csrc/*/*/*.[ch] csrc/*/*/*/*.[ch]"):read("*a")
    local wrong = {}
    for path in io.popen("ls *.md docs/*.md"):lines() do
      for code in read(path):gsub("\n```.-\n```", ""):gmatch("`([^`\n]+)`") do
        local file = code:match("^[%w_/%-]+%.%l+$")
        local call = code:match("^(redlock_[%w_]+)%(%)$")
        local name = code:match("^(rl_[%w_]+)%(?%)?$")
        local test = code:match("^[%w_]+_test$")
        if file and file:find("NAME") or code:find("check_name") or code:find("^build/") then
          file = nil -- a pattern, or made by a run
        end
        if file and (file:find("^rl_") and not files:find("/" .. file .. "\n", 1, true)
            or file:find("^%l[%w_%-]*/") and not files:find(file .. "\n", 1, true))
          or call and not header:find(call .. "(", 1, true)
          or test and not files:find("/" .. test .. ".c\n", 1, true)
          or name and not core:find(name, 1, true) and not files:find(name .. ".", 1, true) then
          wrong[#wrong + 1] = path .. ": " .. code
        end
      end
    end
    assert.are.same({}, wrong)
  end)

  it("docs/cli.md has the options and the exit statuses of --help", function()
    local help = io.popen((os.getenv("BUILD") or "build") .. "/bin/redlock --help"):read("*a")
    local cli = read("docs/cli.md")
    for option in help:gmatch("%f[%w-]%-%-%l[%l-]+") do
      assert.is_truthy(cli:find("`" .. option:gsub("%-", "%%-") .. "[ `]"), option .. " is missing")
    end
    for option in cli:gmatch("`(%-%-%l[%l-]+)[ `]") do
      assert.is_truthy(help:find(option, 1, true), option .. " is no option")
    end
    for status in help:match("Exit status.*$"):gmatch("\n  (%d+) ") do
      assert.is_truthy(cli:find("\n| [^|]*%f[%d]" .. status .. "%f[%D]"), "the exit status " .. status .. " is missing")
    end
  end)

  for path, before in pairs(PAGES) do
    it("each block of " .. path .. " works as it is", function()
      page.run(path, page.blocks(path), before)
    end)

    it("each named block of " .. path .. " is run", function()
      local blocks = page.blocks(path)
      local commands = commands_of(blocks)
      for _, block in ipairs(blocks) do
        local place = path .. ":" .. block.line
        local is_first = before == ""
        assert.is_true(LANGUAGES[block.language] or not is_first, place .. " has an unknown language")
        if block.name and block.language ~= "yaml" then
          local module = block.name:gsub("%.lua$", "")
          assert.is_truthy(commands:find(block.name, 1, true) or commands:find(module, 1, true),
            place .. ": no command runs it")
        elseif block.language == "lua" or block.language == "c" then
          assert.is_false(is_first, place .. " has no name")
        end
      end
    end)
  end

  it("each block of Lua compiles", function()
    for path in io.popen("ls README.md docs/*.md"):lines() do
      for _, block in ipairs(page.blocks(path)) do
        local place = path .. ":" .. block.line
        if block.language == "lua" then assert.is_truthy(load(block.text, "=" .. place)) end
      end
    end
  end)

  it("the C program of README.md reports a wrong address, and a client without nodes", function()
    local blocks = {}
    for _, block in ipairs(page.blocks("README.md")) do
      if block.name == "lock.c" then
        block.text = block.text:gsub("127.0.0.1:7001", "127.0.0.1:99999")
        blocks[#blocks + 1] = block
      elseif block.text:find("lock.c", 1, true) then
        block.text = block.text:gsub("%./lock", './lock; echo "exit status $?"')
        blocks[#blocks + 1] = block
      end
    end
    blocks[#blocks + 1] = { language = "text", line = 0, text = "exit status 1\n" }
    blocks[#blocks + 1] = { language = "sh", line = 0, text = "sed 's/i < 3/i < 0/' lock.c >none.c\n"
      .. "cc -o none none.c $(pkg-config --cflags --libs redlock)\n./none 2>&1; echo \"exit status $?\"\n" }
    blocks[#blocks + 1] = { language = "text", line = 0, text = "the client has no nodes\nexit status 1\n" }
    page.run("README.md", blocks, INSTALL)
  end)

  it("the command of the compose file starts a node that keeps its keys", function()
    for _, block in ipairs(page.blocks("docs/recipes.md")) do
      local arguments = block.text:match("\n    command: redis%-server ([^\n]+)")
      if arguments then
        local farm = helper.farm(1, arguments)
        local always = farm[1]:command("CONFIG", "GET", "appendfsync")
        farm:shut()
        assert.are.same({ "appendfsync", "always" }, always)
        return
      end
    end
    error("docs/recipes.md has no compose file")
  end)
end)
