#!/bin/sh
# apt-get install of the named packages, without questions, as root. A redis-server or an nginx that
# comes with it is not started, now or at the next boot: the tests and the demonstration run their own.
set -u
export DEBIAN_FRONTEND=noninteractive

services=
for service in redis-server nginx; do
  dpkg-query -W -f '${Status}' "$service" 2>/dev/null | grep -q 'ok installed' || services="$services $service"
done

# Debian's way to say that no service may be started. One that is there already is left as it is.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || exit 1
fi

install() {
  apt-get install -y -q --no-install-recommends "$@" </dev/null
}
# Old lists name versions that are gone: one more try with new ones.
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
