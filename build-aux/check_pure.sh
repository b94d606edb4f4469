#!/bin/sh
# Checks that the core is pure: no sockets, no clock, no entropy, no threads, no Lua. It may use the
# symbols that this script lists; any other undefined symbol is an error.
#
#     check_pure.sh core-object...
set -u
CC=${CC:-cc}
NM=${NM:-nm}

libc='malloc|calloc|realloc|free'
libc="$libc|mem(cpy|move|set|cmp|chr|rchr|mem)|bcmp"
libc="$libc|str(len|nlen|cmp|ncmp|casecmp|ncasecmp|chr|rchr|str|cpy|ncpy|spn|cspn|pbrk)"
libc="$libc|v?snprintf|__assert_fail|ceil|floor"
fortified='__(mem(cpy|move|set)|str(cpy|ncpy)|v?snprintf)_chk'
hiredis='sds[a-zA-Z]+|hi_sds[a-zA-Z]+|redisReader[a-zA-Z]+|redisFormat(Sds)?CommandArgv|redisFreeSdsCommand|redisFreeCommand|freeReplyObject'
# Symbols that compilers add: position independence, stack protection, sanitizers, coverage.
compiler='_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(asan|ubsan|tsan|gcov)_.*'
allowed="^($libc|$fortified|$hiredis|$compiler)\$"

impurities() {
  defined=$("$NM" --defined-only -P "$@" | awk 'NF > 1 { print $1 }' | sort -u)
  "$NM" --undefined-only -P "$@" | awk 'NF > 1 { print $1 }' | sort -u |
    grep -vxF "$defined" | grep -vE "$allowed"
}

if [ $# -eq 0 ]; then
  echo "check-pure: there are no core objects"
  exit 1
fi

# Negative control: a use of the clock must be found.
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
printf '#include <time.h>\nlong rl_now(void);\nlong rl_now(void) { return (long)time(0); }\n' >"$scratch/impure.c"
$CC -c -o "$scratch/impure.o" "$scratch/impure.c" || exit 1
if [ "$(impurities "$1" "$scratch/impure.o" | grep -x time)" != time ]; then
  echo "check-pure: does not notice an object that reads the clock"
  exit 1
fi

found=$(impurities "$@")
if [ -n "$found" ]; then
  echo "check-pure: the core uses"
  for symbol in $found; do
    "$NM" -A --undefined-only -P "$@" | grep -w -- "$symbol"
  done
  exit 1
fi
echo "check-pure: $# core objects use nothing but memory, strings, assert and the codec"
