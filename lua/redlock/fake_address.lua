--- Addresses of nodes, as rl_address.c reads them. Messages name the fault and do not quote the
--- address, which may contain a password.

local HOST_MAX, PATH_MAX, TEXT_MAX, DB_MAX = 255, 107, 512, 1000000
local NO_PASSWORD = "a username needs a password; a password alone is :password@"
local SENTINELS_MAX, MASTER_MAX = 9, 64

local address = {}

local function unescaped(text, what)
  local wrong
  local plain = text:gsub("%%(.?.?)", function(digits)
    if not digits:find("^%x%x$") then
      wrong = "the " .. what .. " has a %-escape that is not two hex digits"
      return ""
    end
    return string.char(tonumber(digits, 16))
  end)
  if wrong then return nil, wrong end
  if #plain > TEXT_MAX then return nil, "the " .. what .. " is longer than " .. TEXT_MAX .. " bytes" end
  return plain
end

local function number(text, most)
  local value = text:find("^%d+$") and tonumber(text)
  return value and value <= most and value or nil
end

local function read_db(node, text)
  node.db = number(text, DB_MAX)
  return not node.db and "the database must be a number from 0 to " .. DB_MAX or nil
end

local function read_host(node, text)
  if text == "" then return "the host is missing" end
  if #text > HOST_MAX then return "the host is longer than " .. HOST_MAX .. " bytes" end
  if text:find("[\1-\32\127/@?#%[%]\"'<>\\]") then return "the host has a character that no host name has" end
  node.host = text
end

local function read_port(node, text)
  local port = number(text, 65535)
  if not port or port < 1 then return "the port must be a number from 1 to 65535" end
  node.port = port
end

local function read_host_port(node, text)
  local host, rest
  if text:sub(1, 1) == "[" then
    host, rest = text:match("^%[(.-)%](.*)$")
    if not host then return "the IPv6 address has no closing bracket" end
    if rest ~= "" and rest:sub(1, 1) ~= ":" then return "only a port can follow the bracket" end
  else
    if text:find(",", 1, true) then return "an address names one node: pass a list of several addresses" end
    host, rest = text:match("^([^:]*)(.*)$")
    if rest:find(":", 2, true) then return "an IPv6 address needs brackets: [::1]:6379" end
  end
  return read_host(node, host) or (rest ~= "" and read_port(node, rest:sub(2))) or nil
end

local function read_user(node, text)
  local user, password = text:match("^([^:]*):(.*)$")
  local plain, wrong = unescaped(user or text, "username")
  if not plain then return wrong end
  if plain:find("\0", 1, true) then return "the username must not contain a NUL byte" end
  node.has_username = plain ~= ""
  if password then
    plain, wrong = unescaped(password, "password")
    if not plain then return wrong end
    node.has_password = true
  end
end

local function read_path(node, text)
  local path, query = text:match("^([^?]*)(.*)$")
  if path:sub(1, 1) ~= "/" then return "the path of a Unix socket must begin with '/': unix:///path" end
  local plain, wrong = unescaped(path, "path")
  if not plain then return wrong end
  if plain:find("\0", 1, true) then return "the path must not contain a NUL byte" end
  if #plain > PATH_MAX then return "the path is longer than " .. PATH_MAX .. " bytes" end
  node.path = plain
  if query == "" then return end
  local db = query:match("^%?db=(.*)$")
  if not db then return "only ?db=n can follow the path" end
  return read_db(node, db)
end

local function read_url(node, text)
  local host_port, db = text:match("^([^/]*)/?(.*)$")
  return read_host_port(node, host_port) or (db ~= "" and read_db(node, db)) or nil
end

