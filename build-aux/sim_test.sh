#!/bin/sh
# Many runs of the simulator, in several processes.
#
#     sim_test.sh program runs processes first-seed need
#
# Every process takes its share of the seeds. Each must see no violation, and everything that can
# occur at least |need| times: an event that never occurs has not been tested.
set -u
program=$1
runs=$2
processes=$3
first=$4
need=$5
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
share=$((runs / processes))
began=$(date +%s)
pids=
i=0
while [ "$i" -lt "$processes" ]; do
  "$program" --seed $((first + i * share)) --runs "$share" --need "$need" >"$scratch/$i" 2>"$scratch/$i.speed" &
  pids="$pids $!"
  i=$((i + 1))
done
trap 'kill $pids 2>/dev/null; rm -rf "$scratch"; exit 130' INT TERM HUP
status=0
for pid in $pids; do
  wait "$pid" || status=1
done
i=0
while [ "$i" -lt "$processes" ]; do
  cat "$scratch/$i" "$scratch/$i.speed"
  i=$((i + 1))
done
seconds=$(($(date +%s) - began))
if [ "$status" -eq 0 ]; then
  echo "ok - $((share * processes)) simulated runs in $seconds s, 0 violations"
else
  echo "not ok - the simulator has found something"
fi
exit "$status"
