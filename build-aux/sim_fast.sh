#!/bin/sh
# The simulator, made to be fast: compiled as one and by a profile of some of its runs, as gcc can.
#
#     sim_fast.sh directory program
#
# It must have the traces of |program|, which is the simulator as it is made elsewhere. Assertions
# stay on. Environment: CC, HIREDIS_CFLAGS, HIREDIS_LIBS.
set -u
directory=$1
program=$2
profile=$directory/profile
cc=${CC:-cc}

# |build| output flags...: the name of the output is that of the profile, too.
build() {
  output=$1
  shift
  # shellcheck disable=SC2086
  "$cc" -std=c11 -D_GNU_SOURCE -O3 -g "$@" -Icsrc/include -Icsrc/core -Icsrc/test/sim -Icsrc/test/lib \
    ${HIREDIS_CFLAGS:-} -o "$output" csrc/core/*.c csrc/core/*/*.c csrc/test/sim/*.c csrc/test/lib/resp.c csrc/test/lib/wait_queue.c \
    ${HIREDIS_LIBS:--lhiredis} 2>"$directory/log"
}

rm -rf "$profile" "$directory/sim"
mkdir -p "$profile" || exit 1
if build "$profile/sim" -flto -dumpdir "$profile/" -fprofile-generate &&
  "$profile/sim" --seed 500001 --runs 300 >/dev/null 2>&1 &&
  build "$directory/fast" -flto -dumpdir "$profile/" -fprofile-use; then
  how='by a profile'
else
  build "$directory/fast" || {
    cat "$directory/log"
    exit 1
  }
  how='without a profile'
fi
for arguments in '--seed 1' '--seed 900000' '--seed 1 --guard' '--seed 1 --notify'; do
  # shellcheck disable=SC2086
  if [ "$("$directory/fast" $arguments --runs 100 --hash 2>/dev/null)" != \
    "$("$program" $arguments --runs 100 --hash 2>/dev/null)" ]; then
    echo "not ok - the fast simulator has other traces ($arguments)"
    exit 1
  fi
done
rm -rf "$profile" "$directory/log"
mv "$directory/fast" "$directory/sim" || exit 1
echo "ok - the fast simulator, $how, has the same traces"
