--- The status page of nginx in a real browser: it fits, in both colour schemes, and runs nothing.

-- nginx has its own Lua, LuaJIT: the specs are run once.
if not rawget(_G, "jit") then return end

local browser = require "spec.check.browser"
local helper = require "spec.helper"
local server = require "spec.nginx.server"

-- Names and reasons that would change the page if they were not escaped.
local INIT = [[
  figures = require "spec.figures"
  client = require("resty.redlock").new(addresses, PATIENT)
  fake = figures.of("10.0.0.1:6379", "unix:/<script>document.title='run'</script>", "10.0.0.3:6379",
    "10.0.0.4:6379", "a-very-long-host-name-" .. ("of-many-parts-"):rep(10) .. "example.org:6379")
  fake.nodes[3].up, fake.nodes[4].quarantined, fake.held, fake.waiting = false, true, 17, 4
  fake.nodes[1].latency = figures.histogram({ 0.0001, 0.001, 0.01 }, { 1, 98, 1 }, 0, 0.1)
  fake.operations.acquire.ok, fake.operations.release.unavailable = 1234567, 3
  local methods = require("redlock.core").client_methods
  methods.stats = function() return figures.copy(fake) end
  pages = require("redlock.nginx_pages").new("figures", { ["<b>orders</b> & co"] = client })
  methods.nodes = function()
    local nodes = {}
    for index, node in ipairs(fake.nodes) do nodes[index] = { node = node.node, state = "up" } end
    nodes[3].error, nodes[4].quarantine = "<img src=x onerror=\"document.title='run'\">", "it may have lost keys"
    return nodes
  end
]]

describe("the status page in a browser", function()
  local farm, nginx, window

  setup(function()
    farm = helper.farm(1)
    nginx = server.start {
      addresses = farm.addresses, init = INIT, http = "lua_shared_dict figures 1m;",
      server = "location = /status { content_by_lua_block { pages:status() } }",
    }
    window = browser.start(1280, 1000)
  end)
  teardown(function()
    if window then window:stop() end
    if nginx then nginx:stop() end
    farm:shut()
  end)

  local function open(scheme, width)
    window:devtools("Emulation.setEmulatedMedia",
      '{"features":[{"name":"prefers-color-scheme","value":"' .. scheme .. '"}]}')
    window:devtools("Emulation.setDeviceMetricsOverride",
      '{"width":' .. width .. ',"height":900,"deviceScaleFactor":1,"mobile":false}')
    window:open("http://127.0.0.1:" .. nginx.port .. "/status")
    local directory = os.getenv("REDLOCK_PICTURES")
    if directory then window:picture(directory .. "/status-" .. scheme .. "-" .. width .. ".png") end
  end

  -- The contrast of the text to its background by WCAG 2.
  local CONTRAST = [[(() => {
    const parts = colour => colour.match(/\d+(\.\d+)?/g).slice(0, 3).map(Number)
    const light = colour => parts(colour).map(c => c / 255)
      .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
    const page = light(getComputedStyle(document.body).backgroundColor)
    return Math.min(...[...document.querySelectorAll('h1,h2,th,td,dt,dd,p,span,caption')].map(element => {
      const text = light(getComputedStyle(element).color)
      return (Math.max(text, page) + 0.05) / (Math.min(text, page) + 0.05)
    }))
  })()]]

  for _, scheme in ipairs { "light", "dark" } do
    for _, width in ipairs { 1280, 360 } do
      it("page_fits_and_is_readable: " .. scheme .. ", " .. width .. " pixels", function()
        open(scheme, width)
        assert.are.equal("true", window:value("document.documentElement.scrollWidth <= window.innerWidth"))
        assert.is_true(tonumber(window:value(CONTRAST)) >= 4.5)
        local bright = window:value("getComputedStyle(document.body).backgroundColor") == '"rgb(255, 255, 255)"'
        assert.are.equal(scheme == "light", bright)
      end)
    end
  end

  it("page_shows_nodes_held_locks_and_waiters", function()
    open("light", 1280)
    local function text_of(selector)
      return window:value("[...document.querySelectorAll('" .. selector .. "')].map(e => e.innerText).join('|')")
    end
    assert.are.equal('"<b>orders</b> & co"', (text_of("h2"):gsub("\\u003C", "<")))
    local tiles = text_of("dl > div"):gsub("\\n+", "=")
    assert.is_truthy(tiles:find("held locks=17|waiters=4|nodes up=3 of 5|quorum=3|", 1, true), tiles)
    local rows = text_of("tr")
    assert.is_truthy(rows:find("10.0.0.1:6379\\tup\\t1 ms\\t1 ms\\t0", 1, true), rows)
    assert.is_truthy(rows:find("acquire\\t1234567\\t0", 1, true), rows)
    assert.is_truthy(rows:find("release\\t0\\t3", 1, true), rows)
    assert.are.equal("true", window:value("document.body.innerText.includes('it may have lost keys')"))
  end)

  it("page_runs_nothing_and_loads_nothing", function()
    open("light", 1280)
    assert.are.equal('"redlock"', window:value("document.title"))
    assert.are.equal("0", window:value("document.scripts.length + document.images.length"))
    assert.are.equal("true", window:value(
      "performance.getEntriesByType('resource').every(entry => entry.name.endsWith('/favicon.ico'))"))
    local script = "<script>document.title='run'</script>"
    assert.are.equal("true", window:value('document.body.innerText.includes("' .. script .. '")'))
  end)

  it("page_loads_itself_again", function()
    open("light", 1280)
    window:value("window.marked = true")
    window:value("(window.marked = true)")
    helper.eventually(function() return window:value("window.marked === undefined") == "true" end, "the next page", 60)
  end)
end)
