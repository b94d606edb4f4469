#!/usr/bin/env bash
# Prints the jobs of a list, long ones first:
#
#     test_jobs.sh test|check|check-long|cross        name|class|needs|targets|command
#
# class    computing, or sleeping: it mostly waits
# needs    the job that must have passed before; empty if only the ordinary build is needed
# targets  what make must build in the ordinary configuration before, as VERSION:target
#
# To add a test, add its file: unit tests, integration tests and specs are found by their names.
set -u
cd "$(dirname "$0")/.." || exit 1
MAKE=${MAKE:-make}
UNIT='csrc/test/unit/*'
INTEGRATION=csrc/test/integration

job() {
  echo "$1|$2|$3|$4|$5"
}

# Prints the names of the test programs in the directories of the pattern $1, those of |first|
# before the others.
programs() {
  local name names
  names=$(printf '%s\n' $1/*_test.c | sed 's|.*/||; s|_test\.c$||' | sort)
  for name in $first; do [[ $'\n'$names$'\n' != *$'\n'"$name"$'\n'* ]] || echo "$name"; done
  for name in $names; do [[ " $first " == *" $name "* ]] || echo "$name"; done
}

# ------------------------------------------------------------------------------- the ordinary configuration

first='every_order_of_answers rl_tls_oom rl_tls_stream rl_caller_send_thread'
unit_jobs() {
  local name version
  for name in $(programs "$UNIT"); do
    case $name in
    rl_lua_oom)
      for version in 5.4 jit; do
        job "unit/$name@$version" computing '' "$version:build/$version/test/${name}_test" \
          "build/$version/test/${name}_test lua && sh build-aux/with_nodes.sh 3 build/$version/test/${name}_test lua"
      done
      ;;
    rl_lua_*)
      for version in 5.4 jit; do
        job "unit/$name@$version" computing '' "$version:build/$version/test/${name}_test" "build/$version/test/${name}_test"
      done
      ;;
    *) job "unit/$name" computing '' "5.4:build/test/${name}_test" "build/test/${name}_test" ;;
    esac
  done
}

# The programs that run once more with TLS.
over_tls=$(sed -n 's/^INTEGRATION_OVER_TLS = //p' build-aux/integration.mk)
integration_jobs() {
  local name
  for name in $(first='cli_run cli cli_loss cli_signal_table guard' programs "$INTEGRATION") $(printf 'over_tls_%s ' $over_tls); do
    case $name in
    cli_container | failover) continue ;; # container_job, failover_job
    esac
    job "integration/$name" sleeping '' "5.4:build/test/integration/${name}_test 5.4:lib 5.4:cli" "build/test/integration/${name}_test"
  done
}

# Each fail-over lasts as long as its quarantine: make test has one, make check all kinds.
failover_job() {
  job "$1" sleeping '' 5.4:build/test/integration/failover_test "$2 build/test/integration/failover_test"
}

# It needs a PID namespace.
container_job() {
  job packages/container sleeping '' '5.4:build/test/integration/cli_container_test 5.4:lib 5.4:cli' \
    build/test/integration/cli_container_test
}

