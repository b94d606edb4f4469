-- Writes docs/messages.md, the table of all messages, from the sources; or checks that the page is
-- up to date.
--
--     lua build-aux/messages.lua [check]
--
-- A message is a string literal of at least two words. Adjacent literals are one message, and "..."
-- stands for the parts that are filled in.
--
-- SPDX-License-Identifier: MIT

local PAGE = "docs/messages.md"

-- X(error, name, kind, sentence) of rl_error.h: who has to act, and how.
local CODES = {
  ok = "nothing",
  pending = "wait for the end of the operation",
  taken = "try again later, or wait for the lock (`wait`, `retry_count`)",
  unavailable = "find out from the message which nodes failed; try again later",
  expired = "stop the work that needs the lock; use a longer `ttl`, or `auto_extend`",
  lost = "stop the work that needs the lock; find out why nodes lost the key (eviction, restart, `force_release`)",
  held = "release the lock first, or use another lock object",
  not_held = "acquire the lock first",
  closed = "make a new client",
  cancelled = "nothing: the program, or the end of the request, cancelled the operation",
  max_hold = "finish the work sooner, or raise `max_hold`",
  clock = "synchronise the clocks of the nodes; stop the work that needs the lock",
  invalid = "correct the argument that the message names",
  busy = "wait for the operation in flight, or use one lock object for each thread or coroutine",
  unsupported = "install the TLS library of the same version; in C also set `transport` to `redlock_tls()`",
  limit = "stay below the limit that the message names",
  no_memory = "free memory",
  system = "raise the limit of descriptors (`ulimit -n`) or of threads",
}

-- The commonest messages as a reader sees them: what each means, and what to do. |words| are words
-- of the sources that the message contains; a message of a node has none.
local COMMON = {
  { "`X of N nodes granted it (Q needed): NODE: REASON; ...`",
    words = "nodes %s (%u needed)",
    "Fewer than Q nodes answered yes in time. The caller did not get the lock, and the command did not run."
      .. " X = 0 does not mean that all nodes are down: the attempt ended when a majority was out of reach."
      .. " The message names the nodes that decided the failure.",
    "Run `redlock doctor`, which examines all nodes, and repair those that it reports. Then try again" },
  { "`'NAME' is taken: X of N nodes hold it for another client: NODE, ...`",
    words = " is taken: %u of %u nodes hold it for another client: ",
    "Another client holds the lock, or clients that asked together split the nodes. The command did not run.",
    "Try again later, or wait (`wait`, `--wait`). If it lasts for hours: [a lock that seems"
      .. " stuck](operating.md#a-lock-that-seems-stuck)" },
  { "`'NAME' was taken, and the last attempt was not answered in time`",
    words = " was taken, and the last attempt was not answered in time",
    "Another client held the lock, and then too few nodes answered.", "Run `redlock doctor`" },
  { "`X of N nodes are quarantined, the first for T s; wait, or bootstrap a new cluster: ...`",
    words = "; wait, or bootstrap a new cluster: ",
    "The guard keeps nodes that may have lost keys from voting. The first of them votes again after T seconds.",
    "Wait. Run `redlock --guard bootstrap` only if no client holds a lock" },
  { "`'NAME' is lost: X of N nodes no longer have its token: NODE, ...`",
    words = " is lost: %u of %u nodes no longer have its token",
    "Nodes lost the key while the lock was held. Another client may hold the lock now.",
    "Stop the work, and check its result. Look for a restart, an eviction, `FLUSHALL` or `force_release`" },
  { "`'NAME' has ended, and the command is stopped: REASON`",
    words = "' has ended, and the command %s: ",
    "`redlock run` lost the lock, and ends its command. The exit status is 75.",
    "Check the result of the command. Act on REASON: it is a text of the [codes](#codes)" },
  { "`'NAME' has ended, and the command still runs: REASON`",
    words = "' has ended, and the command %s: ",
    "`redlock run --on-lost=warn` lost the lock, and its command goes on without it.",
    "Stop the command if two at once do harm. Act on REASON: it is a text of the [codes](#codes)" },
  { "`'NAME' ended before the command did`",
    words = "' ended before the command did",
    "The command succeeded, but without the lock at its end. The exit status is 75.",
    "Check the result of the command. Raise `--max-hold`, or find out why nodes failed" },
  { "`NODE: Connection refused`, `NODE did not answer: REASON`",
    words = "did not answer",
    "No server listens at this address, or it did not answer in time. Locks go on while a majority answers.",
    "Start the server, or check the address and the network" },
  { "`NODE: NOPERM ...`, `NODE: WRONGPASS ...`, `NODE: NOAUTH ...`",
    "The node refuses the user, a command or a key. It gives no vote.",
    "Correct the user: [rights](operating.md#rights). The tool needs the prefix of the application (`-p`)" },
  { "`NODE: OOM command not allowed ...`",
    "The memory of the node is full. It gives no vote to new locks; held locks are extended and released.",
    "Raise `maxmemory`, or remove other keys. Keep `maxmemory-policy noeviction`" },
}

