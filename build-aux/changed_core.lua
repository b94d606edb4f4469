-- What the scripts that test changed copies of the core share: shell commands, files, and a change of a text.
--
-- SPDX-License-Identifier: MIT

local changed = {}

-- Output and exit status of a shell command; works in every version of Lua.
function changed.run(command)
  local pipe = assert(io.popen("( " .. command .. " ) 2>&1; echo \"status $?\""))
  local text = pipe:read("*a")
  pipe:close()
  local output, status = text:match("^(.*)status (%d+)%s*$")
  return output, tonumber(status)
end

-- Its output; raises when it fails.
function changed.must(command)
  local output, status = changed.run(command)
  if status ~= 0 then
    error(command .. "\n" .. output, 0)
  end
  return output
end

function changed.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function changed.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- The text without white space, and where each of its bytes was.
local function compact(text)
  local bytes, places = {}, {}
  for place, byte in text:gmatch("()(%S)") do
    bytes[#bytes + 1] = byte
    places[#places + 1] = place
  end
  return table.concat(bytes), places
end

-- |text| with |to| in place of |from|, however that is laid out; or nil, and "not there" or "ambiguous".
function changed.replace(text, from, to)
  local dense, places = compact(text)
  local wanted = compact(from)
  local first, last = dense:find(wanted, 1, true)
  if not first then
    return nil, "not there"
  elseif dense:find(wanted, last + 1, true) then
    return nil, "ambiguous"
  end
  return text:sub(1, places[first] - 1) .. to .. text:sub(places[last] + 1)
end

-- Runs |main|, which returns whether all is well, removes |scratch| and ends the program.
function changed.finish(main, scratch)
  local ok, result = pcall(main)
  changed.run("rm -rf " .. scratch)
  if not ok then
    print("not ok - " .. tostring(result))
  end
  os.exit(ok and result and 0 or 1)
end

return changed