# Prints the Lua versions that the spec file $1 runs on. A guard line at column 1 restricts a spec
# to one version.
versions_of() {
  if [[ $1 = spec/nginx/* ]] || grep -q '^if not rawget(_G, "jit")' "$1"; then
    echo jit
  elif grep -q '^if _VERSION == "Lua 5.1"' "$1"; then
    echo 5.4
  else
    echo jit 5.4
  fi
}

spec_jobs() {
  local file version
  for file in spec/nginx/*_spec.lua spec/*_spec.lua spec/integration/*_spec.lua; do
    for version in $(versions_of "$file"); do
      job "${file%.lua}@$version" sleeping '' "$version:lua $version:build/$version/witness.so 5.4:lib 5.4:cli" \
        "sh build-aux/spec.sh $version $file"
    done
  done
}

# The fake needs no build, so that Lua 5.1 can run its specs, too.
fake_jobs() {
  local name
  for name in fake_spec fake_world_spec; do
    job "spec/$name@5.1" computing '' '' "LUA=lua5.1 sh build-aux/spec.sh 5.1 spec/$name.lua"
  done
}

test_jobs() {
  unit_jobs
  integration_jobs
  failover_job integration/failover "FAILOVER_WAY=crash FAILOVER_ROUNDS=1 FAILOVER_TEST='promoted*'"
  spec_jobs
  fake_jobs
  job sim/short computing '' 5.4:build/sim/sim 'sh build-aux/sim_test.sh build/sim/sim 2000 1 1 1'
  job examples/c sleeping '' 5.4:examples-programs "$MAKE examples-test"
  job demo/demo sleeping '' 5.4:lua "$MAKE demo-test"
  job checks/exports sleeping '' '5.4:lib 5.4:lua' "$MAKE check-exports"
  job checks/abi sleeping '' 5.4:lib "$MAKE check-abi"
}

# ---------------------------------------------------------------------------------------- other configurations

SANITIZER_OPTIONS='UBSAN_OPTIONS=print_stacktrace=1'

# These tests reach faults that unit tests cannot: threads, forks, descriptors, hostile bytes,
# finalizers, hooks and callbacks. Everything else runs under them in check-long.
asan_programs='client_thread watchdog_thread fork process linger resolver_thread hostile tls_hostile loop nodes login cli tls_cli tls_server'
asan_specs='redlock_spec@5.4 gc_spec@5.4 on_lost_spec@5.4 credentials_spec@5.4 reentry_spec@5.4 interrupt_spec@5.4 close_spec@5.4
  cqueues_notify_spec@5.4 gc_spec@jit nginx/owner_spec@jit nginx/request_spec@jit nginx/on_lost_spec@jit nginx/released_spec@jit
  nginx/behaviour_spec@jit nginx/abandoned_spec@jit'

asan_program_job() {
  job "asan/integration/$1" sleeping asan/build '' \
    "$SANITIZER_OPTIONS ASAN_OPTIONS=detect_leaks=1 build/asan/test/integration/${1}_test"
}

# An argument is a spec without directory and extension, "@" and its Lua version.
asan_spec_job() {
  local file=spec/${1%@*}.lua version=${1#*@}
  job "asan/spec/$1" sleeping asan/build '' "$SANITIZER_OPTIONS ASAN_OPTIONS=detect_leaks=0 REDLOCK_TEST_SANITIZER=1 \
BUILD=build/asan LUA=\$PWD/build/asan/$version/sanitized-lua sh build-aux/spec.sh $version $file"
}

asan_jobs() {
  local name
  job asan/build computing '' '' "$MAKE asan-programs"
  for name in $asan_specs; do asan_spec_job "$name"; done
  for name in $asan_programs; do asan_program_job "$name"; done
  for name in $(programs "$UNIT"); do
    case $name in
    rl_lua_oom)
      job "asan/unit/$name@5.4" computing asan/build '' \
        "$SANITIZER_OPTIONS ASAN_OPTIONS=detect_leaks=1 build/asan/5.4/test/${name}_test lua"
      ;;
    rl_lua_*)
      job "asan/unit/$name@5.4" computing asan/build '' \
        "$SANITIZER_OPTIONS ASAN_OPTIONS=detect_leaks=1 build/asan/5.4/test/${name}_test"
      ;;
    *) job "asan/unit/$name" computing asan/build '' "$SANITIZER_OPTIONS ASAN_OPTIONS=detect_leaks=1 build/asan/test/${name}_test" ;;
    esac
  done
}

# The specs and programs that asan_jobs leaves out.
asan_long_jobs() {
  local name file version
  for name in $(first='' programs "$INTEGRATION"); do
    [[ " $asan_programs " == *" $name "* ]] || asan_program_job "$name"
  done
  for file in spec/*_spec.lua spec/integration/*_spec.lua spec/nginx/*_spec.lua; do
    # Neovim does not load a sanitized module.
    [[ $file != spec/neovim_spec.lua ]] || continue
    file=${file#spec/}
    for version in $(versions_of "spec/$file"); do
      [[ " $(echo $asan_specs) " == *" ${file%.lua}@$version "* ]] || asan_spec_job "${file%.lua}@$version"
    done
  done
}

# The runtime of gcc 12 does not know the address layouts of newer kernels.
no_aslr=$(setarch -R true 2>/dev/null && echo 'setarch -R ')
tsan_jobs() {
  local name
  job tsan/build computing '' '' "$MAKE tsan-programs"
  for name in $(programs "$UNIT" | grep _thread$); do
    job "tsan/unit/$name" computing tsan/build '' "${no_aslr}build/tsan/test/${name}_test"
  done
  for name in $(programs "$INTEGRATION" | grep _thread$); do
    job "tsan/integration/$name" sleeping tsan/build '' "TSAN_OPTIONS=die_after_fork=0 ${no_aslr}build/tsan/test/integration/${name}_test"
  done
}

# Without --fair-sched a polling thread starves other threads.
VALGRIND='valgrind --fair-sched=try --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=yes'
# Programs that take minutes under valgrind, and that AddressSanitizer runs on each change.
valgrind_long='every_order_of_answers rl_tls_stream rl_tls_node rl_tls_fuzz_replay'

valgrind_job() {
  job "valgrind/unit/$1" computing '' "5.4:build/test/${1}_test" "REDLOCK_TEST_VALGRIND=1 $VALGRIND build/test/${1}_test"
}

valgrind_jobs() {
  local name
  for name in $(programs "$UNIT"); do
    # Threads under valgrind take turns, so that a bound of time means nothing; ThreadSanitizer runs
    # them.
    [[ $name == rl_lua_* || $name == *_thread || " $valgrind_long " == *" $name "* ]] || valgrind_job "$name"
  done
  for name in loop_spec reentry_spec; do
    job "valgrind/spec/$name@5.4" computing '' '5.4:lua 5.4:build/5.4/witness.so' \
      "REDLOCK_TEST_VALGRIND=1 SPEC_WRAPPER='$VALGRIND' sh build-aux/spec.sh 5.4 spec/$name.lua"
  done
}

# Tests that depend on the server, with the servers of several suites of Debian.
server_jobs() {
  local name command
  while IFS='|' read -r name command; do
    case $name in
    *_spec) job "$name" sleeping '' '5.4:lua 5.4:build/5.4/witness.so 5.4:lib 5.4:cli' "$command" ;;
    *) job "$name" sleeping '' "5.4:build/test/integration/${name##*/}" "$command" ;;
    esac
  done < <(sh build-aux/other_servers.sh --list)
}

# Specs that need a browser or promtool.
page_jobs() {
  local file
  for file in spec/check/*_spec.lua; do
    job "${file%.lua}@jit" sleeping '' 'jit:lua jit:build/jit/witness.so' "sh build-aux/spec.sh jit $file"
  done
}

# Lua 5.5, which comes from another suite of Debian. Everything else runs on it in check-long.
newer_lua_programs='rl_lua_host rl_lua_result'
newer_lua_specs='gc redlock close reentry fake fake_world'
newer_lua_jobs() {
  local name arguments
  job luas/build computing '' '5.4:lib 5.4:cli' \
    "sh build-aux/newer_lua.sh --get && $MAKE lua unit-lua-programs build/5.5/witness.so LUA_VERSION=5.5"
  for name in $1; do
    arguments=
    [ "$name" != rl_lua_oom ] || arguments=' lua'
    job "luas/unit/$name@5.5" computing luas/build '' "sh build-aux/newer_lua.sh --run build/5.5/test/${name}_test$arguments"
  done
  for name in $2; do
    job "luas/spec/$name@5.5" sleeping luas/build '' "sh build-aux/spec.sh 5.5 spec/${name}_spec.lua"
  done
}

# What check leaves out of Lua 5.5.
newer_lua_long_jobs() {
  local name programs='' specs=''
  for name in $(programs "$UNIT" | grep ^rl_lua_); do
    [[ " $newer_lua_programs " == *" $name "* || $name == rl_lua_nginx_* ]] || programs+=" $name"
  done
  for name in spec/*_spec.lua spec/integration/*_spec.lua; do
    [[ " $(versions_of "$name") " == *' 5.4 '* ]] || continue
    name=${name#spec/} name=${name%_spec.lua}
    [[ " $newer_lua_specs " == *" $name "* ]] || specs+=" $name"
  done
  newer_lua_jobs "$programs" "$specs"
}

check_jobs() {
  local part
  server_jobs
  page_jobs
  failover_job servers/failover ''
  job chaos/controls sleeping '' 5.4:chaos-programs "$MAKE chaos-controls"
  job chaos/run sleeping '' 5.4:chaos-programs "$MAKE chaos-run"
  job conformance/quick sleeping '' '5.4:conformance-programs' "$MAKE conformance-quick"
  job controls/controls computing '' 5.4:build/sim/sim "$MAKE controls SIM_PROCESSES=1"
  asan_jobs
  job model/model computing '' 5.4:model-programs "$MAKE model"
  for part in 1 2 3 4; do
    job "lint/tidy-$part" computing '' '' "$MAKE lint-step STEP='tidy $part/4'"
  done
  job packages/newer-hiredis computing '' '' \
    "sh build-aux/debian_tree.sh --get --only 'libhiredis*' build/other-hiredis trixie libhiredis-dev && \
$MAKE newer-hiredis HIREDIS_PREFIX=\$PWD/build/other-hiredis/root/usr"
  job packages/without-tls computing '' '' "$MAKE check-without-tls"
  job packages/install sleeping '' '5.1:lua 5.4:lua jit:lua 5.4:lib 5.4:cli' "$MAKE check-install"
  container_job
  job packages/rocks sleeping '' '' "$MAKE check-rocks"
  tsan_jobs
  job sim/sim computing '' 5.4:build/sim/sim "$MAKE sim-test SIM_PROCESSES=1"
  job model/replay computing '' 5.4:model-programs "$MAKE model-replay"
  job model/controls computing '' 5.4:model-programs "$MAKE model-controls SIM_PROCESSES=1"
  valgrind_jobs
  newer_lua_jobs "$newer_lua_programs" "$newer_lua_specs"
  job luas/luas sleeping luas/build '5.1:lua 5.2:lua 5.3:lua 5.4:lua jit:lua' "$MAKE luas"
  job cross/s390x computing '' 5.4:build/sim/sim 'sh build-aux/cross.sh --quick s390x'
  for part in cppcheck lua format words manual; do
    job "lint/$part" computing '' '' "$MAKE lint-step STEP=$part"
  done
  job werror/werror computing '' '' "$MAKE werror WERROR="
  job checks/pure computing '' 5.4:lib "$MAKE check-pure"
  job checks/layers computing '' '5.4:lib 5.4:lua' "$MAKE check-layers"
  job checks/header computing '' '' "$MAKE check-header"
  job checks/safety computing '' '' "$MAKE check-safety"
  job checks/controls computing '' '' "$MAKE check-controls"
  job checks/language computing '' '' "$MAKE check-language"
  job checks/links computing '' '' "$MAKE check-links"
  job checks/charts computing '' '' "$MAKE check-charts"
  job checks/messages computing '' '' "$MAKE check-messages"
  job checks/versions computing '' '' "$MAKE check-versions"
  job checks/manual computing '' '' "$MAKE check-manual"
  job checks/conformance-page computing '' '' "$MAKE check-conformance-page"
}

long_jobs() {
  local name version
  CYCLES="WATCHDOG_TEST='cycles*' WATCHDOG_CYCLES=1000"
  job long/sim computing '' 5.4:build/sim/sim "$MAKE sim-long"
  job long/model computing '' 5.4:model-programs "$MAKE model-long"
  job long/soak sleeping '' 5.4:chaos-programs "$MAKE soak"
  job long/auto_extend sleeping '' 5.4:build/test/integration/auto_extend_test 'AUTO_EXTEND_ROUNDS=100 build/test/integration/auto_extend_test'
  job long/guard sleeping '' 5.4:build/test/integration/guard_test 'GUARD_ROUNDS=1000 build/test/integration/guard_test'
  for name in crash order FAILOVER Sentinel; do
    job "long/failover-$name" sleeping '' 5.4:build/test/integration/failover_test \
      "FAILOVER_ROUNDS=250 FAILOVER_WAY=$name build/test/integration/failover_test"
  done
  job long/contention sleeping '' 5.4:build/test/integration/contention_test 'CONTENTION_ROUNDS=50 build/test/integration/contention_test'
  # A hundred losses of the lock, and jobs of three hosts.
  job long/cli_loss sleeping '' '5.4:build/test/integration/cli_loss_test 5.4:cli' 'CLI_ROUNDS=100 build/test/integration/cli_loss_test'
  # 1,000 runs by twenty shells.
  job long/cli_counter sleeping '' '5.4:build/test/integration/cli_counter_test 5.4:cli' 'COUNTER_ROUNDS=50 build/test/integration/cli_counter_test'
  job long/burst computing '' 5.4:build/test/integration/burst_test 'BURST_LEASES=50000 build/test/integration/burst_test'
  for version in 5.4 jit; do
    job "long/hold@$version" sleeping '' "$version:lua $version:build/$version/witness.so" \
      "HOLD_SECONDS=60 sh build-aux/spec.sh $version spec/auto_extend_spec.lua"
  done
  job long/fake sleeping '' '5.4:lua 5.4:build/5.4/witness.so' \
    'FAKE_SEEDS=1000 FAKE_CALLS=300 sh build-aux/spec.sh 5.4 spec/fake_random_spec.lua'
  newer_lua_long_jobs
  job long/site computing '' '' "$MAKE check-site"
  # Creates and closes clients and leases 1,000 times under each leak checker.
  job asan/build computing '' '' "$MAKE asan-programs"
  asan_long_jobs
  for name in $valgrind_long; do valgrind_job "$name"; done
  job asan/long/cycles sleeping asan/build '' "$CYCLES ASAN_OPTIONS=detect_leaks=1 build/asan/test/integration/watchdog_thread_test"
  job tsan/build computing '' '' "$MAKE tsan-programs"
  job tsan/long/cycles sleeping tsan/build '' "$CYCLES ${no_aslr}build/tsan/test/integration/watchdog_thread_test"
  # Ten minutes of random calls of threads.
  job tsan/long/stress sleeping tsan/build '' \
    "STRESS_SECONDS=600 TSAN_OPTIONS=die_after_fork=0 ${no_aslr}build/tsan/test/integration/stress_thread_test"
  job valgrind/long/cycles sleeping '' 5.4:build/test/integration/watchdog_thread_test \
    "$CYCLES $VALGRIND --freelist-vol=100000 build/test/integration/watchdog_thread_test"
}

# Other processors, C libraries and systems.
cross_jobs() {
  local name command
  while IFS='|' read -r name command; do
    job "$name" computing '' '5.4:build/sim/sim 5.4:lib 5.4:cli jit:lua jit:build/jit/witness.so' "$command"
  done < <(sh build-aux/cross.sh --list)
}

case ${1:-} in
test) test_jobs ;;
cross) cross_jobs ;;
check) check_jobs ;;
check-long) long_jobs ;;
*)
  echo "test_jobs: test, check, check-long or cross, not ${1:-nothing}" >&2
  exit 2
  ;;
esac
