# How results are counted and failures shown. Sourced by run_tests.sh, which documents the rules.

# Prints "passed failed" for a log of cmocka, busted and "ok" lines. Removes the colours of a terminal first.
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

# Prints "passed failed repetitions" for the log $1 of a job that ended with the status $2.
judge() {
  local good bad
  read -r good bad < <(count_results "$1")
  if [ "$bad" -eq 0 ] && [ "$2" -ne 0 ]; then
    bad=1
  elif [ "$bad" -eq 0 ] && [ "$good" -eq 0 ]; then
    # A test program that ran no test has failed; a check that prints no result counts by its status.
    if grep -qaE '^\[==========\]|^[0-9]+ success' "$1"; then bad=1; else good=1; fi
  fi
  echo "$good $bad $(grep -ac '^# repeated:' "$1")"
}

# Prints the processes of the session $1, without zombies.
left_behind() {
  ps -e -o pid=,sid=,stat=,args= | awk -v sid="$1" '$2 == sid && $3 !~ /^Z/'
}

# The same, after time enough for processes that are about to end.
still_left_behind() {
  local deadline=$((SECONDS + 15))
  while [ -n "$(left_behind "$1")" ] && [ "$SECONDS" -lt "$deadline" ]; do
    sleep 0.1
  done
  left_behind "$1"
}

# Kills the session $1, stopped processes too.
end_session() {
  left_behind "$1" | awk '{ print $1 }' | while read -r pid; do
    kill -KILL "$pid" 2>/dev/null
  done
}

# Prints the end of the log $3 of the job $1, and then what failed in it: cmocka gives the reason above the
# name of the test, busted below.
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

# Prints each failed or skipped test of cmocka with the last lines that it printed.
failed_of_cmocka() {
  awk '
    /^\[ RUN / { count = 0; test = $NF; next }
    /^\[  (FAILED |SKIPPED) \] / && $NF == test {
      print "- " test ":"
      for (i = count > 15 ? count - 15 : 0; i < count; i++) print "    " said[i]
      test = ""
      next
    }
    { said[count++] = $0 }'
}

# Tries the counting on results of which some have failed. Returns 1 if it counts wrong.
self_test() {
  local got
  got=$(printf '%s\n' '[==========] 5 test(s) run.' '[  PASSED  ] 2 test(s).' '[  SKIPPED ] 1 test(s), listed below:' \
    '[  SKIPPED ] a' '[  FAILED  ] 2 test(s), listed below:' '[  FAILED  ] b' '[  FAILED  ] c' \
    '12 successes / 1 failure / 2 errors / 3 pending : 0.5 seconds' '1 success / 0 failures / 0 errors / 0 pending : 0.1' \
    'ok - d' 'not ok - e' | count_results /dev/stdin)
  [ "$got" = '16 10' ] || { echo "run_tests: counts '$got' where '16 10' is right"; return 1; }
}
