#!/usr/bin/env bash
# Runs all test suites, each with its log in build/log, and prints the totals as the last line:
#
#     N passed, N failed
#
# Every cmocka test, every busted test, every "ok" line and every check counts one. What was skipped or
# is pending has failed. So has a suite that ends badly, runs nothing, or leaves a process behind.
#
#     run_tests.sh                  all but lint: how the code looks is no business of who runs the tests
#     run_tests.sh --lint           lint too
#     run_tests.sh [suite...]       only these
#
# With REDLOCK_TOTALS=file the totals go there instead.
set -u
MAKE=${MAKE:-make}
export MAKEFLAGS=s MFLAGS= CI=${CI:-true}
unset LUA LUA_PATH LUA_CPATH LUA_VERSION BUILD CFLAGS CPPFLAGS LDFLAGS WERROR
here=$(dirname "$0")
log_directory=build/log
mkdir -p "$log_directory"
jobs=2
passed=0
failed=0
session=

# name | counted or check | seconds it may take | command
# The seconds are three times what a quiet machine needs or more: they end what hangs, and a host that
# gives this machine half a processor is no fault of the tree.
suites() {
  cat <<SUITES
build|check|600|$MAKE -j$jobs all && $MAKE -j$jobs lua LUA_VERSION=jit
lint|counted|900|$MAKE lint
werror|check|900|$MAKE -j$jobs werror
check-pure|check|300|$MAKE check-pure
check-exports|check|300|$MAKE check-exports
check-header|check|300|$MAKE check-header
check-safety|counted|300|$MAKE check-safety
check-controls|counted|300|$MAKE check-controls
unit|counted|900|$MAKE -j$jobs unit
sim|counted|900|$MAKE -j$jobs sim-test
controls|counted|1200|$MAKE controls
model|counted|1200|$MAKE -j$jobs model-test
chaos|counted|900|$MAKE -j$jobs chaos-test
spec-5.4|counted|900|$MAKE spec LUA_VERSION=5.4
spec-luajit|counted|1200|$MAKE spec LUA_VERSION=jit
all-luas|counted|600|$MAKE -j$jobs luas
examples|counted|300|$MAKE -j$jobs examples-test
demo|counted|300|$MAKE demo-test
asan-unit|counted|900|$MAKE -j$jobs asan-unit
asan-spec|counted|1500|$MAKE -j$jobs asan-spec
valgrind|counted|1200|$MAKE -j$jobs valgrind
without-tls|counted|600|$MAKE check-without-tls
install|counted|600|$MAKE check-install
rocks|counted|600|$MAKE check-rocks
SUITES
  if ls csrc/test/integration/*_test.c >/dev/null 2>&1; then
    echo "integration|counted|1500|$MAKE -j$jobs integration"
    echo "asan-integration|counted|1800|$MAKE -j$jobs asan-integration"
  fi
  if ls csrc/test/integration/*_thread_test.c >/dev/null 2>&1; then
    echo "tsan-integration|counted|1200|$MAKE -j$jobs tsan-integration"
  fi
  # Only some programs have threads.
  if ls csrc/test/unit/*_thread_test.c >/dev/null 2>&1; then
    echo "tsan|counted|900|$MAKE -j$jobs tsan"
  fi
  if [ -n "${HIREDIS_NEWER_PREFIX:-}" ]; then
    echo "newer-hiredis|counted|900|$MAKE -j$jobs newer-hiredis HIREDIS_PREFIX='$HIREDIS_NEWER_PREFIX'"
  else
    echo "run_tests: HIREDIS_NEWER_PREFIX is not set, so nothing is tried with a newer hiredis" >&2
  fi
}

# Prints "passed failed" for a log of cmocka, busted and "ok" lines. Terminal colours are taken out.
count_results() {
  sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
    /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
    /^\[  FAILED  \] [0-9]+ test\(s\), listed/ { failed += $4 }
    /^\[  SKIPPED \] [0-9]+ test\(s\), listed/ { failed += $4 }
    /^[0-9]+ success(es)? \/ [0-9]+ failures? \/ [0-9]+ errors? \/ [0-9]+ pending/ {
      passed += $1; failed += $4 + $7 + $10
    }
    /^ok / { passed++ }
    /^not ok / { failed++ }
    END { print passed + 0, failed + 0 }'
}

# Processes of the session $1 that are still there, without zombies.
left_behind() {
  ps -e -o pid=,sid=,stat=,args= | awk -v sid="$1" '$2 == sid && $3 !~ /^Z/'
}

# The same, after time enough for those that are about to end.
still_left_behind() {
  local deadline=$((SECONDS + 15))
  while [ -n "$(left_behind "$1")" ] && [ "$SECONDS" -lt "$deadline" ]; do
    sleep 0.1
  done
  left_behind "$1"
}

# Ends what is left of the session $1, stopped processes too.
end_session() {
  left_behind "$1" | awk '{ print $1 }' | while read -r pid; do
    kill -KILL "$pid" 2>/dev/null
  done
}

interrupted() {
  trap '' INT TERM HUP
  [ -z "$session" ] || end_session "$session"
  echo "interrupted" >&2
  exit 130
}
trap interrupted INT TERM HUP

# What failed may stand far above the end of the log; busted says why in the lines behind, cmocka in those before. The
# end comes first, for who prints only the end of all that is printed.
report_failure() {
  local lines=${REDLOCK_LOG_LINES:-60} plain='s/\x1b\[[0-9;]*m//g'
  echo "---- $1: $2; the end of $3:"
  sed "$plain" "$3" | grep -avE '^[+.-]*$' | tail -n "$lines"
  echo "---- $1, $2; what failed:"
  sed "$plain" "$3" | grep -aE -A 12 '^(Failure|Error|Pending) -> ' | head -n "$lines"
  sed "$plain" "$3" | failed_of_cmocka | head -n "$lines"
  sed "$plain" "$3" | grep -a '^not ok' | sed 's/^not ok -*/- /' | head -n "$lines"
  echo "----"
}

