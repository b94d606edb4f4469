#!/usr/bin/env bash
# Runs the jobs of one or more lists (build-aux/test_jobs.sh), several at a time, and prints as its
# last line:
#
#     N passed, N failed
#
#     run_tests.sh [--only TEXT]... LIST...
#
# LIST is test, check, check-long or cross. --only keeps the jobs whose name contains TEXT; "changed"
# stands for the names of the source files that differ from HEAD. TEST_TOTALS=file receives the
# last line instead.
#
# 1. A job starts when the job that it needs has passed and a slot of its class is free. There is
#    one computing slot
#    for each processor. Sleeping jobs mostly wait, so there are more of those slots.
# 2. A job runs in a session and a TMPDIR of its own. A process that it leaves behind is a failure,
#    in other sessions, too.
# 3. Each test of cmocka and busted and each "ok" line counts one. A skipped or pending test has
#    failed. A check that prints
#    no such line counts one by its exit status.
# 4. One run at a time in one tree. A signal ends the run, its jobs and their files.
#
# Logs are in build/log/NAME.log, and name, class, seconds, processor
# milliseconds, passed, failed and repeated of each job in build/log/times.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.." || exit 1
export MAKE=${MAKE:-make} MAKEFLAGS=s MFLAGS= CI=${CI:-true}
unset LUA LUA_PATH LUA_CPATH LUA_VERSION BUILD CFLAGS CPPFLAGS LDFLAGS
. "$here/test_report.sh"

[ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 51 ] || {
  printf 'run_tests: bash 5.1 is needed, and this is %s\n0 passed, 1 failed\n' "$BASH_VERSION"
  exit 1
}

log_directory=build/log
processors=$(nproc 2>/dev/null || echo 2)
declare -A slots=([computing]=$processors [sleeping]=$((3 * processors + 2)))
# Ends hanging jobs. A slow machine needs a fraction of this.
job_limit=${REDLOCK_JOB_SECONDS:-1500}

names=() classes=() needs=() commands=()
declare -A state suite_left suite_passed suite_failed suite_started suite_cpu pid_job
passed=0
failed=0
repeated=0
failures=()

# Returns 0 if the text $1 is in the name of a job.
is_named() {
  local name
  for name in "${all_names[@]}"; do
    [[ $name != *"$1"* ]] || return 0
  done
  return 1
}

# Prints the texts that select the tests of the source file $1: its name without "_test" and
# "_spec", or, if no job is called so, the suites that use its directory. Of the product also the
# specs that compare tables and values with their copies.
tests_of_file() {
  local name=${1##*/} spec
  case $1 in csrc/core/* | csrc/include/* | lua/*)
    for spec in option_table_spec quoted_values_spec fake_twin_spec; do ! is_named "$spec" || echo "$spec"; done
    ;;
  esac
  name=${name%.*}
  name=${name%_test}
  name=${name%_spec}
  if is_named "$name"; then echo "$name"; return; fi
  case $1 in
  csrc/core/*) printf '%s\n' unit/ sim/short ;;
  csrc/driver/* | csrc/include/* | csrc/test/lib/*) printf '%s\n' unit/ integration/ ;;
  csrc/tls/* | csrc/test/tls/*) echo tls ;;
  csrc/cli/*) echo cli ;;
  csrc/test/sim/*) echo sim/ ;;
  csrc/binding/rl_lua_nginx*) echo nginx ;;
  csrc/binding/* | lua/* | spec/*) echo spec/ ;;
  examples/*) echo examples ;;
  README.md | docs/*) echo pages ;;
  esac
}

# Replaces the word "changed" in |only| by the tests of the source files that differ from HEAD.
expand_changed() {
  local text file kept=() texts=()
  for text in "${only[@]}"; do [ "$text" = changed ] || kept+=("$text"); done
  [ "${#kept[@]}" -lt "${#only[@]}" ] || return 0
  while read -r file; do
    [ ! -d "$file" ] || continue
    mapfile -t texts < <(tests_of_file "$file")
    [ "${#texts[@]}" -gt 0 ] || { echo "ONLY=changed: no job of ${lists[*]} tests $file"; continue; }
    kept+=("${texts[@]}")
  done < <({ git diff --name-only HEAD; git ls-files -o --exclude-standard; } | grep -E '\.(c|h|lua)$' | sort -u)
  only=("${kept[@]}")
  [ "${#only[@]}" -gt 0 ] || {
    echo 'ONLY=changed: no source file differs from HEAD'
    give_up changed
  }
}

# Ends the run if a text of |only| is in the name of no job.
check_only() {
  local text
  for text in "${only[@]}"; do
    is_named "$text" || {
      echo "no job of ${lists[*]} is called $text"
      give_up "$text"
    }
  done
}

# Returns 0 if one of the texts in |only| selects the job $1.
is_wanted() {
  local text
  [ "${#only[@]}" -gt 0 ] || return 0
  for text in "${only[@]}"; do
    [[ $1 != *"$text"* ]] || return 0
  done
  return 1
}

# Reads the lines name|class|needs|targets|command of the list $1, and keeps the selected ones.
read_jobs() {
  local name class need target command
  while IFS='|' read -r name class need target command; do
    is_wanted "$name" || [[ $name == */build ]] || continue
    names+=("$name") classes+=("$class") needs+=("$need") commands+=("$command")
    [[ $name == */build ]] || build_targets="$build_targets $target"
  done < <(bash "$here/test_jobs.sh" "$1")
  build_targets=$(printf '%s\n' $build_targets | sort -u | tr '\n' ' ')
}

