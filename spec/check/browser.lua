--- A headless Chromium, driven through chromedriver.

local http = require "socket.http"
local ltn12 = require "ltn12"

local helper = require "spec.helper"

local browser = {}
browser.__index = browser

local ARGUMENTS = '"--headless","--no-sandbox","--disable-gpu","--disable-dev-shm-usage","--hide-scrollbars"'

local function read(path)
  local file = io.open(path)
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return text
end

local function request(method, url, body)
  local parts = {}
  local ok, status = http.request {
    method = method, url = url, sink = ltn12.sink.table(parts), source = ltn12.source.string(body or ""),
    headers = { ["content-type"] = "application/json", ["content-length"] = #(body or "") },
  }
  return ok and status or nil, table.concat(parts)
end

local function quote(text)
  return '"' .. text:gsub('[%c"\\]', function(byte) return ("\\u%04x"):format(byte:byte()) end) .. '"'
end

--- Starts a browser whose window has this size.
function browser.start(width, height)
  http.TIMEOUT = 60
  local directory = helper.directory .. "/browser"
  os.execute("mkdir -p " .. directory .. "/home")
  local self = setmetatable({}, browser)
  -- A group of its own, so that stop() ends every process of the browser.
  os.execute(("HOME=%s/home setsid sh -c 'echo $$ >%s/pid; exec chromedriver --port=0' >%s/log 2>&1 </dev/null &")
    :format(directory, directory, directory))
  self.pid = helper.eventually(function() return read(directory .. "/pid"):match("%d+") end, "chromedriver's pid")
  local port = helper.eventually(function() return read(directory .. "/log"):match(" port ([1-9]%d*)") end,
    "chromedriver's port", 100)
  self.server = "http://127.0.0.1:" .. port
  local _, answer = request("POST", self.server .. "/session",
    ('{"capabilities":{"alwaysMatch":{"goog:chromeOptions":{"args":[%s,"--window-size=%d,%d"]}}}}')
      :format(ARGUMENTS, width, height))
  local id = answer:match('"sessionId":"([^"]+)"')
  assert(id, "the browser does not start: " .. answer:sub(1, 500))
  self.session = self.server .. "/session/" .. id
  return self
end

--- Sends a command of the DevTools protocol, whose parameters are JSON.
function browser:devtools(command, parameters)
  local status, answer = request("POST", self.session .. "/goog/cdp/execute",
    '{"cmd":' .. quote(command) .. ',"params":' .. parameters .. "}")
  assert(status == 200, command .. ": " .. answer:sub(1, 500))
end

--- Loads a page.
function browser:open(url)
  local status, answer = request("POST", self.session .. "/url", '{"url":' .. quote(url) .. "}")
  assert(status == 200, answer:sub(1, 500))
end

--- Returns the value of an expression in JavaScript, as JSON.
function browser:value(expression)
  local status, answer = request("POST", self.session .. "/execute/sync",
    '{"script":' .. quote("return " .. expression) .. ',"args":[]}')
  assert(status == 200, answer:sub(1, 500))
  return (answer:match('^{"value":(.*)}$'))
end

--- Writes a picture of the page in PNG.
function browser:picture(path)
  local _, answer = request("GET", self.session .. "/screenshot")
  helper.write_file(path .. ".64", (answer:match('"value":"([^"]+)"')))
  os.execute("base64 -d " .. path .. ".64 >" .. path .. "; rm " .. path .. ".64")
end

function browser:stop()
  if self.session then request("DELETE", self.session) end
  os.execute("kill -TERM -" .. self.pid .. " 2>/dev/null")
  helper.eventually(function() return not os.execute("kill -0 -" .. self.pid .. " 2>/dev/null")
    or helper.is_gone(self.pid) end, "the browser to end")
end

return browser
