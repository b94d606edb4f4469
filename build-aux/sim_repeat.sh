#!/bin/sh
# One seed, one run: the simulator must do the same things at the same times, down to the last byte,
# built by any compiler, with and without optimisation.
#
#     sim_repeat.sh program runs first-seed compiler:level...          as gcc:-O0
#
# |program| is the simulator of the ordinary build. Environment: HIREDIS_CFLAGS, HIREDIS_LIBS.
set -u
program=$1
runs=$2
first=$3
shift 3
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trace() {
  "$1" --seed "$first" --runs "$runs" --hash >"$scratch/trace" 2>/dev/null || {
    cat "$scratch/trace"
    exit 1
  }
}
trace "$program"
reference=$(cksum <"$scratch/trace")
count=1
for build in "$@"; do
  compiler=${build%%:*}
  if ! command -v "$compiler" >/dev/null; then
    echo "not ok - there is no $compiler"
    exit 1
  fi
  # shellcheck disable=SC2086
  "$compiler" -std=c11 -D_GNU_SOURCE "${build#*:}" -Icsrc/include -Icsrc/core -Icsrc/test/sim \
    -Icsrc/test/lib ${HIREDIS_CFLAGS:-} -o "$scratch/sim" csrc/core/*.c csrc/core/*/*.c csrc/test/sim/*.c csrc/test/lib/resp.c csrc/test/lib/wait_queue.c \
    ${HIREDIS_LIBS:--lhiredis} || exit 1
  trace "$scratch/sim"
  if [ "$(cksum <"$scratch/trace")" != "$reference" ]; then
    echo "not ok - $build has another trace"
    exit 1
  fi
  count=$((count + 1))
done
echo "ok - $count builds, $runs runs each: the same trace ($(tail -n 1 "$scratch/trace" | sed 's/.*trace //'))"
