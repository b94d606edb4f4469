# Counts results and shows failures. Sourced by run_tests.sh, which documents the rules.

# Prints "passed failed" for a log of cmocka, busted and "ok" lines. Removes the colours of a
# terminal first.
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
    # Tests of cmocka that began, and those of groups that ended.
    /^\[ RUN      \] / { begun++ }
    /^\[==========\] .*[0-9]+ test\(s\) run/ { ended += $(NF - 2) }
    END { print passed + 0, failed + (begun > ended) }'
}

# Prints "passed failed repetitions" for the job $1, which has the log $2 and ended with the status
# $3.
judge() {
  local good bad
  read -r good bad < <(count_results "$2")
  if [ "$bad" -eq 0 ] && [ "$3" -ne 0 ]; then
    bad=1
  elif [ "$bad" -eq 0 ] && [ "$good" -eq 0 ]; then
    # A test program that ran no test has failed; a check that prints no result counts by its
    # status.
    if [[ $1 =~ (unit|spec|integration)/ ]]; then
      bad=1
      echo '# ended without a result' >>"$2"
    else
      good=1
    fi
  fi
  echo "$good $bad $(grep -ac '^# repeated:' "$2")"
}

# Prints the numbers of the processes of the session $1, and of those in other sessions that have
# the TMPDIR $2, or something in it open. A daemon that writes its title over its environment has
# its log there.
processes_of() {
  {
    ps -e -o pid=,sid= | awk -v sid="$1" '$2 == sid { print $1 }'
    grep -lsazxF "TMPDIR=$2" /proc/[0-9]*/environ | cut -d/ -f3
    find /proc/[0-9]*/cwd /proc/[0-9]*/fd -maxdepth 1 \( -lname "$2" -o -lname "$2/*" \) 2>/dev/null | cut -d/ -f3
  } | sort -u
}

# Prints these processes, without zombies: number, state and command.
left_behind() {
  local list
  list=$(processes_of "$1" "$2" | tr '\n' ',')
  [ -z "$list" ] || ps -o pid=,stat=,args= -p "${list%,}" | awk '$2 !~ /^Z/' | cut -c 1-200
}

# The same, after enough time for processes that are ending.
still_left_behind() {
  local deadline=$((SECONDS + 15))
  while [ -n "$(left_behind "$1" "$2")" ] && [ "$SECONDS" -lt "$deadline" ]; do
    sleep 0.1
  done
  left_behind "$1" "$2"
}

# Kills these processes, stopped ones too, until there is none: they may start new ones meanwhile.
end_processes() {
  local tries pids
  for ((tries = 0; tries < 50; tries++)); do
    pids=$(left_behind "$1" "$2" | awk '{ print $1 }')
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.02
  done
}

# Prints the end of the log $2 of the job $1, and then what failed in it: cmocka gives the reason
# above the name of the test, busted below.
report_failure() {
  local lines=${REDLOCK_LOG_LINES:-60} plain='s/\x1b\[[0-9;]*m//g'
  echo "---- $1: the end of $2:"
  sed "$plain" "$2" | grep -avE '^[+.-]*$' | tail -n "$lines"
  echo "---- $1: what failed:"
  sed "$plain" "$2" | grep -aE -A 12 '^(Failure|Error|Pending) -> ' | head -n "$lines"
  sed "$plain" "$2" | failed_of_cmocka | head -n "$lines"
  sed "$plain" "$2" | sed -n 's/^not ok -* */- /p; s/^# ended/- ended/p' | head -n "$lines"
  echo "----"
}

# Prints each failed or skipped test of cmocka with the last lines that it printed.
failed_of_cmocka() {
  awk '
    /^\[ RUN / { count = 0; test = $NF; next }
    /^\[       OK \] / { test = ""; next }
    /^\[  (FAILED |SKIPPED) \] / && $NF == test {
      print "- " test ":"
      for (i = count > 15 ? count - 15 : 0; i < count; i++) print "    " said[i]
      test = ""
      next
    }
    { said[count++] = $0 }
    END {
      if (test == "") exit
      print "- " test " did not end:"
      for (i = count > 15 ? count - 15 : 0; i < count; i++) print "    " said[i]
    }'
}

# Prints the job $1 and, below, at most ten tests that failed by its log $2.
failed_tests() {
  echo "  $1"
  [ -e "$2" ] || return 0
  {
    sed 's/\x1b\[[0-9;]*m//g' "$2" | grep -aE -A 1 '^(Failure|Error|Pending) -> ' | grep -avE '^(Failure|Error|Pending) -> |^--$'
    sed 's/\x1b\[[0-9;]*m//g' "$2" | failed_of_cmocka | sed -n 's/^- \(.*\):$/\1/p'
    sed 's/\x1b\[[0-9;]*m//g' "$2" | sed -n 's/^not ok -* *//p; s/^# ended/ended/p'
  } | sed 's/^/      /' | cut -c 1-160 | head -n 10
}

# Tests the counting with failed results. Returns 1 if it is wrong.
self_test() {
  local got
  got=$(printf '%s\n' '[==========] 5 test(s) run.' '[  PASSED  ] 2 test(s).' '[  SKIPPED ] 1 test(s), listed below:' \
    '[  SKIPPED ] a' '[  FAILED  ] 2 test(s), listed below:' '[  FAILED  ] b' '[  FAILED  ] c' \
    '12 successes / 1 failure / 2 errors / 3 pending : 0.5 seconds' '1 success / 0 failures / 0 errors / 0 pending : 0.1' \
    'ok - d' 'not ok - e' | count_results /dev/stdin)
  [ "$got" = '16 10' ] || { echo "run_tests: counts '$got' where '16 10' is right"; return 1; }
  # A program that ends early has failed, whatever its status.
  got=$(printf '%s\n' '[ RUN      ] a' '[==========] 1 test(s) run.' '[  PASSED  ] 1 test(s).' '[ RUN      ] b' | count_results /dev/stdin)
  [ "$got" = '1 1' ] || { echo "run_tests: counts '$got' where '1 1' is right"; return 1; }
}
