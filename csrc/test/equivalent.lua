-- Mutants (build-aux/mutants.lua) that no test can notice: function, operator, and the reason why.
--
-- An operator that stands more than once in the function has its number there: 2 is the second.
-- "file" is a part of the name of the file, for functions of one name in several files.
--
-- SPDX-License-Identifier: MIT

local put_off = "a release that finds no room without growing goes out in the same turn, with the launch"
local one_microsecond = "a key that has expired for certain is not released: at that microsecond both are right"
local nothing = "nothing is copied, or written, when there is nothing"
local equal = "of two equal times either is both the earlier and the later"
local no_bytes = "the kernel takes no byte only when it is given none"
local one_byte = "a byte more or less is no reason to look earlier or later"
local any_order = "timers that are due at the same time have no order"
local behind = "behind the end of the heap stands the timer that is being put down, which is not earlier than itself"
local no_driver = "whether it is the driver's own is all that anybody asks"
local a_millisecond = "at that very millisecond either is right"

return {
  -- csrc/binding/rl_lua_client.c
  { "close_client", "< to <=", why = equal },
  -- csrc/binding/rl_lua_lock.c
  { "show_name", "> to >=", why = nothing },
  { "lock_is_held", ">= to >", why = "what is left is a microsecond less when the caller hears of it" },
  -- csrc/binding/rl_lua_memory.c
  { "rl_lua_memory_take", "< to <=", 1, why = one_byte },
  { "rl_lua_memory_take", "< to <=", 2, why = one_byte },
  -- csrc/binding/rl_lua_nginx.c
  { "rl_lua_nginx_wake_writers", "|= to &= ~", why = "a writer that is woken once more finds nothing to send" },
  { "rl_lua_nginx_wake_clock", ">= to >", why = "the clock that is woken once more finds nothing due" },
  { "rl_lua_nginx_wake_clock", "false to true", why = "the clock that is woken once more finds nothing due" },
  { "nginx_connecting", "|= to &= ~", 2, why = "a writer that is woken once more finds nothing to send" },
  { "nginx_output", "< to <=", why = equal },
  { "nginx_warn_holders", "> to >=", why = "a lock without a lease reports no loss" },
  -- csrc/binding/rl_lua_nginx_wait.c
  { "enter_sleeper", "> to >=", why = "room for one more than needed" },
  { "enter_sleeper", "+ 1 to + 2", why = "more room than needed" },
  { "wait_start", "&& to ||", 2,
    why = "what is given back though its result is waited for is taken up again for that" },
  { "wait_due", "!= to ==", why = "who waits while nginx runs no clock looks more often" },
  -- csrc/binding/rl_lua_result.c
  { "rl_lua_copy", "> to >=", 2, why = nothing },
  -- csrc/core/lease/rl_acquire.c
  { "rl_acquire_send_again", "false to true", 1, why = "a vote of a round that is over is not counted in either case" },
  -- csrc/core/lease/rl_attach.c
  { "rl_attach_succeeded", "true to false", 2, why = put_off },
  -- csrc/core/base/rl_buffer.c
  { "rl_buffer_reserve", ">= to >", why = "what is there is moved to the beginning first: slower, and the same" },
  { "rl_buffer_reserve", "!= to ==", 1, why = "what is there is moved to the beginning first: slower, and the same" },
  -- csrc/core/rl_core.c
  { "rl_core_init", "> to >=", why = nothing },
  { "rl_release_resend", "true to false", 1, why = "NOSCRIPT has just been noted, so that it goes by its text" },
  { "rl_release_resend", "true to false", 2,
    why = "without room it fails, and the release is tried again after a while" },
  { "rl_core_input_of_subscriber", "> to >=", why = "0 has left the loop before" },
  { "rl_core_reset", "false to true",
    why = "it is set again before anybody looks, or the leases that it would be for are gone" },
  -- csrc/core/operator/rl_doctor.c
  -- csrc/core/wait/rl_notify.c
  { "rl_notify_time_apart", "+ 1 to + 2", why = "the end of a range from which the delay is drawn, 1 us later" },
  { "rl_notify_enqueue", "> to >=", why = "0 permits are 0 either way" },
  { "rl_notify_attempt_begins", "false to true",
    why = "a promoted head that does not enqueue has no time left: only its next random number differs" },
  -- csrc/core/wait/rl_queue_report.c
  { "rl_queue_report_enqueue_answered", "> to >=", 1, why = "a node with another first ticket reported 2 or more" },
  -- csrc/core/wait/rl_poll_time.c
  { "rl_poll_time_last", "> to >=", why = "at that microsecond of the budget both ends are right" },
  -- csrc/core/lease/rl_extend.c
  { "rl_ask_awaits", "&& to ||", 2, why = "what answers a question that is over has no lock any more" },
  { "rl_extend_send_again", "false to true", 1, why = "a vote of a round that is over is not counted in either case" },
  -- csrc/core/lease/rl_fence.c
  { "rl_fence_note_grant", "|| to &&", 2,
    why = "a lease that is joined is not the attempt in flight, of which there is none then" },
  { "rl_fence_send_text", "< to <=", why = "what is sent at that microsecond is answered too late" },
  { "rl_fence_send_text", "true to false", why = "by then it is known that the node does not know the script" },
  -- csrc/core/wire/rl_handover.c
  { "rl_handover_copy", ">= to >", why = "six bits that wait are written with the next byte, or at the end" },
  { "rl_handover_read_numbers", "< to <=", 1, why = "without a checksum the lengths do not add up" },
  { "rl_handover_read", "> to >=", 1, why = "a head alone is too short" },
  { "rl_handover_read", "> to >=", 2, why = "a head alone is too short" },
  { "rl_handover_read", "> to >=", 3, why = "no text is that long" },
  { "rl_handover_read", "< to <=", why = "a lease has a token, too" },
  -- csrc/core/operator/rl_inspect.c
  { "rl_inspect_ttl", "< to <=", why = "no whole number of milliseconds is that" },
  -- csrc/core/lease/rl_backfill.c
  { "rl_backfill_begin", "<= to <",
    why = "rl_backfill_lock() looks itself; an outstanding reply brings it back when it arrives" },
  { "rl_backfill_node", "false to true",
    why = "it is set again before anybody looks, or the leases that it would be for are gone" },
  { "rl_backfill_node", "> to >=",
    why = "looked at again now or with the next reply: either is right at that microsecond" },
  -- csrc/core/lifecycle/rl_grace.c
  { "rl_grace_until", "<= to <", why = "a reply that is outstanding for the whole moment is not waited for" },
  -- csrc/core/lifecycle/rl_pacer.c
  { "rl_pacer_is_open", "<= to <",
    why = "a node with a reply outstanding that long is checked only if another answers at that microsecond" },
  -- csrc/core/lock/rl_lock.c
  { "rl_lock_new_many", "+ 1 to + 2", 1, why = "one timer more than needed" },
  { "rl_lock_new_many", "+ 1 to + 2", 2, why = "one timer more than needed" },
  { "rl_lifecycle_ended", "true to false", why = put_off },
  { "rl_lifecycle_ended", "|| to &&", 1,
    why = "after the end only rl_acquire_join() looks at it, and that wants the lease of an acquire" },
  { "rl_lock_cancel", "true to false", why = put_off },
  { "rl_lock_note_end", "< to <=", why = "the largest number is the largest number" },
  { "rl_lock_expire", "true to false", why = put_off },
  { "rl_lock_close", "true to false", 1, why = put_off },
  { "rl_lock_close", "true to false", 2, why = put_off },
  { "rl_lock_begin_acquire", "true to false", why = put_off },
  { "rl_lock_begin_asking", "true to false", why = put_off },
  { "rl_ask_end", "true to false", why = put_off },
  -- csrc/core/rl_message.c
  { "rl_message_add", ">= to >", why = "with room for the end of the text alone nothing is added" },
  { "rl_message_add", "> to >=", why = nothing },
  { "rl_message_add", "- to +", 2, why = "a length beyond the end, like one at the end, lets nothing more in" },
  { "rl_message_add", "- to +", 3, why = "a length beyond the end, like one at the end, lets nothing more in" },
  -- csrc/core/node/rl_node_clock.c
  { "rl_node_clock_shows", "< to <=", why = "1 is 1" },
  -- csrc/core/options/rl_option_table.c
  { "rl_option_fits", "> to >=", 1, why = "0 is not said, and comes not here" },
  { "rl_option_fits", "> to >=", 2, why = "0 was let in before" },
  { "rl_option_fill", "< to <=", why = "equal sizes are equal" },
  -- csrc/core/base/rl_hash.c
  { "rl_hash_bytes", "< to <=", why = "equal sizes are equal" },
  { "rl_hash_reserve", "<= to <", why = "room for one more than needed" },
  -- csrc/core/base/rl_reason.c
  { "rl_reason_copy", "+ 1 to + 2", why = "a byte more than needed" },
  -- csrc/core/lease/rl_reentry.c
  { "rl_reentry_own", "> to >=", why = "what stands with its owner is found, too: slower, and the same" },
  { "rl_reentry_move", "> to >=", why = equal },
  { "rl_reentry_move", "+ 1 to + 2", why = "any number of a round that is new will do" },
  { "rl_reentry_set_owner", "+ 1 to + 2", 1, why = "room for one more than needed" },
  { "rl_reentry_set_owner", "+ 1 to + 2", 2, why = "room for one more than needed" },
  { "rl_reentry_set_owner", "> to >=", 2, why = nothing },
  -- csrc/core/lease/rl_release.c
  { "rl_release_must_wait", "> to >=", 1, why = one_microsecond },
  { "rl_release_begin_failed_attempt", "true to false", why = put_off },
  { "rl_release_send_now", "&& to ||",
    why = "what waits for no answer is gone through once more, and what is due later stays so" },
  { "rl_release_send_all", "true to false", why = put_off },
  { "rl_release_due", "> to >=", why = one_microsecond },
  { "rl_release_due_again", "> to >=", why = one_microsecond },
  { "rl_release_due_again", "&= ~ to |=", why = "its connection has ended, and the next one begins with what is due" },
  { "rl_release_note_set_answer", "true to false", why = put_off },
  { "rl_release_repeat_after_break", "< to <=", why = one_microsecond },
  { "rl_release_repeat_after_error", "> to >=", why = one_microsecond },
  { "rl_release_ended", "true to false", why = put_off },
  -- csrc/core/lease/rl_renew.c
  { "rl_renewal_is_capped", "> to >=", why = "an extend by a millisecond more, or none" },
  { "rl_renew_due", "+ 1 to + 2", why = "a microsecond, drawn by lot" },
  { "rl_renew_cap", "< to <=", why = "whole milliseconds count" },
  -- csrc/core/wire/rl_reply.c
  { "rl_reply_string", "> to >=", why = "cut to the length that it has" },
  { "rl_reply_in_bulk", "false to true",
    why = "hiredis has no reply begun only while it has no byte, and no byte is too large in either case" },
  { "rl_reply_names_command", "false to true",
    why = "hiredis has no reply begun only while it has no byte, and no byte is too large in either case" },
  -- csrc/core/wire/rl_resource.c
  { "rl_resource_append", "> to >=", why = nothing },
  -- csrc/core/node/rl_link.c
  { "rl_link_sent", "< to <=", why = "equal lengths are equal" },
  -- csrc/core/wait/rl_ticket.c
  -- csrc/core/lock/rl_round.c
  { "rl_round_settle_uncounted", "< to <=", why = "the largest number is the largest number" },
  { "rl_round_unsettle", "&& to ||", why = "it is decided: nobody counts the failed any more" },
  { "rl_round_dispatch_vote", "&& to ||", 2,
    why = "a lease that a majority has denied is lost, in whatever phase that is heard" },
  { "rl_round_shorten_delays", "<= to <", why = "a node with a reply outstanding that long may count as well or not" },
  -- csrc/core/base/rl_time.h
  { "rl_time_add", "> to >=", why = "a sum that is REDLOCK_NEVER is REDLOCK_NEVER" },
  { "rl_time_min", "< to <=", why = equal },
  { "rl_time_max", "> to >=", why = equal },
  -- csrc/core/base/rl_timers.c
  { "rl_timers_up", "<= to <", why = any_order },
  { "rl_timers_down", ">= to >", 1, why = behind },
  { "rl_timers_down", "< to <=", 1, why = behind },
  { "rl_timers_down", "< to <=", 2, why = any_order },
  { "rl_timers_down", ">= to >", 2, why = any_order },
  { "rl_timers_clear", "> to >=", 2,
    why = "what stands below is not earlier than what stands above, so an equal one is in its place" },
  -- csrc/driver/client/rl_client.c
  { "rl_client_fail", "> to >=", why = nothing },
  { "rl_client_drain_within", "< to <=", why = "at the deadline itself it looks once more, and waits for nothing" },
  -- csrc/driver/api/rl_client_api.c
  { "redlock_client_timeout_ms", "> to >=", why = equal },
  -- csrc/driver/client/rl_caller.c
  { "rl_caller_end", "false to true", why = "a child asks that of calls that have not ended, and of no other" },
  { "rl_caller_add_post", "== to !=", why = "they are called while the mutex is held: slower, and the same" },
  { "rl_caller_poll", "< to <=", 2, why = "a poller whose event is descriptor 0 looks every 10 ms as well" },
  { "rl_caller_poll", "> to >=", 2, why = "where nothing is ready poll() has said of each that it is not" },
  { "rl_caller_poll", "&& to ||", 6,
    why = "an event that is not set is taken back; the poller has entered, and looks anew" },
  { "rl_caller_poll", "> to >=", 3, why = "where nothing is ready poll() has said of each that it is not" },
  { "rl_caller_sleep", "< to <=", why = "at that microsecond it sends, and comes back at once for the turn" },
  -- csrc/driver/os/rl_entropy.c
  { "rl_entropy_fill", "< to <=", why = equal },
  -- csrc/driver/os/rl_eventfd.c
  { "rl_eventfd_close", ">= to >", 2, why = "of the two sockets it is the higher" },
  { "rl_eventfd_clear", "< to <=", 2, why = "the other end is open, so that there is never nothing" },
  -- csrc/driver/api/rl_handle_run.c
  { "rl_handle_read_outcome", "- to +", why = "two microseconds of a clock that nobody can stop" },
  { "rl_handle_go_on", "< to <=", why = equal },
  -- csrc/driver/api/rl_handle_attach.c
  { "rl_handle_wrong_handover", "> to >=", why = "of no bytes all are equal" },
  -- csrc/driver/api/rl_handle_bootstrap.c
  { "redlock_client_bootstrap", "- to +", why = "no node sees the name: only AddressSanitizer notices its end" },
  -- csrc/driver/api/rl_handle_doctor.c
  { "redlock_lock_finding_sized", "> to >=", why = "there are not so many findings" },
  -- csrc/driver/client/rl_watchdog.c
  { "rl_watchdog_run", "> to >=", why = "it sleeps until now, and gets up" },
  { "rl_watchdog_sleep", "false to true",
    why = "the mutex is free a few instructions earlier: only ThreadSanitizer notices" },
  -- csrc/driver/client/rl_poll.c
  { "rl_poll_at", "< to <=", why = equal },
  -- csrc/driver/client/rl_pump.c
  { "rl_pump_send", "> to >=", why = nothing },
  -- csrc/driver/net/rl_resolver.c
  { "rl_resolver_enter", "(! to (",
    why = "only threads that begin a look-up at the same instant could tell: they would be counted once" },
  { "rl_resolver_is_stale", "> to >=", why = "at that microsecond either is right" },
  -- csrc/driver/net/rl_socket.c
  { "rl_socket_register", "!= to ==",
    why = "instead of being changed it is taken out and put in again; another was taken out when it was closed" },
  { "rl_socket_free", "+ 1 to + 2", why = "any number that is new will do" },
  -- csrc/driver/net/rl_stream.c
  { "rl_stream_put", "< to <=", 1, why = no_bytes },
  { "rl_stream_put", "< to <=", 2, why = "nothing is less than what was offered" },
  { "rl_stream_put", "< to <=", 4, why = no_bytes },
  { "rl_stream_get", "< to <=", 2, why = "0 is the end of the connection, and has left before" },
  { "rl_stream_feed", "> to >=", why = "0 has left the loop before" },
  -- csrc/driver/os/rl_thread.c
  { "rl_thread_create", "> to >=", why = "a stack of nothing is refused, and what the system gives stays" },
  -- csrc/driver/os/rl_timerfd.c
  { "rl_timerfd_set", "<= to <", 1, why = equal },
  { "rl_timerfd_set", "<= to <", 2, why = equal },
  { "rl_timerfd_set", "<= to <", 3, why = "the timer is set to what it is set to" },
  -- csrc/driver/client/rl_turn.c
  { "rl_turn_read", "< to <=", 2, why = "0 has left before" },
  { "rl_turn_read", "< to <=", 3, why = "what is left makes the socket readable, and is read by the next turn" },
  { "rl_turn_read", "&& to ||", 2, why = "what is left makes the socket readable, and is read by the next turn" },
  { "rl_turn_read_ready", "> to >=", 1, why = nothing },
  { "rl_turn_read_ready", "> to >=", 2, why = "where nothing is ready poll() has said of each that it is not" },
  { "rl_turn_overdue", "<= to <", why = equal },
  { "rl_turn_run", "> to >=", 1, why = "a microsecond" },
  { "rl_turn_run", "> to >=", 2, why = "at that microsecond the next turn does it, and is due at once" },
  { "rl_turn_send_due", "> to >=", why = "a microsecond" },
  -- csrc/driver/client/rl_callers.c
  { "rl_callers_reset", "false to true", 1,
    why = "without a poller no thread asks if one polls, and there is nothing to send" },
  -- lua/redlock/loop_turn.lua
  { "wait_for", "< to <=", why = equal },
  -- lua/redlock/nginx.lua
  { "main", "true to false", 6, file = "nginx.lua", why = "Debian has no Lua for nginx's streams" },
  { "main", "true to false", 8, file = "nginx.lua", why = "Debian's nginx cannot wait there (docs/openresty.md)" },
  { "main", "true to false", 9, file = "nginx.lua", why = "Debian's nginx cannot wait there (docs/openresty.md)" },
  -- lua/redlock/nginx_driver.lua
  { "connect", "+ to -", why = "any number that is new will do" },
  { "is_lost", ">= to >", why = a_millisecond },
  { "is_lost", "<= to <", why = "what is made in the millisecond in which the wait begins is found at the next look" },
  { "is_lost", "and to or", why = "only a worker that was held up for 40 ms just then could tell" },
  { "is_lost", "- to +",
    why = "nginx runs such a timer before a wait that began later times out; the 40 ms are for the unknown" },
  { "is_late", ">= to >", why = a_millisecond },
  { "is_late", "- to +", 1, why = "each wait would be a millisecond longer" },
  { "is_late", "- to +", 2, why = "many a wait would be a millisecond longer" },
  { "look_for_lost_timers", "+ to -", why = "only a timer that nginx has dropped and runs all the same could tell" },
  { "start_reporter", "< to <=", 1, why = "one that is launched with the next look finds that it was asked for" },
  { "start_reporter", "< to <=", 2, why = a_millisecond },
  { "step", "~= to ==", 3, why = "a writer looks by itself, within a second, whether its connection was given up" },
  { "hurry_collector", "<= to <", why = "two rounds of the collector more" },
  { "hurry_collector", "< to <=", 1, why = a_millisecond },
  { "hurry_collector", "or to and", why = "the collector is hurried where it need not be" },
  { "hurry_collector", "< to <=", 2, why = "one round more" },
  { "hurry_collector", "< to <=", 3, why = "one step more" },
  { "is_over_at_exit", "< to <=", why = a_millisecond },
  { "is_over_at_exit", ">= to >", 1, why = a_millisecond },
  { "is_over_at_exit", "> to >=", 2, why = a_millisecond },
  { "is_over_at_exit", "and to or", 1, why = a_millisecond },
  { "is_over_at_exit", "and to or", 2, why = a_millisecond },
  { "is_over_at_exit", ">= to >", 2, why = a_millisecond },
  { "is_over_at_exit", ">= to >", 3, why = a_millisecond },
  { "is_over", "- to +", 1, why = "the collector is hurried where it need not be" },
  { "is_over", "> to >=", 1, why = a_millisecond },
  { "is_over", "< to <=", 1, why = a_millisecond },
  { "is_over", "< to <=", 2, why = a_millisecond },
  { "stop", "< to <=", why = "one that has nothing to tell ends at once" },
  { "longest", "> to >=", 1, why = "the clock looks more often than it has to" },
  { "longest", "> to >=", 2, why = "the clock looks more often than it has to" },
  { "longest", "or to and", 3,
    why = "who has no lease, and waits for nothing, has nothing to release when his request ends" },
  { "turn", ">= to >", file = "nginx_driver.lua", why = a_millisecond },
  { "turn", "- to +", 2, file = "nginx_driver.lua",
    why = "the dead are looked for with each tick; a request that was woken has its turn within two" },
  { "clock", "true to false", 2, why = "a second clock finds that the first is running, and ends at once" },
  { "limit_clients", "< to <=", 1, why = "one client more is made before" },
  { "new", "true to false", file = "nginx_driver.lua", why = "only the keys count" },
  { "start_clock", "< to <=", why = a_millisecond },
  { "start_clock", "and to or", 1,
    why = "a clock that got no timer is then found not to run, as one is whose timer nginx has dropped" },
  { "start_clock", "and to or", 2,
    why = "a clock that got no timer is then found not to run, as one is whose timer nginx has dropped" },
  { "start_clock", "false to true",
    why = "a clock that got no timer is then found not to run, as one is whose timer nginx has dropped" },
  { "wait", "and to or", file = "nginx_driver.lua", why = "each wait would be a millisecond longer" },
  { "close", "+ to -", 2, file = "nginx_driver.lua",
    why = "whether a node that answers in the last 50 ms of a second was in time, either is right" },
  { "close", "< to <=", file = "nginx_driver.lua", why = a_millisecond },
  { "close", "- to +", file = "nginx_driver.lua",
    why = "a clock that ticks ends within a second, and wakes who waits" },
  -- lua/redlock/nginx_wait.lua
  { "free_sleeper", "false to true", 1, why = no_driver },
  { "free_sleeper", "false to true", 2, why = no_driver },
  { "return_sleeper", "false to true", 1, why = no_driver },
  { "return_sleeper", "false to true", 2, why = no_driver },
  { "deliver", "true to false", why = "what the dead was to have is released with the next tick of the clock" },
  { "sweep", "> to >=", why = "a request that was woken has its turn before the clock looks for the dead twice" },
  { "pause", "> to >=", file = "nginx_wait.lua", why = "where nothing was posted that returns at once" },
  -- lua/redlock/options.lua
  { "text", "true to false", why = "NUL means nothing special in a pattern" },
  -- lua/redlock/section.lua
  { "explain", "true to false", file = "section.lua", why = "it has nothing special in it" },
  { "main", "true to false", file = "section.lua", why = "what Lua 5.1 needs does well in the others, too" },
}
