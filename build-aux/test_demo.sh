#!/usr/bin/env bash
# The demonstration shows what it promises within ten seconds, and cleans up: at its end, and when it is
# interrupted in the middle.
set -u
MAKE=${MAKE:-make}
failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"

result() {
  if [ "$1" -eq 0 ]; then
    echo "ok - $2"
  else
    echo "not ok - $2"
    failed=1
  fi
}

servers_below_here() {
  ps -e -o pid=,args= | awk '$2 ~ /redis-server/ { print $1 }' | while read -r pid; do
    [ "$(readlink "/proc/$pid/cwd" 2>/dev/null | grep -c "^$TMPDIR")" -eq 0 ] || echo "$pid"
  done
}

nothing_left() {
  [ -z "$(servers_below_here)" ] && [ -z "$(ls "$TMPDIR")" ]
}

"$MAKE" --no-print-directory demo >"$scratch/warm-up" 2>&1
SECONDS=0
"$MAKE" --no-print-directory demo >"$scratch/output" 2>&1
status=$?
took=$SECONDS
cat "$scratch/output"
[ "$status" -eq 0 ]
result $? "the demonstration ends well"
[ "$took" -lt 10 ]
result $? "it takes less than ten seconds (took $took)"
for word in granted '"taken"' error unknown 'no key' killed 'did not answer: Connection refused'; do
  grep -q -- "$word" "$scratch/output"
  result $? "it shows $word"
done
nothing_left
result $? "nothing is left of it"

# Interrupted while its nodes run.
"$MAKE" --no-print-directory -s lua >/dev/null
LUA_PATH='lua/?.lua;;' LUA_CPATH='build/5.4/?.so;;' LUA=lua5.4 sh examples/demo.sh >"$scratch/output" 2>&1 &
demo=$!
for _ in $(seq 500); do
  [ "$(servers_below_here | wc -l)" -lt 3 ] || break
  kill -0 "$demo" 2>/dev/null || break
  sleep 0.01
done
kill -TERM "$demo" 2>/dev/null
wait "$demo"
status=$?
[ "$status" -eq 143 ]
result $? "interrupted, it says so (exit status $status)"
nothing_left
result $? "nothing is left of it when it was interrupted"
exit "$failed"