-- Each message belongs to the first section with a pattern that matches its path.
local SECTIONS = {
  { title = "Results of operations",
    text = "The message of a failed operation: the third part names the nodes, each with its reason. Act on the code.",
    paths = { "core/rl_message", "core/base/rl_operation", "core/lease/rl_reentry", "core/lifecycle/rl_lifecycle",
      "driver/api/" } },
  { title = "Addresses",
    text = "Raised when a client is made, or returned by `redlock_client_add_node()`. Correct the address.",
    paths = { "core/options/rl_address", "core/options/rl_login" } },
  { title = "Options",
    text = "Raised where options are set (Lua: at the caller's line). Correct the option.\nIn C the text follows"
      .. " `option NAME must be`.",
    paths = { "core/options/" } },
  { title = "The guard",
    text = "Reasons why the guard keeps a node from voting (`quarantine` of `nodes()`).\n"
      .. "Wait, do what the message says, or, for a new cluster without locks, run `bootstrap`.",
    paths = { "core/node/rl_guard", "core/wire/rl_lineage" } },
  { title = "Findings of the doctor",
    text = "[Operating](operating.md#the-doctor) explains each finding by its name.",
    paths = { "core/operator/rl_finding" } },
  { title = "Reasons of a node",
    text = "Reasons why a node gave no vote (`votes()`, `nodes()`, the messages above).\n"
      .. "Check the node that the message names; texts in capitals, such as `OOM`, are the node's own.",
    paths = { "core/" } },
  { title = "TLS",
    text = "Raised when a client is made if a file or an option is wrong; otherwise a reason of a node.",
    paths = { "tls/" } },
  { title = "Clients and connections",
    text = "Raised when a client is made; those about connections are reasons of a node.",
    paths = { "driver/" } },
  { title = "The Lua modules",
    text = "Mistakes are raised at the caller's line and begin with `redlock: `. Correct the call.",
    paths = { "binding/", "lua/" } },
  { title = "The command line",
    text = "Written to standard error. Exit codes: [Command line](cli.md).",
    paths = { "cli/" } },
}

-- Functions and files whose strings are no messages, or repeat messages of the library.
local IGNORED_FILES = { "rl_command%.c$", "rl_command%.h$", "rl_script", "types%.lua$", "fake_%l+%.lua$", "rl_hash",
  "cli_main%.c$", "cli_help%.c$", "cli_options%.h$", "cli_verbs%.h$", "nginx_status%.lua$" }
local IGNORED_LINES = { "nodes=%%u", "^#include", "assert%(", "strncmp", "strstr%(", ":find%(",
  ":match%(", ":gsub%(", "define RL_LUA_", "registry:", "luaL_checkstack",
  '^  { "redlock_', "charset=utf", "default%-src", "label_value%(", "health%.up and" }

local FILES_MAX = 5 -- names of files of one message

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return text:gmatch("[^\n]+")
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local function is_ignored(list, text)
  for _, pattern in ipairs(list) do
    if text:find(pattern) then return true end
  end
  return false
end

