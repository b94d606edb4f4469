#!/bin/sh
# Installs packages with apt-get as root, without questions. A name may be a choice,
# "luajit2,luajit": the first that apt can install without removing a package. New services such as
# redis-server and nginx do not start, now or at the next boot: the tests and the demonstration run
# their own.
#
#     apt_install.sh a,b c              installs
#     apt_install.sh --names a,b c      only prints the names for apt; needs no root
set -u
export DEBIAN_FRONTEND=noninteractive

apt() {
  apt-get install -y -q --no-install-recommends --no-remove "$@" </dev/null
}

# Prints one name for each argument. Fails if apt has none of a choice.
choose() {
  choose_status=0
  for choice in "$@"; do
    case $choice in
    *,*)
      found=1
      for name in $(echo "$choice" | tr , ' '); do
        apt -s "$name" >/dev/null 2>&1 && found=0 && break
      done
      [ "$found" -eq 0 ] || choose_status=1
      echo "$name"
      ;;
    *) echo "$choice" ;;
    esac
  done
  return "$choose_status"
}

if [ "${1:-}" = --names ]; then
  shift
  choose "$@"
  exit 0
fi

services=
for service in redis-server nginx prometheus cron; do
  dpkg-query -W -f '${Status}' "$service" 2>/dev/null | grep -q 'ok installed' || services="$services $service"
done

# Debian's way to forbid the start of services. An existing file stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || exit 1
fi

install() {
  names=$(choose "$@") || return 1
  # shellcheck disable=SC2086
  apt $names
}
# Old lists name deleted versions, and a new machine has no lists: try again with new lists.
if ! install "$@"; then
  apt-get update -q </dev/null && install "$@" || exit 1
fi

for service in $services; do
  if command -v deb-systemd-helper >/dev/null 2>&1; then
    deb-systemd-helper disable "$service.service" >/dev/null 2>&1 || true
  fi
  if command -v update-rc.d >/dev/null 2>&1; then
    update-rc.d "$service" disable >/dev/null 2>&1 || true
  fi
done
exit 0
