#!/bin/sh
# A guard prevents second holders: each broken assumption, without a guard and with
# one.
#
#     sim_guard.sh program runs
#
# Without it the checker of exclusion must find something within that many runs, with it nothing.
set -u
program=$1
runs=$2
status=0
# The last one is one server with fail-over (docs/one-server.md).
for breach in restart-empty flush failover node-lists databases 'failover --nodes 1'; do
  # shellcheck disable=SC2086 # A breach may have an option.
  found=$("$program" --break $breach --only exclusion --runs "$runs" 2>/dev/null | sed -n 's/^caught by exclusion //p')
  # shellcheck disable=SC2086
  if [ -z "$found" ]; then
    echo "not ok - $breach without a guard: no second holder in $runs runs"
    status=1
  elif ! "$program" --break $breach --guard --only exclusion --runs "$runs" >/dev/null 2>&1; then
    echo "not ok - $breach with a guard: a second holder (sim --break $breach --guard --only exclusion --runs $runs)"
    status=1
  else
    echo "ok - $breach: two holders $found, and none in $runs with a guard"
  fi
done
exit "$status"
