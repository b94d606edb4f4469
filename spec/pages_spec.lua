--- Each code block of the first pages, run as it is but for its ports.

if _VERSION == "Lua 5.1" then return end

local page = require "spec.page"

-- spec/nginx/pages_spec.lua runs the blocks of nginx.
local LANGUAGES = { sh = true, text = true, lua = true, c = true, nginx = true }

describe("pages", function()
  for _, path in ipairs { "README.md", "docs/get-started.md" } do
    it("each block of " .. path .. " works as it is", function()
      page.run(path, page.blocks(path))
    end)

    it("each block of " .. path .. " is run", function()
      local commands = ""
      local blocks = page.blocks(path)
      for _, block in ipairs(blocks) do
        if block.language == "sh" then commands = commands .. block.text end
      end
      for _, block in ipairs(blocks) do
        local place = path .. ":" .. block.line
        assert.is_true(LANGUAGES[block.language], place .. " has the language '" .. block.language .. "'")
        if block.language == "lua" or block.language == "c" then
          assert.is_truthy(block.name and commands:find(block.name, 1, true), place .. ": no command runs it")
        end
      end
    end)
  end

  it("the C program of README.md reports a wrong address", function()
    local blocks = {}
    for _, block in ipairs(page.blocks("README.md")) do
      if block.name == "lock.c" then
        block.text = block.text:gsub("127.0.0.1:7001", "127.0.0.1:99999")
        blocks[#blocks + 1] = block
      elseif block.text:find("make install", 1, true) or block.text:find("lock.c", 1, true) then
        block.text = block.text:gsub("%./lock", './lock; echo "exit status $?"')
        blocks[#blocks + 1] = block
      end
    end
    blocks[#blocks + 1] = { language = "text", line = 0, text = "exit status 1\n" }
    page.run("README.md", blocks)
  end)
end)
