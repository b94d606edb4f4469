#!/bin/sh
# Checks that a public header, and the program in its first comment, compile alone in C99, C11 and
# C++ without warnings.
set -u
CC=${CC:-cc}
header=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
name=$(basename "$header")
printf '#include "%s"\n#include "%s"\nint used(void);\nint used(void) { return REDLOCK_OK; }\n' "$name" "$name" >"$scratch/use.c"
sed -n '/^ \* \{5\}#include <redlock.h>$/,/^ \* \{5\}}$/{s/^ \*\( \{5\}\)\{0,1\}//;p;}' "$header" >"$scratch/program.c"
[ -s "$scratch/program.c" ] || cp "$scratch/use.c" "$scratch/program.c"
for standard in c99 c11 c++11; do
  language=c
  [ "$standard" = c++11 ] && language=c++
  if [ "$language" = c++ ] && ! echo | $CC -x c++ -fsyntax-only - 2>/dev/null; then
    echo "check-header: $CC knows no C++"
    exit 1
  fi
  $CC -x "$language" -std="$standard" -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$(dirname "$header")" "$scratch/use.c" \
    "$scratch/program.c" || exit 1
done
echo "check-header: $name stands alone in C99, C11 and C++11"