# Drops each build of a configuration that no other job needs.
drop_idle_builds() {
  local i kept_names=() kept_classes=() kept_needs=() kept_commands=()
  for i in "${!names[@]}"; do
    if [[ ${names[i]} == */build ]] && ! is_wanted "${names[i]}" && [[ " ${needs[*]} " != *" ${names[i]} "* ]]; then
      continue
    fi
    kept_names+=("${names[i]}") kept_classes+=("${classes[i]}") kept_needs+=("${needs[i]}") kept_commands+=("${commands[i]}")
  done
  names=("${kept_names[@]}") classes=("${kept_classes[@]}") needs=("${kept_needs[@]}") commands=("${kept_commands[@]}")
}

# The suite of a job is the first part of its name, with the Lua version: spec/nginx/x@jit is of
# spec@jit.
suite_of() {
  local suite=${1%%/*}
  [[ $1 != *@* ]] || suite=$suite@${1##*@}
  echo "$suite"
}

# Runs the job number $1 in this subshell. Writes status, seconds, processor seconds, passed,
# failed, repetitions.
run_job() {
  local name=${names[$1]} log=$log_directory/${names[$1]}.log started=$SECONDS status left cpu
  local directory=$scratch/$1
  mkdir -p "$directory" "${log%/*}"
  session=
  trap '[ -z "$session" ] || end_processes "$session" "$directory"; exit 130' INT TERM HUP PIPE
  TMPDIR=$directory setsid timeout -k 10 "$job_limit" bash -c "${commands[$1]}" >"$log" 2>&1 </dev/null &
  session=$!
  # The shell would report a crash here, too.
  { wait "$session"; } 2>/dev/null
  status=$?
  if [ "$status" -eq 124 ] || [ $((SECONDS - started)) -ge "$job_limit" ]; then
    echo "not ok - $name took longer than $job_limit s" >>"$log"
  elif [ "$status" -ne 0 ]; then
    echo "# ended with status $status$([ "$status" -le 128 ] || kill -l "$status" 2>/dev/null | sed 's/^/, SIG/')" >>"$log"
  fi
  left=$(still_left_behind "$session" "$directory")
  if [ -n "$left" ]; then
    end_processes "$session" "$directory"
    printf '%s\n' "$left" | sed 's/^/not ok - left behind: process /' >>"$log"
  fi
  rm -rf "$directory"
  times >"$scratch/$1.times"
  # The second line has the user and the system time of all processes that ended.
  cpu=$(awk 'NR == 2 { split($0, t, /[ms ]+/); printf "%d", (t[1] * 60 + t[2] + t[3] * 60 + t[4]) * 1000 }' "$scratch/$1.times")
  echo "$status $((SECONDS - started)) $cpu $(judge "$name" "$log" "$status")" >"$scratch/$1.result"
}

# Prints a line that replaces itself, if there is a terminal.
show_progress() {
  [ -t 1 ] || return 0
  local i running= rows columns
  read -r rows columns < <(stty size <&1 2>/dev/null)
  [ "${columns:-0}" -gt 10 ] || columns=80
  for i in "${pid_job[@]}"; do running="$running ${names[i]}"; done
  printf '\r\033[K%s' "$(printf '[%d of %d jobs, %d failed]%s' "$done_jobs" "${#names[@]}" "$failed" "$running" | cut -c "1-$((columns - 1))")"
}

say() {
  [ ! -t 1 ] || printf '\r\033[K'
  printf "$@"
}

start_job() {
  local suite
  suite=$(suite_of "${names[$1]}")
  if [ -z "${suite_started[$suite]:-}" ]; then
    suite_started[$suite]=$SECONDS
    say '%-14s starts with %d jobs; %d suites remain\n' "$suite" "${suite_left[$suite]}" "$suites_left"
  fi
  state[$1]=running
  slots[${classes[$1]}]=$((slots[${classes[$1]}] - 1))
  run_job "$1" 9>&- &
  pid_job[$!]=$1
}

# Adds the result of the job number $1 to the totals, and closes its suite after its last job.
finish_job() {
  local name=${names[$1]} suite status seconds cpu good bad again
  suite=$(suite_of "$name")
  read -r status seconds cpu good bad again <"$scratch/$1.result" || { status=1 seconds=0 cpu=0 good=0 bad=1 again=0; }
  state[$1]=$([ "$bad" -eq 0 ] && echo passed || echo failed)
  echo "$name ${classes[$1]} $seconds $cpu $good $bad $again" >>"$log_directory/times"
  done_jobs=$((done_jobs + 1))
  passed=$((passed + good)) failed=$((failed + bad)) repeated=$((repeated + again))
  suite_passed[$suite]=$((${suite_passed[$suite]:-0} + good))
  suite_failed[$suite]=$((${suite_failed[$suite]:-0} + bad))
  suite_cpu[$suite]=$((${suite_cpu[$suite]:-0} + cpu))
  suite_left[$suite]=$((suite_left[$suite] - 1))
  if [ "$bad" -gt 0 ]; then
    failures+=("$name")
    say ''
    report_failure "$name" "$log_directory/$name.log"
  fi
  if [ "${suite_left[$suite]}" -eq 0 ]; then
    suites_left=$((suites_left - 1))
    say '%-14s %5d passed %4d failed %5d s, %5d s of processor\n' "$suite" "${suite_passed[$suite]}" "${suite_failed[$suite]}" \
      $((SECONDS - ${suite_started[$suite]:-$SECONDS})) $((suite_cpu[$suite] / 1000))
  fi
}

# Fails the job number $1, because the job that it needs has failed.
skip_job() {
  mkdir -p "$(dirname "$log_directory/${names[$1]}")"
  echo "not ok - not run, because ${needs[$1]} failed" >"$log_directory/${names[$1]}.log"
  echo '1 0 0 0 1 0' >"$scratch/$1.result"
  finish_job "$1"
}

# Starts every job that can start. Returns 1 if none is waiting.
start_jobs() {
  local i waiting=1
  for i in "${!names[@]}"; do
    [ "${state[$i]:-waiting}" = waiting ] || continue
    waiting=0
    case ${needs[i]:+${state[${job_named[${needs[i]}]:-none}]:-missing}} in
    '' | passed) [ "${slots[${classes[i]}]}" -le 0 ] || start_job "$i" ;;
    failed) skip_job "$i" ;;
    esac
  done
  return "$waiting"
}

run_jobs() {
  local pid i
  while start_jobs || [ "${#pid_job[@]}" -gt 0 ]; do
    show_progress
    [ "${#pid_job[@]}" -gt 0 ] || { echo "not ok - jobs wait for a job that does not exist"; failed=$((failed + 1)); break; }
    wait -n -p pid "${!pid_job[@]}"
    [ -n "${pid:-}" ] || continue
    i=${pid_job[$pid]}
    unset "pid_job[$pid]"
    slots[${classes[i]}]=$((slots[${classes[i]}] + 1))
    finish_job "$i"
  done
}

# Prints how many files were compiled, in a line that replaces itself, until the build ends.
show_build() {
  [ -t 1 ] || return 0
  while kill -0 "$build" 2>/dev/null; do
    printf '\r\033[Kbuild: %d files' "$(find build -name '*.o' -newer "$log_directory/times" 2>/dev/null | wc -l)"
    sleep 0.5
  done
}

# Builds what the jobs of the ordinary configuration need. A target is VERSION:target, with the Lua
# version for make.
build_all() {
  local started=$SECONDS version targets
  say '%-14s starts\n' build
  for version in 5.4 jit 5.1 5.2 5.3; do
    # "lib" and "lua" come first: each compiles the whole library as one unit, which takes longest.
    targets=$(printf '%s\n' $build_targets | sed -n "s/^$version://p" | awk '{ print !/^(lib|lua)$/, $0 }' | sort | cut -d' ' -f2)
    [ -n "$targets" ] || continue
    # shellcheck disable=SC2086
    timeout "$job_limit" $MAKE -j"$processors" LUA_VERSION=$version $targets >"$log_directory/build.log" 2>&1 9>&- &
    build=$!
    show_build
    if ! wait "$build"; then
      tail -n 40 "$log_directory/build.log"
      echo '---- what failed:'
      grep -aE -A 3 'error: |undefined reference|\*\*\* ' "$log_directory/build.log" | head -n 40
      failed=$((failed + 1))
      failures+=(build)
      finish
    fi
  done
  build=
  passed=$((passed + 1))
  say '%-14s %5d passed %4d failed %5d s\n' build 1 0 $((SECONDS - started))
}

finish() {
  local totals="$passed passed, $failed failed"
  [ "$repeated" -eq 0 ] || say '%d timed blocks were repeated, because the machine stalled\n' "$repeated"
  [ "${#failures[@]}" -eq 0 ] || say 'failed:\n%s\n' "$(for name in "${failures[@]}"; do failed_tests "$name" "$log_directory/$name.log"; done)"
  say 'took %d s\n' "$SECONDS"
  if [ -n "${TEST_TOTALS:-}" ]; then
    echo "$totals" >"$TEST_TOTALS"
  else
    echo "$totals"
  fi
  rm -rf "$scratch"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# Ends the run before it begins: |what| has failed.
give_up() {
  failed=$((failed + 1)) failures+=("$1")
  finish
}

interrupted() {
  trap '' INT TERM HUP PIPE
  # shellcheck disable=SC2086
  kill -TERM "${!pid_job[@]}" $build 2>/dev/null
  wait
  rm -rf "$scratch"
  echo "interrupted" >&2
  exit 130
}

# Scripts and nginx do not support all characters, and the path of a socket has at most 107.
if [[ ! ${TMPDIR:-/tmp} =~ ^/[A-Za-z0-9/._-]{0,39}$ ]]; then
  echo "TMPDIR=$TMPDIR is longer than 40 characters, not absolute, or has special characters: /tmp is used instead"
  TMPDIR=/tmp
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rl.XXXXXX") || {
  echo '0 passed, 1 failed'
  exit 1
}
build=
trap interrupted INT TERM HUP PIPE
only=()
lists=()
build_targets=
done_jobs=0
while [ $# -gt 0 ]; do
  case $1 in
  --only) only+=("$2") && shift ;;
  *) lists+=("$1") ;;
  esac
  shift
done
mkdir -p "$log_directory"
exec 9>"$log_directory/lock"
flock -n 9 || {
  echo "another run of the tests goes on in $PWD"
  give_up lock
}
mapfile -t all_names < <(for list in "${lists[@]}"; do bash "$here/test_jobs.sh" "$list"; done | cut -d'|' -f1)
expand_changed
check_only
self_test || { failed=$((failed + 1)); failures+=(self_test); }
for list in "${lists[@]}"; do read_jobs "$list"; done
drop_idle_builds
declare -A job_named
for i in "${!names[@]}"; do
  job_named[${names[i]}]=$i
  suite=$(suite_of "${names[i]}")
  suite_left[$suite]=$((${suite_left[$suite]:-0} + 1))
done
suites_left=${#suite_left[@]}
: >"$log_directory/times"
[ -z "${build_targets// /}" ] || build_all
run_jobs
finish
