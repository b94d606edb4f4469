--- Tables of the fake that the library has in C: options, operations, codes and limits.
---
--- rl_option_table.h has the options, with their bounds. spec/fake_twin_spec.lua compares each row
--- with redlock.core, and prints the missing ones.

local tables = {
  VERSION = "0.1.0",
  RESOURCES_MAX = 64,
  TOKEN_MAX = 256,
  OWNER_NAME_MAX = 63,
  KEY_MAX = 4096,
  NODES_MAX = 32,
}

-- One option a line: name, kind, bounds in the units of Lua, default, words of a choice.
local rows = {
  lock = [[
    ttl duration 1 31622400000 10000
    retry_count count 0 1000000
    retry_delay duration 0 31622400000 200
    retry_jitter duration 0 31622400000 100
    wait duration 0 31622400000
    node_timeout duration 1 31622400000
    drift_factor factor 0 1 0.01
    lock_delay duration 0 31622400000
    auto_extend flag 0 0
    notify_lost flag 0 0
    extend_every duration 0 31622400000
    max_hold duration 0 31622400000
    hold_at_least duration 0 31622400000
    fence flag 0 0
    poll_interval duration 1 31622400000 2000
    fair flag 0 0
    notify flag 0 0
    label label 0 64
    permits count 0 1024
  ]],
  client = [[
    prefix bytes 0 4096
    credentials function 0 0
    quorum count 1 32
    username text 0 0
    password secret 0 0
    db count 0 1000000
    tls flag 0 0
    guard flag 0 0
    guard_max_ttl duration 1 31622400000
    guard_cluster text 1 64
  ]],
  node = [[
    host text 0 0
    port count 1 65535
    path text 0 0
    username text 0 0
    password secret 0 0
    db count 0 1000000
    tls flag 0 0
  ]],
  host = [[
    owner choice 1 2 - request|worker
  ]],
  tls = [[
    tls_ca text 1 4096
    tls_ca_path text 1 4096
    tls_crl text 1 4096
    tls_cert text 1 4096
    tls_key text 1 4096
    tls_key_password text 1 1024
    tls_server_name text 1 255
    tls_ciphers text 1 1023
    tls_min_version choice 1 2 - 1.2|1.3
    tls_dangerously_unverified flag 0 0
  ]],
}

local function add(to, text)
  for line in text:gmatch("[^\n]+") do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    if words[1] then
      local name = words[1]
      local row = { name = name, kind = words[2], low = tonumber(words[3]), high = tonumber(words[4]),
        default = tonumber(words[5]), words = words[6] }
      row.part_of_tls, row.part_of_guard = name:match("^tls_(.+)$"), name:match("^guard_(.+)$")
      to[#to + 1] = row
    end
  end
  return to
end

tables.options = {
  lock = add({}, rows.lock),
  client = add(add({}, rows.client), rows.tls),
  node = add(add({}, rows.node), rows.tls),
  host = add({}, rows.host),
}

tables.operations = {
  acquire = { code = 1, of = "lock", argument = "options" },
  extend = { code = 2, of = "lock", argument = "ttl" },
  release = { code = 3, of = "lock", argument = "release" },
  release_forget = { code = 4, of = "driver", argument = "none" },
  release_send = { code = 5, of = "driver", argument = "none" },
  inspect = { code = 6, of = "client", argument = "none" },
  force_release = { code = 7, of = "client", argument = "token" },
  doctor = { code = 8, of = "client", argument = "none" },
  bootstrap = { code = 9, of = "client", argument = "none" },
}

--- Codes and their sentences.
tables.sentences = {
  taken = "another client holds the lock",
  unavailable = "too many nodes did not answer or answered an error",
  expired = "the lease has expired",
  lost = "too many nodes no longer have the token of the lock",
  held = "the lock is held already",
  not_held = "the lock is not held",
  closed = "the client has been closed",
  cancelled = "the operation was cancelled",
  max_hold = "max_hold has ended the automatic extension of the lock",
  clock = "the clocks of too many nodes that have the lock were stepped",
}
tables.codes = {
  "taken", "unavailable", "expired", "lost", "held", "not_held", "closed", "cancelled", "max_hold", "clock",
}

--- Words for messages: what an operation does, and what nodes that granted it have done.
tables.gerunds = { acquire = "acquiring", extend = "extending", release = "releasing", inspect = "inspecting",
  force_release = "releasing by force", doctor = "asking for the doctor", bootstrap = "making the nodes ready" }
tables.done = { acquire = "granted it", extend = "extended it", release = "confirmed its release",
  inspect = "reported their keys", force_release = "confirmed its release", doctor = "were examined",
  bootstrap = "may vote" }

return tables
