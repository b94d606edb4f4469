#!/bin/sh
# Fuzzes one target with libFuzzer, from the corpus in the project, and reports the result.
#
#     fuzz.sh program corpus.hex directory seconds
#
# |directory| keeps the inputs that were found to reach something new, for the next time, and a
# finding, if there is one: as libFuzzer wrote it, and as a line for the corpus.
set -u
program=$1
corpus=$2
directory=$3
seconds=$4
name=$(basename "$corpus" .hex)
command -v xxd >/dev/null || {
  echo "fuzz.sh: no xxd; it is in the package of that name" >&2
  exit 1
}
mkdir -p "$directory/inputs" || exit 1
count=0
while read -r line; do
  printf '%s' "$line" | xxd -r -p >"$directory/inputs/seed-$count"
  count=$((count + 1))
done <"$corpus"
"$program" -max_total_time="$seconds" -max_len=2000 -timeout=60 -rss_limit_mb=1024 -print_final_stats=1 \
  -artifact_prefix="$directory/finding-" "$directory/inputs" >"$directory/log" 2>&1
status=$?
executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$directory/log")
if [ "$status" -eq 0 ] && [ -n "$executed" ]; then
  echo "ok - fuzzing $name: $executed executions in $seconds s from $count inputs, no finding"
  exit 0
fi
echo "not ok - fuzzing $name ended with status $status after ${executed:-some} executions; the log is $directory/log"
tail -n 40 "$directory/log"
for finding in "$directory"/finding-*; do
  [ -f "$finding" ] || continue
  echo "$finding, as a line for $corpus:"
  xxd -p "$finding" | tr -d '\n'
  echo
done
exit 1
