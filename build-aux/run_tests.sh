#!/usr/bin/env bash
# Runs the jobs of one or more lists (build-aux/test_jobs.sh), several at a time, and prints as its last line:
#
#     N passed, N failed
#
#     run_tests.sh [--only TEXT]... LIST...
#
# LIST is test, check or check-long. --only keeps the jobs whose name contains TEXT; "changed" stands for the names of the
# files that differ from HEAD. REDLOCK_TOTALS=file receives the last line instead.
#
# 1. A job starts when the job that it needs has passed and a slot of its class is free. There is one computing slot
#    for each processor. Sleeping jobs mostly wait, so there are more of those slots.
# 2. A job runs in a session and a TMPDIR of its own. A process that it leaves behind is a failure.
# 3. Each test of cmocka and busted and each "ok" line counts one. A skipped or pending test has failed. A job that prints no
#    such line counts one by its exit status.
#
# Logs are in build/log/NAME.log, and name, class, seconds, processor
# milliseconds, passed, failed and repeated of each job in build/log/times.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.." || exit 1
export MAKE=${MAKE:-make} MAKEFLAGS=s MFLAGS= CI=${CI:-true}
unset LUA LUA_PATH LUA_CPATH LUA_VERSION BUILD CFLAGS CPPFLAGS LDFLAGS
. "$here/test_report.sh"

log_directory=build/log
processors=$(nproc 2>/dev/null || echo 2)
declare -A slots=([computing]=$processors [sleeping]=$((2 * processors + 2)))
# Ends what hangs. A slow machine needs a fraction of it.
job_limit=${REDLOCK_JOB_SECONDS:-1500}

names=() classes=() needs=() commands=()
declare -A state suite_left suite_passed suite_failed suite_started suite_cpu pid_job
passed=0
failed=0
repeated=0
failures=()

# Prints the names of changed files without directory, "_test", "_spec" and extension.
changed_names() {
  { git diff --name-only HEAD; git ls-files -o --exclude-standard; } |
    sed 's|.*/||; s|\.[a-z]*$||; s/_\(test\|spec\)$//' | sort -u
}

# Returns 0 if the job $1 is asked for by one of the texts in |only|.
is_wanted() {
  local text
  [ "${#only[@]}" -gt 0 ] || return 0
  for text in "${only[@]}"; do
    [[ $1 != *"$text"* ]] || return 0
  done
  return 1
}

# Reads the lines name|class|needs|targets|command of the list $1, and keeps what is wanted.
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

# The suite of a job is the first part of its name, with the Lua version: spec/nginx/x@jit is of spec@jit.
suite_of() {
  local suite=${1%%/*}
  [[ $1 != *@* ]] || suite=$suite@${1##*@}
  echo "$suite"
}

# Runs the job number $1 in this subshell. Writes status, seconds, processor seconds, passed, failed, repetitions.
run_job() {
  local name=${names[$1]} log=$log_directory/${names[$1]}.log started=$SECONDS status left cpu
  export TMPDIR=$scratch/$1
  mkdir -p "$TMPDIR" "${log%/*}"
  session=
  trap '[ -z "$session" ] || end_session "$session"; exit 130' INT TERM HUP
  setsid timeout -k 10 "$job_limit" bash -c "${commands[$1]}" >"$log" 2>&1 </dev/null &
  session=$!
  wait "$session"
  status=$?
  [ "$status" -ne 124 ] || echo "not ok - $name took longer than $job_limit s" >>"$log"
  left=$(still_left_behind "$session")
  if [ -n "$left" ]; then
    end_session "$session"
    printf 'not ok - these processes were left behind:\n%s\n' "$left" >>"$log"
  fi
  rm -rf "$TMPDIR"
  times >"$scratch/$1.times"
  # The second line has the user and the system time of all processes that ended.
  cpu=$(awk 'NR == 2 { split($0, t, /[ms ]+/); printf "%d", (t[1] * 60 + t[2] + t[3] * 60 + t[4]) * 1000 }' "$scratch/$1.times")
  echo "$status $((SECONDS - started)) $cpu $(judge "$log" "$status")" >"$scratch/$1.result"
}

# Prints a line that replaces itself, if there is a terminal.
show_progress() {
  [ -t 1 ] || return 0
  local i running=
  for i in "${pid_job[@]}"; do running="$running ${names[i]}"; done
  printf '\r\033[K%s' "$(printf '[%d of %d jobs, %d failed]%s' "$done_jobs" "${#names[@]}" "$failed" "$running" | cut -c "1-$((${COLUMNS:-100} - 1))")"
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
  run_job "$1" &
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
    report_failure "$name" "exit status $status" "$log_directory/$name.log"
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

# Builds what the jobs of the ordinary configuration need. A target is VERSION:target, with the Lua version for make.
build_all() {
  local started=$SECONDS version targets
  say '%-14s starts\n' build
  for version in 5.4 jit 5.1 5.2 5.3; do
    targets=$(printf '%s\n' $build_targets | sed -n "s/^$version://p")
    [ -n "$targets" ] || continue
    # shellcheck disable=SC2086
    if ! timeout "$job_limit" $MAKE -j"$processors" LUA_VERSION=$version $targets >"$log_directory/build.log" 2>&1; then
      tail -n 40 "$log_directory/build.log"
      failed=$((failed + 1))
      failures+=(build)
      finish
    fi
  done
  passed=$((passed + 1))
  say '%-14s %5d passed %4d failed %5d s\n' build 1 0 $((SECONDS - started))
}

finish() {
  local totals="$passed passed, $failed failed"
  [ "$repeated" -eq 0 ] || say '%d timed blocks were repeated, because the machine stalled\n' "$repeated"
  [ "${#failures[@]}" -eq 0 ] || say 'failed: %s\n' "${failures[*]}"
  say 'took %d s\n' "$SECONDS"
  if [ -n "${REDLOCK_TOTALS:-}" ]; then
    echo "$totals" >"$REDLOCK_TOTALS"
  else
    echo "$totals"
  fi
  rm -rf "$scratch"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

interrupted() {
  trap '' INT TERM HUP
  kill -TERM "${!pid_job[@]}" 2>/dev/null
  wait
  rm -rf "$scratch"
  echo "interrupted" >&2
  exit 130
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/rl.XXXXXX") || exit 1
trap interrupted INT TERM HUP
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
if [[ " ${only[*]} " == *" changed "* ]]; then
  mapfile -t only < <(changed_names)
fi
self_test || { failed=$((failed + 1)); failures+=(self_test); }
for list in "${lists[@]}"; do read_jobs "$list"; done
drop_idle_builds
if [ "${#names[@]}" -eq 0 ]; then
  echo "no job of ${lists[*]} is called: ${only[*]}"
  failed=$((failed + 1))
  finish
fi
declare -A job_named
for i in "${!names[@]}"; do
  job_named[${names[i]}]=$i
  suite=$(suite_of "${names[i]}")
  suite_left[$suite]=$((${suite_left[$suite]:-0} + 1))
done
suites_left=${#suite_left[@]}
mkdir -p "$log_directory"
: >"$log_directory/times"
[ -z "${build_targets// /}" ] || build_all
run_jobs
finish
