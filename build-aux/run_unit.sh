#!/bin/sh
# Runs test programs one after the other, all of them, and fails if one did. The two that compute for long
# and have no times to keep run beside the others. Those of cmocka print their own results. Another program
# is one test: "ok" when it says something and ends with 0. A cmocka program that crashed, hung, or ran no
# test is "not ok", so that whoever counts results counts it.
#
#     run_unit.sh program...          RUN_UNIT_WRAPPER="valgrind ..." runs each under another command
set -u
. "$(dirname "$0")/nodes.sh"
limit=${RUN_UNIT_TIMEOUT:-600}
failed=0
output=$(mktemp) || exit 1
beside=
beside_output=
trap 'nodes_stop; [ -z "$beside" ] || kill "$beside" 2>/dev/null; rm -f "$output" "$beside_output"' EXIT
trap 'exit 130' INT TERM HUP

fail() {
  echo "not ok - $1"
  failed=1
}

# run name command...
run() {
  run_name=$1
  shift
  echo "# $run_name"
  run_began=$(date +%s)
  # shellcheck disable=SC2086
  timeout -k 5 "$limit" ${RUN_UNIT_WRAPPER:-} "$@" >"$output" 2>&1 </dev/null
  run_status=$?
  cat "$output"
  echo "# $run_name took $(($(date +%s) - run_began)) s"
  if grep -q '^\[  PASSED  \] [0-9]' "$output"; then
    if [ "$run_status" -ne 0 ]; then
      failed=1
      grep -q '^\[  FAILED  \] [0-9]* test(s), listed' "$output" || fail "$run_name ended with exit status $run_status"
    fi
  elif [ "$run_status" -ne 0 ]; then
    # Whoever reads only this line learns which test it was.
    fail "$run_name (exit status $run_status) in: $(grep -a '^\[ RUN' "$output" | tail -n 1)"
  elif [ ! -s "$output" ] || grep -q '^\[==========\]' "$output"; then
    fail "$run_name ran no test to its end"
  else
    echo "ok - $run_name"
  fi
}

# Sorts the programs into two lists.
long=
others=
for program in "$@"; do
  case $program in
  */rl_exhaustive_test | */rl_lua_oom_test) long="$long $program" ;;
  *) others="$others $program" ;;
  esac
done
if [ -n "$long" ] && [ -n "$others" ]; then
  beside_output=$(mktemp) || exit 1
  # shellcheck disable=SC2086
  sh "$0" $long >"$beside_output" 2>&1 &
  beside=$!
  # shellcheck disable=SC2086
  set -- $others
fi

for program in "$@"; do
  case $program in
  */rl_lua_oom_test)
    # It wants to know where redlock.lua is; with nodes that refuse connections, then with some that do not.
    run "$program without nodes" "$program" lua
    addresses=
    [ -n "$node_ports" ] || nodes_start 3 || exit 1
    for port in $node_ports; do addresses="$addresses 127.0.0.1:$port"; done
    # shellcheck disable=SC2086
    run "$program with nodes" "$program" lua $addresses
    ;;
  *) run "$program" "$program" ;;
  esac
done
if [ -n "$beside" ]; then
  wait "$beside" || failed=1
  beside=
  cat "$beside_output"
fi
exit "$failed"
