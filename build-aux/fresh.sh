#!/usr/bin/env bash
# Runs `make demo` and `make test` on new systems: for each suite of Debian a minimal system of
# debootstrap with `make` and a clone of this tree at HEAD.
#
#     fresh.sh suite...        FRESH_TESTS="spec/nginx"      only jobs with this in their names; "none": only set-up
#                              FRESH_MIRROR=http://...       the mirror for the packages
#                              FRESH_DIRECTORY=/var/tmp      a directory with some 4 GB for each suite
#
# The set-up uses the network of this machine; the tests run without a network. Prints "ok" or "not
# ok" for each command. Their output is in build/log/fresh-SUITE-COMMAND.log, and the logs of the
# tests are in build/log/fresh-SUITE/.
set -u
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/.." || exit 1
logs=$PWD/build/log
mkdir -p "$logs" || exit 1
mirror=${FRESH_MIRROR:-http://deb.debian.org/debian}
failed=0

# Mounts and processes of a new system are in their own name spaces and end with this script.
if [ "${FRESH_INSIDE:-}" != yes ]; then
  [ "$(id -u)" -eq 0 ] || { echo "fresh: must be root" >&2; exit 1; }
  for command in debootstrap git unshare; do
    command -v "$command" >/dev/null || { echo "fresh: needs $command" >&2; exit 1; }
  done
  export FRESH_INSIDE=yes
  exec unshare --mount --pid --fork --kill-child bash build-aux/fresh.sh "$@"
fi

scratch=$(mktemp -d "${FRESH_DIRECTORY:-/var/tmp}/redlock-fresh.XXXXXX") || exit 1
# One file system only: mounts inside must not be emptied.
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# step name command...: runs the command with its output in a log.
step() {
  local name=$1 log started=$SECONDS
  shift
  log=$logs/fresh-$suite-${name//[^a-z]/-}.log
  if "$@" >"$log" 2>&1 </dev/null; then
    echo "ok - $suite: $name ($((SECONDS - started)) s) $(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)"
  else
    tail -n 200 "$log"
    echo "not ok - $suite: $name ($((SECONDS - started)) s), see $log"
    failed=1
    return 1
  fi
}

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" sh -c "cd /redlock && $1"
}

machine() {
  debootstrap --variant=minbase "$suite" "$root" "$mirror" || return 1
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev/shm" || return 1
  mount -t devpts -o mode=0620 devpts "$root/dev/pts" || return 1
  git clone -q --no-hardlinks . "$root/redlock" || return 1
  # Without lists of packages: the set-up must notice that they are missing.
  inside 'apt-get update -q && apt-get install -y -q --no-install-recommends make && rm -rf /var/lib/apt/lists/*'
}

# Runs a command with only a loopback network.
alone() {
  unshare --net bash -c 'ip link set lo up && "$@"' alone env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LC_ALL=C.UTF-8 chroot "$root" sh -c "cd /redlock && $1"
}

try() {
  step 'a new system' machine || return
  step 'make demo' inside 'make demo'
  # The set-up of the tests, with a short test.
  step 'make test, its set-up' inside 'make test ONLY=rl_quorum' || return
  step 'set-up is done' inside 'sh build-aux/setup.sh test' || return
  if [ "${FRESH_TESTS:-}" != none ]; then
    step 'make test' alone "make test ${FRESH_TESTS:+ONLY='$FRESH_TESTS'}"
    mkdir -p "$logs/fresh-$suite" && cp -r "$root"/redlock/build/log/. "$logs/fresh-$suite/"
  fi
}

for suite in "$@"; do
  root=$scratch/$suite
  mkdir "$root" && try
  umount "$root/dev/pts" "$root/dev/shm" "$root/proc" 2>/dev/null
  rm -rf --one-file-system "$root"
done
exit "$failed"
