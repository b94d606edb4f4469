#!/bin/sh
# A chaos run and its verdict.
#
# SPDX-License-Identifier: MIT
#
#     chaos.sh programs run|soak [argument of chaos...]
#
# |programs| is the directory with chaos and chaos_check. Without --seed a seed is drawn; it is
# printed. The report is left in programs/report.txt, or soak-report.txt; the logs stay when
# something was found. However this script ends, its run ends with it.
set -u
programs=$1
kind=$2
shift 2
case "$*" in
*--seed*) ;;
*) set -- "$@" --seed "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')" ;;
esac
flat=
report=$programs/report.txt
if [ "$kind" = soak ]; then
  flat=--flat
  report=$programs/soak-report.txt
fi
directory=$programs/$kind
rm -rf "$directory"
mkdir -p "$directory" || exit 1
echo "chaos: $*"
# In the background, for a trap waits until a program in the foreground has ended.
running=
interrupted() {
  trap '' INT TERM HUP
  [ -z "$running" ] || kill -KILL "$running" 2>/dev/null
  wait
  rm -rf "$directory"
  echo "not ok - the chaos run was interrupted"
  exit 130
}
trap interrupted INT TERM HUP
"$programs/chaos" --directory "$directory" --parent "$$" "$@" &
running=$!
wait "$running"
status=$?
running=
if [ "$status" -ne 0 ]; then
  echo "not ok - the chaos run could not be done"
  exit 1
fi
# shellcheck disable=SC2086
if "$programs/chaos_check" --report "$report" $flat "$directory"/*.log; then
  cat "$report"
  echo "ok - chaos: 0 violations; the report is $report"
  rm -rf "$directory"
  exit 0
fi
cat "$report"
echo "not ok - chaos: violations; the report is $report, the logs are in $directory"
exit 1
