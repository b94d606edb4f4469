#!/bin/sh
# Runs the tests that depend on the server with servers of several suites of Debian. It unpacks
# their packages and runs them with their own C library, so that it installs nothing and needs no
# rights.
#
#     other_servers.sh --list              prints "servers/NAME/TEST|command" for each test
#     other_servers.sh --run NAME COMMAND  runs a test with the server
#     other_servers.sh --get NAME          unpacks the server once, and prints the path of its program
#
# OTHER_SERVERS is the directory of the servers, build/other-servers by default. The first --get
# needs apt-get and a network. docs/operating.md lists the servers with which these tests pass.
set -u
directory=${OTHER_SERVERS:-$PWD/build/other-servers}
cd "$(dirname "$0")/.." || exit 1
programs="guard failover fence native notify queue_script doctor"
names="redis-7.0 redis-8.0 redis-8.6 valkey-8.0 valkey-8.1 valkey-9.1"
specs="spec/notify_spec"

fail() {
  echo "other_servers.sh: $1" >&2
  exit 1
}

# The suites for apt; the first one has the package.
suites_of() {
  case $1 in
  redis-7.0) echo bookworm ;;
  valkey-8.0) echo bookworm-backports bookworm ;;
  redis-8.0 | valkey-8.1) echo trixie ;;
  valkey-9.1) echo sid ;;
  redis-8.6) echo experimental sid ;;
  *) fail "unknown server $1: use one of $names" ;;
  esac
}

# Several may want it at once: the first one gets it.
get() {
  suites=$(suites_of "$1") || exit 1
  tree=$directory/$1
  sh build-aux/debian_tree.sh --get "$tree" "$suites" "${1%-*}-server" || exit 1
  # The server is the program that checks dumps, under another name.
  program=$(cd "$tree/root" && find usr/bin -name '*-check-rdb' | sed 's/check-rdb$/server/' | head -n 1)
  sh build-aux/debian_tree.sh --wrap "$tree" redis-server "$program" || exit 1
  (cd "$tree" && echo "$PWD/redis-server")
}

# Says which version it is: a suite may have a newer one by now.
run() {
  REDLOCK_TEST_SERVER=$(get "$1") || exit 1
  export REDLOCK_TEST_SERVER
  version=$("$REDLOCK_TEST_SERVER" --version | sed 's/ sha=.*//') || exit 1
  case $version in
  *" v=${1##*-}."*) echo "# $1: $version" ;;
  *) echo "# $1: $version now; change the list in build-aux/other_servers.sh and docs/operating.md" ;;
  esac
  shift
  "$@"
}

list() {
  for name in $names; do
    for program in $programs; do
      variables=
      # servers/failover runs all kinds, at the server of the system.
      [ "$program" != failover ] || variables="FAILOVER_WAY=crash FAILOVER_ROUNDS=1 FAILOVER_TEST='promoted*' "
      echo "servers/$name/${program}_test|${variables}sh build-aux/other_servers.sh --run $name build/test/integration/${program}_test"
    done
    for spec in $specs; do
      echo "servers/$name/${spec##*/}|sh build-aux/other_servers.sh --run $name sh build-aux/spec.sh 5.4 $spec.lua"
    done
  done
}

case ${1:-} in
--list) list ;;
--get) get "${2:-}" ;;
--run)
  shift
  run "$@"
  ;;
*) fail "it needs --list, --run NAME COMMAND or --get NAME" ;;
esac
