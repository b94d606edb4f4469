--- TLS inside nginx: parameters of cosockets for a node. The others come from nginx.conf, and
--- options.lua refuses them (`of_nginx_conf`).

local nginx_tls = {}

local FILE_MAX = 1048576

-- Parses a PEM file for cosockets. Returns the result, or nil and a message without its contents.
local function read_pem(path, what, parse)
  local file, why = io.open(path, "rb")
  if not file then return nil, "tls." .. what .. " cannot be read: " .. tostring(why) end
  local text = file:read(FILE_MAX) or ""
  file:close()
  local parsed, wrong = parse(text)
  if parsed then return parsed end
  return nil, "tls." .. what .. ": nginx cannot use " .. path .. ": " .. tostring(wrong)
end

-- Reads the client certificate and its key into `route`. Returns nothing, or a message.
local function read_certificate(route, cert, key)
  local loaded, ssl = pcall(require, "ngx.ssl")
  if not loaded then return "tls.cert needs nginx's module ngx.ssl: " .. tostring(ssl) end
  local wrong
  route.cert, wrong = read_pem(cert, "cert", ssl.parse_pem_cert)
  if not wrong then route.key, wrong = read_pem(key, "key", ssl.parse_pem_priv_key) end
  return wrong
end

--- Returns the TLS parameters of a node, which override those of the client: a table with
--- server_name, unverified, cert and key; or nil and a message. `host` is that of the address, or
--- "unix:...".
function nginx_tls.route(node, given, host)
  local own = type(node) == "table" and type(node.tls) == "table" and node.tls or {}
  local above = given and type(given.tls) == "table" and given.tls or {}
  local function option(name)
    if own[name] ~= nil then return own[name] end
    return above[name]
  end
  local cert, key = option("cert"), option("key")
  local route = { server_name = option("server_name"), unverified = option("dangerously_unverified") or false }
  if not route.server_name and host:sub(1, 5) ~= "unix:" then
    route.server_name = host:gsub("[%[%]]", "")
  elseif not route.server_name and not route.unverified then
    return nil, "TLS over a Unix socket needs tls.server_name, a name in the certificate"
  end
  if (cert == nil) ~= (key == nil) then return nil, "set both of tls.cert and tls.key" end
  local wrong = cert ~= nil and read_certificate(route, cert, key)
  if wrong then return nil, wrong end
  return route
end

return nginx_tls
