-- The negative controls: a defect of conformance/adapters/plain.lua, and the statements that must
-- detect it. |hangs|: the call does not end.
--
-- SPDX-License-Identifier: MIT

return {
  { "overwrite", "exclusion", "untouched", "minority-taken" },
  { "no-release", "release" },
  { "same-token", "tokens" },
  { "impatient", "slow" },
  { "minority", "tie", "majority-dead", "majority-taken", "node-clock", "contest" },
  { "all-nodes", "minority-dead", "minority-hung" },
  { "leak", "majority-taken", "reply-lost", "late-request", "majority-dead" },
  { "granted-only", "reply-lost", "late-request" },
  { "elapsed", "elapsed" },
  { "no-drift", "drift" },
  { "late-grant", "late-grant" },
  { "patient", "majority-hung", "release-hung", "extend-hung", hangs = true },
  { "wall-clock", "wall-clock" },
  { "lying-extend", "extend" },
  { "blind-extend", "revive", "extend-other", "extend-lost" },
  { "late-extend", "late-extend" },
  { "one-extend", "extend-lost" },
  { "blind-release", "release-other" },
  { "sha-only", "no-script" },
  { "no-reconnect", "reconnect" },
  { "none", "restart-empty" },

  -- Against this library on one key (conformance/interop.lua).
  { "overwrite", "ours-holds", "ours-extends", "contest", interop = true },
  { "blind-release", "theirs-late-release", interop = true },
  { "no-release", "freed", interop = true },
}