# Each test of cmocka that failed or was skipped, in words of its own: what it printed, and its program.
failed_of_cmocka() {
  awk '
    /^# / && !/ took / { program = $2 }
    /^\[ RUN / { count = 0; test = $NF; next }
    /^\[  (FAILED |SKIPPED) \] / && $NF == test {
      print "- in " program ", " test ":"
      for (i = count > 15 ? count - 15 : 0; i < count; i++) print "    " said[i]
      test = ""
      next
    }
    { said[count++] = $0 }'
}

run_suite() {
  local name=$1 kind=$2 seconds=$3 command=$4 log=$log_directory/$1.log
  local status good bad left started=$SECONDS trouble=
  # Its own session, so that whatever it leaves behind can be found.
  setsid timeout -k 10 "$seconds" bash -c "$command" >"$log" 2>&1 </dev/null &
  session=$!
  wait "$session"
  status=$?
  left=$(still_left_behind "$session")
  if [ -n "$left" ]; then
    end_session "$session"
    printf 'not ok - these processes were left behind:\n%s\n' "$left" >>"$log"
  fi
  session=
  if [ "$kind" = check ]; then
    good=$((status == 0 ? 1 : 0)) bad=$((status == 0 ? 0 : 1))
    [ -z "$left" ] || bad=1
  else
    read -r good bad < <(count_results "$log")
  fi
  [ "$status" -ne 124 ] || trouble="took longer than $seconds s"
  if [ "$bad" -eq 0 ] && [ "$status" -ne 0 ]; then
    bad=1
    trouble=${trouble:-exit status $status}
  elif [ "$bad" -eq 0 ] && [ "$good" -eq 0 ]; then
    bad=1
    trouble="ran no test"
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  printf '%-15s %5d passed %4d failed %5d s\n' "$name" "$good" "$bad" $((SECONDS - started))
  [ "$bad" -eq 0 ] || report_failure "$name" "${trouble:-$bad failed}" "$log"
}

# The counting is itself counted on, so it is tried first: on results that have failed.
self_test() {
  local got
  got=$(printf '%s\n' '[==========] 5 test(s) run.' '[  PASSED  ] 2 test(s).' '[  SKIPPED ] 1 test(s), listed below:' \
    '[  SKIPPED ] a' '[  FAILED  ] 2 test(s), listed below:' '[  FAILED  ] b' '[  FAILED  ] c' \
    '12 successes / 1 failure / 2 errors / 3 pending : 0.5 seconds' '1 success / 0 failures / 0 errors / 0 pending : 0.1' \
    'ok - d' 'not ok - e' | count_results /dev/stdin)
  if [ "$got" != '16 10' ]; then
    echo "run_tests: counts '$got' where it is '16 10'"
    failed=$((failed + 1))
  fi
}

finish() {
  local totals="$passed passed, $failed failed"
  if [ -n "${REDLOCK_TOTALS:-}" ]; then
    echo "$totals" >"$REDLOCK_TOTALS"
  else
    echo "$totals"
  fi
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

cd "$here/.." || exit 1
self_test
unasked=lint
if [ "${1:-}" = --lint ]; then
  unasked=
  shift
fi
chosen=" $* "
ran=0
while IFS='|' read -r name kind seconds command <&3; do
  if [ $# -eq 0 ]; then
    [ "$name" != "$unasked" ] || continue
  else
    [[ $chosen == *" $name "* ]] || continue
  fi
  ran=$((ran + 1))
  run_suite "$name" "$kind" "$seconds" "$command"
done 3< <(suites)
if [ "$ran" -lt "$#" ] || [ "$ran" -eq 0 ]; then
  echo "run_tests: of $# suites named, $ran are known"
  failed=$((failed + 1))
fi
finish
