--- Values of the code that pages, comments, tests and the tool quote. Each test reads a value at
--- its main place, and names the files that quote another one. Add a row for a new quotation.

local function read(path)
  local file = assert(io.open(path), path .. " is gone: correct spec/quoted_values_spec.lua")
  -- A sentence may be wrapped, also in a comment.
  local text = file:read("*a"):gsub("\n%s*%*? *", " ")
  file:close()
  return text
end

local FRACTIONS = { [2] = "half", [3] = "third", [4] = "quarter", [8] = "eighth" }
local NUMBERS = { "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten" }

--- Each row: the file and the constant (or a pattern), then the files with the texts that quote it.
--- "$" stands for the value, "$word" for "three" if it is 3, "$fraction" for "third", and "$(TERM)"
--- for a term of x, which is the value.
local VALUES = {
  drift_allowance_in_ms = {
    { "csrc/core/base/rl_validity.c", "RL_VALIDITY_GRANULARITY_US" },
    ["csrc/include/redlock.h"] = { "ttl x factor + $ ms" },
    ["csrc/core/base/rl_validity.h"] = { "ttl x factor + $ ms", "the $ ms for" },
    ["lua/redlock/types.lua"] = { "ttl * this + $ ms" },
    ["docs/lua.md"] = { "ttl x factor + $ ms", "(`hold_at_least` + $ ms)" },
    ["docs/design.md"] = { "ttl x drift_factor + $ ms", "drift allowance of $ ms" },
    ["docs/safety.md"] = { "ttl x drift_factor + $ ms" },
    ["docs/recipes.md"] = { "(`hold_at_least` + $ ms)" },
    ["csrc/core/options/rl_options.c"] = { "ttl x drift_factor + $ ms", "at least $(x + 2) ms with" },
    ["csrc/binding/rl_lua_option.c"] = { "ttl x %.14g + $ ms" },
    ["lua/redlock/fake_option.lua"] = { "ttl x %.14g + $ ms", "drift_factor + $ ms", "at least $(x + 2) ms with" },
    ["csrc/cli/cli_settings.c"] = { "CLI_TTL_MIN_US ($(x + 2) *", "must be at least $(x + 2)ms" }, -- 1 ms is left
    ["csrc/test/sim/check_validity.c"] = { "drift_factor) + $(x + 1)000;" },
  },
  shares_of_the_ttl_until_an_automatic_extend = {
    { "csrc/core/lease/rl_renew.c", "every_us = lock%->lease_ttl_us / (%d+);" },
    ["csrc/core/lease/rl_renew.c"] = { "by default ttl / $,", "min(10 ms, ttl / $)" },
    ["csrc/include/redlock.h"] = { "[ttl/$]", "by itself: a $fraction of the ttl" },
    ["lua/redlock/types.lua"] = { "default: ttl/$" },
    ["docs/lua.md"] = { "| a $fraction of the ttl |", "extends a $fraction of the ttl after" },
    ["docs/c.md"] = { "| a $fraction of the ttl;", "by itself: a $fraction of the ttl" },
    ["docs/cli.md"] = { "at least every $fraction of the ttl" },
    ["docs/operating.md"] = { "| a $fraction of the ttl |" },
    ["docs/comparison.md"] = { "at most a $fraction of the ttl later" },
    ["csrc/cli/cli_run.c"] = { "extends need a $fraction of the ttl" },
    ["lua/redlock/fake_option.lua"] = { "every, valid = ttl / $" },
    ["csrc/test/lib/kept.h"] = { "(10 * SECONDS / $)", "(10 * SECONDS / $ / 8)" },
    ["csrc/test/sim/check_renewal.c"] = { "third_us = own->acquired.ttl_us / $;" },
  },
  part_of_the_validity_that_is_left_for_an_extend = {
    { "csrc/core/lease/rl_renew.c", "every_us, valid_us %- valid_us / (%d+)" },
    ["csrc/core/lease/rl_renew.c"] = { "at most $(x - 1)/$ of the validity" },
    ["csrc/include/redlock.h"] = { "to $(x - 1)/$ of the validity" },
    ["docs/c.md"] = { "to $(x - 1)/$ of the validity" },
    ["lua/redlock/fake_option.lua"] = { "valid - valid / $)" },
    ["csrc/test/sim/check_renewal.c"] = { "valid_us - valid_us / $;" },
  },
  shortest_interval_of_automatic_extends_in_ms = {
    { "csrc/core/lease/rl_renew.h", "RL_RENEW_EVERY_MIN_US" },
    ["csrc/core/lease/rl_renew.c"] = { "min($ ms, ttl / 3)" },
    ["csrc/include/redlock.h"] = { "outside $ ms to" },
    ["lua/redlock/types.lua"] = { "interval of extends, at least $;" },
    ["docs/c.md"] = { "; $ ms to 2/3" },
    ["docs/lua.md"] = { "outside $ ms to" },
    ["lua/redlock/fake_option.lua"] = { "min(every, $))" },
    ["csrc/test/sim/check_renewal.c"] = { "third_us < $000 ?" },
  },
  part_of_a_nested_acquire_that_may_be_over = {
    { "csrc/core/lease/rl_reentry.c", "asked_us %- asked_us / (%d+)" },
    ["lua/redlock/fake_operation.lua"] = { "asked - asked / $" },
  },
  parts_of_which_one_is_random_in_the_time_of_an_extend = {
    { "csrc/core/lease/rl_renew.c", "lock%->automatic %? every_us / (%d+)" },
    ["csrc/core/lease/rl_renew.c"] = { "up to 1/$," },
    ["csrc/include/redlock.h"] = { "an $fraction, for the first extend" },
    ["csrc/test/lib/kept.h"] = { "SECONDS / 3 / $)" },
  },
  life_of_a_fencing_counter_in_ms = {
    { "csrc/core/wire/rl_script.c", "life=string%.format%('%%%.0f',(%d+)%+ARGV" },
    ["csrc/core/wire/rl_script.c"] = { "p<$+t", "'%.0f',$+t)", "and '$(x + 100000000)' or" },
    ["csrc/test/lib/fake_store.c"] = { "expires_us + $ *", "ttl_ms + $) *" },
    ["lua/redlock/fake_lease.lua"] = { "WEEK = $(x / 86400000) * 86400000" },
    ["docs/design.md"] = { "longer than its key: `$` ms" },
    ["docs/lua.md"] = { "for a week longer than the key" },
  },
  automatic_attempts_after_the_first = {
    { "csrc/core/options/rl_options.c", "RL_OPTIONS_RETRIES" },
    ["csrc/include/redlock.h"] = { "[$; no limit if a finite wait_us is set]" },
    ["docs/c.md"] = { "| $; with `wait_us`", "$ retries end the call", "$(x + 1)word attempts", "and $word pauses" },
    ["lua/redlock/fake_option.lua"] = { "GUARD_MAX_TTL = $, 100, 2," },
  },
  node_timeout_in_ms = {
    { "csrc/core/options/rl_options.c", "RL_OPTIONS_NODE_TIMEOUT_US" },
    ["csrc/include/redlock.h"] = { "[$ ms, or ttl/10" },
    ["docs/lua.md"] = { "`node_timeout` ($ ms" },
    ["docs/c.md"] = { "| $ ms, at most a tenth of the ttl |", "attempts of $ ms" },
    ["docs/cli.md"] = { "[$ ms, at most a tenth of the ttl]" },
    ["lua/redlock/fake_option.lua"] = { "GUARD_MAX_TTL = 3, $, 2," },
  },
  reserve_of_the_last_attempt_in_ms = {
    { "csrc/core/wait/rl_pause.c", "RL_PAUSE_LAST_US" },
    ["csrc/include/redlock.h"] = { "to answer, and $ ms more" },
    ["docs/lua.md"] = { "in the last $ ms" },
    ["docs/design.md"] = { "arrive $ ms before the budget ends" },
  },
  longest_poll_interval_in_s = {
    { "csrc/core/wait/rl_poll_time.c", "RL_POLL_TIME_MAX_US" },
    ["csrc/include/redlock.h"] = { "above $ s count as $ s" },
  },
  distance_of_attempts_after_a_split_vote_in_ms = {
    { "csrc/core/wait/rl_notify.c", "RL_NOTIFY_APART_US" },
    ["docs/design.md"] = { "tries $ ms or more after its last attempt" },
  },
  grace_period_in_ms = {
    { "csrc/core/lifecycle/rl_grace.c", "RL_GRACE_MIN_US" },
    ["csrc/include/redlock.h"] = { "for at most $ ms or four times" },
    ["docs/design.md"] = { "longer of $ ms and four times" },
    ["docs/operating.md"] = { "waits up to $ ms for all nodes" },
    ["docs/lua.md"] = { "may take about $ ms longer" },
  },
  wait_of_a_release_for_its_answer_in_ms = {
    { "csrc/core/lease/rl_release.h", "RL_RELEASE_ANSWER_US" },
    ["docs/design.md"] = { "waits for the answer, for $ ms at most" },
  },
  first_delay_of_a_repeated_release_in_ms = {
    { "csrc/core/lease/rl_release.h", "RL_RELEASE_RETRY_US" },
    ["docs/design.md"] = { "at $(x / 1000) s, 1 s, 2 s" },
  },
  age_of_the_oldest_command_of_a_node_that_is_behind_in_ms = {
    { "csrc/core/lock/rl_round.c", "RL_ROUND_BEHIND_MIN_US" },
    ["docs/design.md"] = { "max(`node_timeout`, $ ms)" },
    ["docs/operating.md"] = { "`node_timeout`, and longer than $ ms" },
  },
  silence_that_ends_a_connection_in_s = {
    { "csrc/core/node/rl_link.h", "RL_LINK_SILENCE_US" },
    ["docs/design.md"] = { "no byte comes for $ s" },
    ["docs/openresty.md"] = { "After $ s of silence" },
  },
  time_limit_of_a_new_connection_in_s = {
    { "csrc/core/node/rl_link.h", "RL_LINK_CONNECT_TIMEOUT_US" },
    ["csrc/include/redlock.h"] = { "connection is given up $ s" },
    ["docs/lua.md"] = { "A connection may take $ s, the function included" },
    ["docs/c.md"] = { "A connection may take $ s with that" },
  },
  first_delay_between_connections_in_ms = {
    { "csrc/core/options/rl_backoff.h", "RL_BACKOFF_CONNECTION_MIN_US" },
    ["docs/design.md"] = { "grow from $ ms to", "but at least $ ms" },
  },
  silence_of_a_peers_kernel_in_ms = {
    { "csrc/driver/net/rl_socket.c", "RL_SOCKET_UNACKNOWLEDGED_MS" },
    ["docs/design.md"] = { "acknowledges nothing for $(x / 1000) s" },
  },
  interval_of_pings_in_s = {
    { "csrc/core/wait/rl_subscriber.h", "RL_SUBSCRIBER_PING_US" },
    ["docs/operating.md"] = { "a `PING` every $ s" },
  },
  time_limit_of_releases_at_the_end_of_a_client_in_ms = {
    { "csrc/driver/client/rl_client.h", "RL_CLIENT_DRAIN_US" },
    ["csrc/include/redlock.h"] = { "for the replies, for $ ms at most" },
    ["docs/c.md"] = { "| $ ms if it gives up the last reference" },
    ["docs/lua.md"] = { "all locks are released, within $ ms" },
    ["docs/openresty.md"] = { "all its locks at once, for $ ms at most" },
    ["docs/design.md"] = { "the client sends for at most $ ms" },
  },
  longest_pause_of_a_campaign_in_s = {
    { "csrc/core/lease/rl_campaign.c", "RL_CAMPAIGN_LONGEST_US" },
    ["csrc/include/redlock.h"] = { "after 2, 4, ... $ s more" },
    ["lua/redlock/lead.lua"] = { "FIRST, LONGEST = 1000, $000" },
    ["docs/lua.md"] = { "then 2, 4, ... $ s it calls", "1, 2, 4, ... $ s and joins" },
  },
  pause_of_a_campaign_after_a_failed_acquire_in_s = {
    { "lua/redlock/loop.lua", "local PAUSE = ([%d.]+)" },
    ["lua/redlock/nginx_lead.lua"] = { "local PAUSE = $ --" },
  },
  steps_of_clocks_that_the_guard_tolerates_in_ms = {
    { "csrc/core/node/rl_clock_watch.h", "RL_CLOCK_WATCH_LEAST_US" },
    ["docs/operating.md"] = { "by more than $ ms and 1 % of the time" },
  },
  ms_that_a_quarantine_is_longer = {
    { "csrc/core/node/rl_guard.h", "RL_GUARD_MARGIN_US" },
    ["csrc/core/node/rl_guard.c"] = { "longest life of a key + $ ms" },
    ["csrc/test/sim/sim_guard.c"] = { "max_us / 10 + 200$000" },
    ["docs/operating.md"] = { "max_ttl x 1.1 + 2.00$ s" },
    ["docs/one-server.md"] = { "max_ttl x 1.1 + 2.00$ s" },
  },
  seconds_that_a_quarantine_is_longer = {
    { "csrc/core/node/rl_guard.h", "RL_GUARD_SKEW_US" },
    ["csrc/test/sim/sim_guard.c"] = { "max_us / 10 + $002000" },
    ["docs/operating.md"] = { "max_ttl x 1.1 + $.002 s" },
    ["docs/one-server.md"] = { "max_ttl x 1.1 + $.002 s" },
  },
  shortest_quarantine_in_s = {
    { "csrc/core/node/rl_guard.h", "RL_GUARD_QUARANTINE_MIN_US" },
    ["docs/operating.md"] = { "at least $ s**" },
    ["docs/one-server.md"] = { "at least $ s" },
  },
  longest_ttl_of_a_guard_in_s = {
    { "csrc/core/node/rl_guard.h", "RL_GUARD_MAX_TTL_DEFAULT_US" },
    ["csrc/include/redlock.h"] = { "guard_max_ttl_us; /* [$ s]" },
    ["docs/c.md"] = { "| `guard.max_ttl` | $ s |" },
    ["docs/lua.md"] = { "| `max_ttl` | $000 |" },
  },
  limit_of_unanswered_acquires = {
    { "csrc/core/node/rl_link.h", "RL_LINK_OUTSTANDING_ACQUIRE_MAX" },
    ["docs/design.md"] = { "| $ acquires," },
    ["docs/openresty.md"] = { "| $ unanswered acquires of a node" },
  },
  limit_of_unanswered_commands = {
    { "csrc/core/node/rl_link.h", "RL_LINK_OUTSTANDING_MAX" },
    ["docs/design.md"] = { "acquires, $ other commands", "up to $ commands wait" },
    ["docs/openresty.md"] = { "| $ commands or" },
  },
  MiB_of_unsent_acquires = {
    { "csrc/core/node/rl_link.h", "RL_LINK_OUTPUT_ACQUIRE_MAX %(%(size_t%)(%d+) << 20%)" },
    ["docs/design.md"] = { "| $ MiB for acquires" },
    ["docs/openresty.md"] = { "or $ MB of unsent bytes" },
  },
  MiB_of_unsent_commands = {
    { "csrc/core/node/rl_link.h", "RL_LINK_OUTPUT_MAX %(%(size_t%)(%d+) << 20%)" },
    ["docs/design.md"] = { ", $ MiB for other commands", "up to $ MiB of commands" },
    ["docs/openresty.md"] = { "commands or $ MB for" },
  },
  limit_of_waiting_releases = {
    { "csrc/core/lease/rl_release.h", "RL_RELEASE_NODE_MAX" },
    ["docs/design.md"] = { "| waiting releases of a node | $ |" },
  },
  limit_of_tickets = {
    { "csrc/core/wait/rl_wait_state.h", "RL_TICKETS_MAX" },
    ["docs/design.md"] = { "entries of a queue | $; " },
  },
  limit_of_entries_of_a_queue = {
    { "csrc/core/wire/rl_command.h", "RL_COMMAND_QUEUE_MAX" },
    ["docs/design.md"] = { "entries of a queue | 65536; $ |" },
  },
  limit_of_threads_that_look_up_names = {
    { "csrc/driver/net/rl_resolver.h", "RL_RESOLVER_THREADS_MAX" },
    ["docs/design.md"] = { "look up names | $ |" },
  },
  limit_of_a_password = {
    { "csrc/include/redlock.h", "REDLOCK_PASSWORD_MAX" },
    ["docs/lua.md"] = { "$ bytes of password" },
  },
  limit_of_permits = {
    { "csrc/include/redlock.h", "REDLOCK_PERMITS_MAX" },
    ["csrc/core/options/rl_option_table.h"] = { "from 1 to $, or REDLOCK_PERMITS_NONE" },
    ["lua/redlock/types.lua"] = { "1 to $: a semaphore" },
    ["docs/lua.md"] = { "`permits` is at most $." },
  },
}

