-- What the simulator can say (sim_violation() in csrc/test/sim) and no control makes it say, each with
-- the reason. build-aux/sim_controls.lua fails when there is another, or when one of these is said after all.
--
-- SPDX-License-Identifier: MIT

return {
  ["client %u: %zu bytes wait for node %u"] =
    "a few locks cannot queue 16 MiB; the unit tests do (control bytes-not-bounded)",
  ["a lease with a token that was never drawn"] =
    "such a token is seen when it is sent (control token-changed)",
  ["client %u released a token that it never had"] =
    "such a token is seen when it is sent (control token-changed)",
  ["client %u was given a lease by an attempt that is over"] =
    "the votes of such an attempt are missed first, or its release (controls round-not-checked, token-reused)",
  ["what the core sent is not RESP"] =
    "the tap, which sees the same bytes before the network does, says so first (control not-resp)",
  ["nothing is left to happen"] =
    "an application that waits in vain is late first (control no-deadline)",
  ["no connection is left"] = "the simulator's own bound",
  ["a reply does not match what was asked"] = "the simulator's own bookkeeping",
}
