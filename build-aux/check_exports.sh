#!/bin/sh
# The libraries export what redlock.h declares, and nothing else.
#
#     check_exports.sh redlock.h libredlock.so libredlock.a core.so libredlock-luaX.Y.a
set -u
CC=${CC:-cc}
AR=${AR:-ar}
NM=${NM:-nm}
READELF=${READELF:-readelf}
header=$1 shared=$2 static=$3 module=$4 binding=$5
failed=0

complain() {
  echo "check-exports: $*"
  failed=1
}
exported() {
  case $1 in
  *.so | *.so.*) "$NM" -D --defined-only -P "$1" ;;
  *) "$NM" -g --defined-only -P "$1" ;;
  esac | awk 'NF > 1 { print $1 }' | sort -u
}
strangers() {
  exported "$1" | grep -vE '^(redlock_[a-z0-9_]+|luaopen_redlock_core)$'
}

declared=$(tr '\n' ' ' <"$header" | grep -oE 'REDLOCK_EXTERN [^;()]*\(' | sed 's/ *($//; s/.*[ *]//' |
  grep -E '^(redlock|luaopen)_' | sort -u)
for_lua=$(echo "$declared" | grep -E 'lua')
for_all=$(echo "$declared" | grep -vE 'lua')
[ "$(echo "$for_all" | wc -l)" -gt 20 ] || complain "found too few declarations in $header"

for file in "$shared" "$static" "$module" "$binding"; do
  names=$(strangers "$file")
  [ -z "$names" ] || complain "$file also exports:" $names
done
for name in $for_all; do
  for file in "$shared" "$static" "$module" "$binding"; do
    exported "$file" | grep -qx "$name" || complain "$file lacks $name"
  done
done
for name in $for_lua; do
  for file in "$module" "$binding"; do
    exported "$file" | grep -qx "$name" || complain "$file lacks $name"
  done
done
undeclared=$(exported "$shared" | grep -vxF "$declared")
[ -z "$undeclared" ] || complain "$shared exports what $header does not declare:" $undeclared
for file in "$shared" "$static" "$module" "$binding"; do
  needs=$("$NM" -u -P "$file" | awk 'NF > 1 { print $1 }' | grep -E '^(rl|redlock)_')
  [ -z "$needs" ] || complain "$file does not have all its own symbols:" $needs
done

dynamic=$("$READELF" -dW "$shared")
echo "$dynamic" | grep -q 'SONAME.*\[libredlock\.so\.0\]' || complain "$shared has no soname libredlock.so.0"
for file in "$shared" "$module"; do
  "$READELF" -dW "$file" | grep -q 'FLAGS_1.*NODELETE' || complain "$file may be unloaded under its threads"
done
"$READELF" -dW "$module" | grep -q 'NEEDED.*libredlock' && complain "$module does not stand alone"

# The check itself is checked: it must see a symbol that leaks.
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
echo 'int rl_leak; int redlock_fine;' >"$scratch/leak.c"
"$CC" -fPIC -c -o "$scratch/leak.o" "$scratch/leak.c" && "$CC" -shared -o "$scratch/leak.so" "$scratch/leak.o" &&
  "$AR" rcs "$scratch/leak.a" "$scratch/leak.o" || exit 1
for file in "$scratch/leak.so" "$scratch/leak.a"; do
  [ "$(strangers "$file")" = rl_leak ] || complain "does not notice a leaked symbol in a ${file##*.}"
done

[ "$failed" -eq 0 ] && echo "check-exports: $(echo "$declared" | wc -l) functions, and nothing else"
exit "$failed"