-- Returns |text| with |value| for each "$".
local function filled(text, value)
  local function shown(term, unit)
    local number = term == "" and value or assert(load("local x = ... return " .. term))(value)
    if unit == "fraction" then return FRACTIONS[number] or "?" end
    if unit == "word" then return NUMBERS[number] or "?" end
    return ("%.14g"):format(number) .. unit
  end
  return (text:gsub("%$(%b())(%l*)", shown):gsub("%$()(%l*)", function(_, unit) return shown("", unit) end))
end

describe("the quoted", function()
  for name, row in pairs(VALUES) do
    it(name .. "_is_that_of_the_code", function()
      local path, what = row[1][1], row[1][2]
      local pattern = what:find("^[%u_]+$") and "#define " .. what .. " %(?(%d+)" or what
      local value = tonumber(read(path):match(pattern))
      assert.is_truthy(value, path .. " has no " .. what .. ": correct spec/quoted_values_spec.lua")
      row[1] = nil
      local wrong = {}
      for place, texts in pairs(row) do
        for _, text in ipairs(texts) do
          text = filled(text, value)
          if not read(place):find(text, 1, true) then wrong[#wrong + 1] = ("%s lacks '%s'"):format(place, text) end
        end
      end
      table.sort(wrong)
      assert.are.equal("", table.concat(wrong, "\n"), value .. " is the value in " .. path)
    end)
  end
end)
