#!/bin/sh
# Negative controls of the chaos run: the checker must report the violation that each stands
# for.
#
# SPDX-License-Identifier: MIT
#
#     chaos_controls.sh programs logs [control...]
#
# |programs| is the directory with chaos and chaos_check, |logs| the one with logs written by hand:
# the first line of each names the violation that the checker must report, or none.
set -u
programs=$1
logs=$2
shift 2
chosen=" $* "
at_once=8
scratch=$(mktemp -d) || exit 1
failed=0
running=

# The runs end with this script: by this, or, when it is killed, by themselves.
leave() {
  trap '' INT TERM HUP
  # shellcheck disable=SC2086
  [ -z "$running" ] || kill -KILL $running 2>/dev/null
  wait
  rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 130' INT TERM HUP

tell() {
  if [ "$1" -eq 0 ]; then
    echo "ok - $2: caught ($3)"
  else
    echo "not ok - $2: NOT CAUGHT (it should have been: $3)"
    failed=1
  fi
}

# start_control name seconds seed
start_control() {
  mkdir "$scratch/$1"
  "$programs/chaos" --parent "$$" --directory "$scratch/$1" --control "$1" --workers 6 --seconds "$2" \
    --warm 1 --flat 1 --settle 500 --pace 5 --seed "$3" >"$scratch/$1.output" 2>&1 </dev/null &
  running="$running $!"
}

# Waits for all that was started.
await_controls() {
  wait
  running=
}

judge_control() {
  "$programs/chaos_check" "$scratch/$1"/*.log >"$scratch/$1.verdict" 2>&1
  echo "$?" >"$scratch/$1.status"
}

caught() {
  [ "$(cat "$scratch/$1.status")" = 1 ] && grep -q "^VIOLATION $2:" "$scratch/$1.verdict"
}

for log in "$logs"/*.log; do
  wanted=$(sed -n '1s/^# expect //p' "$log")
  name=$(basename "$log" .log)
  verdict=$("$programs/chaos_check" "$log")
  status=$?
  if [ "$wanted" = nothing ]; then
    if [ "$status" -eq 0 ]; then
      echo "ok - $name: nothing to be said"
    else
      echo "not ok - $name: $verdict"
      failed=1
    fi
  else
    [ "$status" -eq 1 ] && echo "$verdict" | grep -q "^VIOLATION $wanted:"
    tell $? "$name" "$wanted"
  fi
done

if ! "${CONTROLS_LUA:-lua}" build-aux/run_controls.lua list chaos >"$scratch/list"; then
  cat "$scratch/list" # What is wrong with the list stands there instead.
  exit 1
fi
# The program has those of the list, and no other.
"$programs/chaos" --controls | sort >"$scratch/known" || exit 1
if ! cut -d ' ' -f 1 "$scratch/list" | sort | diff - "$scratch/known"; then
  echo "not ok - csrc/test/controls.lua and the controls of the program differ"
  exit 1
fi
while [ -s "$scratch/list" ]; do
  head -n "$at_once" "$scratch/list" >"$scratch/batch"
  tail -n +$((at_once + 1)) "$scratch/list" >"$scratch/rest"
  mv "$scratch/rest" "$scratch/list"
  while read -r name wanted; do
    if [ "$chosen" = "  " ] || [ "${chosen#* "$name" }" != "$chosen" ]; then
      start_control "$name" 5 1
    fi
  done <"$scratch/batch"
  await_controls
  while read -r name wanted; do
    [ -d "$scratch/$name" ] || continue
    judge_control "$name"
    # Beside seven others, on a busy machine, it may have had no lock to go wrong with; and what two
    # workers must do at one time is seldom.
    for seed in 1 2 3; do
      caught "$name" "$wanted" && break
      rm -rf "${scratch:?}/$name"
      start_control "$name" $((5 * seed)) "$seed"
      await_controls
      judge_control "$name"
    done
    caught "$name" "$wanted"
    tell $? "$name" "$wanted"
    caught "$name" "$wanted" || cat "$scratch/$name.output" "$scratch/$name.verdict"
  done <"$scratch/batch"
done
exit "$failed"