-- Removes comments and lines without messages. Joins literals that follow each other.
local function prepare(path, text)
  if path:find("%.lua$") then
    text = text:gsub("\n%s*%-%-[^\n]*", "\n")
  else
    text = text:gsub("/%*.-%*/", ""):gsub("static_assert%b()", "")
  end
  local kept = {}
  for line in text:gmatch("[^\n]*") do
    if not is_ignored(IGNORED_LINES, line) then kept[#kept + 1] = line end
  end
  text = table.concat(kept, "\n"):gsub("\\\n", "\n")
  text = text:gsub('\\"', "\2"):gsub('""', "")
  -- Literals that follow each other, or that a value or a macro separates.
  text = text:gsub('"%s*%.%.%s*\n%s*"', ""):gsub('"%s*\n%s*%.%.%s*"', ""):gsub('"%s*\n%s*"', "")
  for _ = 1, 3 do
    text = text:gsub('" %.%. [^"\n]- %.%. "', "..."):gsub('" %.%. [^"\n]- %.%.\n%s*"', "...")
      :gsub('"\n?%s*%.%. [^"\n]- %.%. "', "...")
  end
  return (text:gsub('"%s+[%u_][%u%d_]+%s+"', "..."):gsub('"%s+[%u_][%u%d_]+%([%u%d_]*%)%s+"', "..."))
end

-- Returns a literal as its reader sees it, or nil if it is no message.
local function message_of(literal)
  local text = literal:gsub("\\n", " "):gsub("\2", '"'):gsub("\\\\", "\\"):gsub("%%%%", "\1")
  text = text:gsub("%%[%d%.%*%-]*[lhzjt]*[sduxfgc]", "..."):gsub("\1", "%%"):gsub("%s+", " ")
  text = text:gsub("^ ", ""):gsub(" $", "")
  local words = select(2, text:gsub("%f[%a]%l%l+%f[%A]", ""))
  if words < 3 or #text > 400 or not text:find(" ", 1, true) or text:find("%f[%w]local%f[%W]") then return nil end
  return text
end

local function section_of(path)
  for _, section in ipairs(SECTIONS) do
    for _, pattern in ipairs(section.paths) do
      if path:find(pattern, 1, true) then return section end
    end
  end
end

local function collect()
  local folders = "csrc/core csrc/driver csrc/tls csrc/binding csrc/cli lua"
  for path in lines_of("git ls-files " .. folders .. " | grep -E '[.](c|h|lua)$' | LC_ALL=C sort") do
    if not is_ignored(IGNORED_FILES, path) and not path:find("rl_error.h", 1, true) then
      local section = assert(section_of(path), path)
      section.messages, section.seen = section.messages or {}, section.seen or {}
      for literal in prepare(path, read(path)):gmatch('"([^"\n]+)"') do
        local message = message_of(literal)
        local known, from = section.seen[message], path:gsub("^csrc/", "")
        if message and not known then
          section.seen[message] = { text = message, from }
          section.messages[#section.messages + 1] = section.seen[message]
        elseif known and known[#known] ~= from then
          known[#known + 1] = from
        end
      end
    end
  end
end

local function codes()
  local rows = {}
  for name, sentence in prepare("rl_error.h", read("csrc/core/base/rl_error.h"))
    :gmatch('X%([%w_]+,%s*([%w_]+),%s*%u+,%s*"([^"]*)"') do
    rows[#rows + 1] = ("| `%s` | %s | %s |"):format(name, sentence, assert(CODES[name], "no advice for " .. name))
  end
  return table.concat(rows, "\n")
end

-- The table of the commonest messages. Their words must be those of the sources.
local function common()
  local sources, rows = read("csrc/core/rl_message.c") .. read("csrc/core/operator/rl_finding.c")
    .. read("csrc/cli/cli_run.c"), {}
  for _, entry in ipairs(COMMON) do
    assert(not entry.words or sources:find(entry.words, 1, true), "no source has the message " .. entry[1])
    rows[#rows + 1] = ("| %s | %s | %s |"):format(entry[1], entry[2], entry[3])
  end
  return table.concat(rows, "\n")
end

-- Returns the names of the files that have a message: all, or the first and the number of the rest.
local function files_of(message)
  if #message > FILES_MAX then return ("`%s` and %d more"):format(message[1], #message - 1) end
  return "`" .. table.concat(message, "`, `") .. "`"
end

local function page()
  collect()
  local out = { "# Messages", "", "<!-- Written by build-aux/messages.lua (make messages). -->", "",
    "Look up a message here: search for its fixed words; `...` stands for the parts that vary.",
    "A message says what happened, what the node said, and what to do.",
    "The files in parentheses have the text (below `csrc`, or in `lua`).", "",
    "## The commonest messages", "",
    "`X`, `N`, `Q`, `T`, `NAME`, `NODE` and `REASON` stand for the parts that vary.", "",
    "| message | meaning | what to do |", "|---|---|---|", common(), "",
    "## Codes", "", "The code of a result, its text (`redlock_strerror()`), and what to do.",
    "Lua returns `system` as `unavailable`, and raises an error for `invalid`, `busy`, `unsupported`, `limit` and",
    "`no_memory`.", "",
    "| code | text | what to do |", "|---|---|---|", codes(), "" }
  for _, section in ipairs(SECTIONS) do
    out[#out + 1] = "## " .. section.title .. "\n\n" .. section.text .. "\n"
    table.sort(section.messages or {}, function(a, b) return a.text < b.text end)
    for _, message in ipairs(section.messages or {}) do
      out[#out + 1] = ("- `` %s `` (%s)"):format(message.text, files_of(message))
    end
    out[#out + 1] = ""
  end
  return table.concat(out, "\n")
end

local text = page()
if arg[1] ~= "check" then
  local file = assert(io.open(PAGE, "w"))
  file:write(text)
  file:close()
elseif read(PAGE) ~= text then
  print("not ok - " .. PAGE .. " is out of date: run make messages")
  os.exit(1)
else
  print("ok - " .. PAGE .. " has all messages")
end
