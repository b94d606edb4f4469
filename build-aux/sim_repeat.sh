#!/bin/sh
# One seed, one run: the simulator, built by every compiler of the list with and without optimisation,
# must do the same things at the same times, down to the last byte.
#
#     sim_repeat.sh runs first-seed compiler...
#
# Environment: HIREDIS_CFLAGS, HIREDIS_LIBS.
set -u
runs=$1
first=$2
shift 2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
reference=
count=0
for compiler in "$@"; do
  if ! command -v "$compiler" >/dev/null; then
    echo "not ok - there is no $compiler"
    exit 1
  fi
  for level in -O0 -O2; do
    # shellcheck disable=SC2086
    "$compiler" -std=c11 -D_GNU_SOURCE "$level" -Icsrc/include -Icsrc/core -Icsrc/test/sim \
      -Icsrc/test/lib ${HIREDIS_CFLAGS:-} -o "$scratch/sim" csrc/core/rl_*.c csrc/test/sim/*.c csrc/test/lib/resp.c ${HIREDIS_LIBS:--lhiredis} || exit 1
    "$scratch/sim" --seed "$first" --runs "$runs" --hash >"$scratch/trace" 2>/dev/null || {
      cat "$scratch/trace"
      exit 1
    }
    sum=$(cksum <"$scratch/trace")
    reference=${reference:-$sum}
    if [ "$sum" != "$reference" ]; then
      echo "not ok - $compiler $level has another trace"
      exit 1
    fi
    count=$((count + 1))
  done
done
echo "ok - $count builds, $runs runs each: the same trace ($(tail -n 1 "$scratch/trace" | sed 's/.*trace //'))"