-- Appends the Sentinel that was read into `host` and `port`. Returns nothing, or a message.
local function add_sentinel(node, list)
  local host = node.host:find(":", 1, true) and "[" .. node.host .. "]" or node.host
  local one = ("%s:%d"):format(host, node.port)
  for _, named in ipairs(list) do
    if named == one then return "a Sentinel is named twice" end
  end
  if #list == SENTINELS_MAX then return "more than " .. SENTINELS_MAX .. " Sentinels are named" end
  list[#list + 1] = one
  if #table.concat(list, ",") > HOST_MAX then
    return "the list of Sentinels is longer than " .. HOST_MAX .. " bytes"
  end
end

-- The login before the list is that of the Sentinels, not of the master.
local function read_sentinels(node, text)
  if node.has_username and not node.has_password then return NO_PASSWORD end
  node.has_username, node.has_password = nil, nil
  local hosts, name = text:match("^([^/]*)/?(.*)$")
  if name == "" or #name > MASTER_MAX or name:find("[^%w._-]") then
    return "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"
  end
  local list = {}
  for part in (hosts .. ","):gmatch("([^,]*),") do
    node.port = 26379
    local wrong = read_host_port(node, part) or add_sentinel(node, list)
    if wrong then return wrong end
  end
  node.sentinels = "sentinel://" .. table.concat(list, ",") .. "/" .. name
end

local function read_text(node, text)
  if text == "" then return "the address is empty" end
  if text:find("^unix:/") and not text:find("^unix://") then return read_path(node, text:sub(6)) end
  local scheme, rest = text:match("^(.-)://(.*)$")
  if not scheme then
    if text:find("@", 1, true) then
      return "an address with a username or a password must begin with redis://"
    end
    return read_host_port(node, text)
  end
  if scheme ~= "redis" and scheme ~= "rediss" and scheme ~= "unix" and scheme ~= "sentinel" then
    return "the scheme must be redis://, rediss://, unix:// or sentinel://"
  end
  local user, behind
  if scheme == "unix" then
    user, behind = rest:match("^([^/]*)@(.*)$")
  else
    user, behind = rest:match("^(.*)@(.*)$")
  end
  local wrong = user and read_user(node, user)
  if wrong then return wrong end
  rest = behind or rest
  if scheme == "unix" then return read_path(node, rest) end
  if scheme == "sentinel" then return read_sentinels(node, rest) end
  return read_url(node, rest)
end

local function read_parts(node, given)
  if given.path then
    if #given.path == 0 or #given.path > PATH_MAX then
      return "the path of a Unix socket must have 1 to " .. PATH_MAX .. " bytes"
    end
    node.path = given.path
    return
  end
  node.port = given.port or node.port
  return read_host(node, given.host)
end

local function too_long(text, what)
  return text and #text > TEXT_MAX and "the " .. what .. " is longer than " .. TEXT_MAX .. " bytes" or nil
end

-- Notes what the node does not get from its address. Returns nothing, or a message.
local function inherit(node, own, above)
  local own_login = node.has_password or own.password ~= nil
  local username = own.username or (not node.has_username and not own_login and above.username) or nil
  local password = own.password or (not node.has_password and above.password) or nil
  local wrong = too_long(username, "username") or too_long(password, "password")
  if wrong then return wrong end
  if (node.has_username or username) and not (node.has_password or password) and not above.credentials then
    return NO_PASSWORD
  end
  node.db = own.db or node.db or above.db or 0
end

--- Reads a node, a text or its parts. `above`: the options of its client. Returns its name and its
--- database; or nil and a message.
function address.read(given, above)
  local node = { port = 6379 }
  local parts = type(given) == "table" and given or {}
  local wrong
  if type(given) == "string" then
    wrong = read_text(node, given)
  else
    wrong = read_parts(node, given)
  end
  wrong = wrong or inherit(node, parts, above)
  if wrong then return nil, wrong end
  if node.path then return "unix:" .. node.path, node.db end
  if node.sentinels then return node.sentinels, node.db end
  local host = node.host:find(":", 1, true) and "[" .. node.host .. "]" or node.host
  return ("%s:%d"):format(host, node.port), node.db
end

return address
