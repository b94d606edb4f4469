#!/bin/sh
# Runs a command in half a processor, as on a small machine, and ends with its status:
#
#     half_core.sh COMMAND [ARGUMENT...]       PERCENT=50   of one processor
#
# The limit is CPUQuota of systemd, or else a cgroup of its own, which is removed afterwards. Needs
# root.
set -u
percent=${PERCENT:-50}
[ $# -gt 0 ] || { echo 'usage: half_core.sh COMMAND [ARGUMENT...]' >&2; exit 2; }

if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
  exec systemd-run --scope --quiet -p "CPUQuota=$percent%" "$@"
fi

# Version 1 of cgroups has a directory for processors, version 2 a file that lists the controllers.
if [ -e /sys/fs/cgroup/cpu/cgroup.procs ]; then
  parent=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:cpu\(,cpuacct\)*:\/*\(.*\)/\/\2/p' /proc/self/cgroup)
  limit() { echo 100000 >"$group/cpu.cfs_period_us" && echo "$((percent * 1000))" >"$group/cpu.cfs_quota_us"; }
else
  parent=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  limit() { echo "$((percent * 1000)) 100000" >"$group/cpu.max"; }
fi
group=${parent%/}/redlock-half.$$
trap 'rmdir "$group" 2>/dev/null' EXIT
if ! mkdir "$group" || ! limit; then
  echo "half_core: cannot limit processors in $group: start it as root, on a system with cgroups" >&2
  exit 1
fi
sh -c 'echo $$ >"$0" && exec "$@"' "$group/cgroup.procs" "$@"
