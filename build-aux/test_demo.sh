#!/usr/bin/env bash
# Checks the output of the demonstration, and that it cleans up at its end and after an
# interruption.
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

"$MAKE" --no-print-directory demo >"$scratch/output" 2>&1
status=$?
cat "$scratch/output"
[ "$status" -eq 0 ]
result $? "the demonstration ends well"
for word in granted '"taken"' error unknown 'no key' killed 'did not answer: Connection refused'; do
  grep -q -- "$word" "$scratch/output"
  result $? "it shows $word"
done
nothing_left
result $? "nothing is left of it"

# An interruption while the nodes run: a Lua program that never ends replaces the demonstration.
cat >"$scratch/lua" <<SCRIPT
#!/bin/sh
touch '$scratch/started'
exec sleep 600
SCRIPT
chmod +x "$scratch/lua"
LUA=$scratch/lua sh examples/demo.sh >"$scratch/output" 2>&1 &
demo=$!
until [ -e "$scratch/started" ] || ! kill -0 "$demo" 2>/dev/null; do
  sleep 0.02
done
[ "$(servers_below_here | wc -l)" -eq 5 ]
result $? "its five nodes run"
kill -TERM "$demo" 2>/dev/null
wait "$demo"
status=$?
[ "$status" -eq 143 ]
result $? "interrupted, it says so (exit status $status)"
nothing_left
result $? "nothing is left of it when it was interrupted"
exit "$failed"
