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
directory=${OTHER_SERVERS:-build/other-servers}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
names="redis-7.0 redis-8.0 valkey-8.0 valkey-8.1 valkey-9.1"
programs="guard failover fence notify queue_script doctor"
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
  *) fail "unknown server $1: use one of $names" ;;
  esac
}

# apt-get with its own lists and cache, which installs nothing.
apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$apt" \
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none \
    -o Acquire::Retries=3 "$@" </dev/null >&2
}

# Unpacks the server $1 into $2.
unpack() {
  suites=$(suites_of "$1") || exit 1
  package=${1%-*}-server
  apt=$2/apt
  rm -rf "$2"
  # shellcheck disable=SC2016 # The mirror of this machine.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  if [ ! -r "$keyring" ] || [ -z "$mirror" ]; then fail "cannot get $1 without apt-get and the keyring of Debian"; fi
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$2/root" || exit 1
  : >"$apt/status"
  for suite in $suites; do
    echo "deb [signed-by=$keyring] $mirror $suite main"
  done >"$apt/sources.list"
  apt update || fail "cannot get $1: apt-get update failed"
  apt install --yes --download-only --no-install-recommends "$package/${suites%% *}" ||
    fail "cannot get $1: apt-get found no $package in ${suites%% *}"
  for archive in "$apt/cache/archives"/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$2/root" --no-same-owner --exclude './dev/*' || exit 1
  done
  rm -rf "$apt"
}

# Writes the program of the server in $1, whose tree will be at $2: its own loader runs it.
wrap() {
  program=$(cd "$1" && find root/usr/bin -name '*-check-rdb' | sed 's/check-rdb$/server/' | head -n 1)
  loader=$(cd "$1" && find root -name 'ld-linux*.so.*' | head -n 1)
  libraries=$(cd "$1" && find root -name 'lib*.so.*' -printf '%h\n' | sort -u | sed "s|^|$2/|" | tr '\n' ':')
  if [ -z "$program" ] || [ -z "$loader" ]; then fail "the packages in $1 have no server, or no loader"; fi
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$2/$loader" "${libraries%:}" \
    "$2/$program" >"$1/redis-server"
  chmod +x "$1/redis-server"
}

# Several may want it at once: the first one gets it.
get() {
  suites_of "$1" >/dev/null || exit 1
  mkdir -p "$directory" || exit 1
  tree=$(cd "$directory" && pwd)/$1
  exec 9>"$tree.lock"
  flock 9 || exit 1
  if [ ! -x "$tree/redis-server" ]; then
    rm -rf "$tree"
    unpack "$1" "$tree.new"
    wrap "$tree.new" "$tree"
    mv "$tree.new" "$tree" || exit 1
  fi
  echo "$tree/redis-server"
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
      echo "servers/$name/${program}_test|sh build-aux/other_servers.sh --run $name build/test/integration/${program}_test"
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
