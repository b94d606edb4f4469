#!/bin/sh
# Checks that the libraries export exactly the functions of redlock.h, and that only the TLS library
# uses OpenSSL.
#
#     check_exports.sh redlock.h libredlock.so libredlock.a core.so libredlock-luaX.Y.a \
#       [redlock_tls.h libredlock_tls.so libredlock_tls.a tls.so]
set -u
CC=${CC:-cc}
AR=${AR:-ar}
NM=${NM:-nm}
READELF=${READELF:-readelf}
abi=${ABI:-0}
header=$1 shared=$2 static=$3 module=$4 binding=$5
tls_header=${6:-} tls_shared=${7:-} tls_static=${8:-} tls_module=${9:-}
failed=0

complain() {
  echo "check-exports: $*"
  failed=1
}
exported() {
  case $1 in
  *.so | *.so.*) "$NM" -D --defined-only -P "$1" ;;
  *) "$NM" -g --defined-only -P "$1" ;;
  esac | awk 'NF > 1 && $2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u
}
strangers() {
  exported "$1" | grep -vE '^(redlock_[a-z0-9_]+|luaopen_redlock_core)$'
}

declarations() {
  tr '\n' ' ' <"$1" | grep -oE 'REDLOCK_EXTERN [^;()]*\(' | sed 's/ *($//; s/.*[ *]//' |
    grep -E '^(redlock|luaopen)_' | sort -u
}
declared=$(declarations "$header")
for_lua=$(echo "$declared" | grep -E 'lua')
for_all=$(echo "$declared" | grep -vE 'lua')
[ "$(echo "$for_all" | wc -l)" -gt 20 ] || complain "found too few declarations in $header"

for file in "$shared" "$static" "$module" "$binding"; do
  names=$(strangers "$file")
  [ -z "$names" ] || complain "$file also exports:" $names
done
# must_export NAMES FILE...
must_export() {
  wanted=$1
  shift
  for file in "$@"; do
    names=$(echo "$wanted" | grep -vxF "$(exported "$file")")
    [ -z "$names" ] || complain "$file lacks" $names
  done
}
must_export "$for_all" "$shared" "$static" "$module" "$binding"
must_export "$for_lua" "$module" "$binding"
undeclared=$(exported "$shared" | grep -vxF "$declared")
[ -z "$undeclared" ] || complain "$shared exports what $header does not declare:" $undeclared
for file in "$shared" "$static" "$module" "$binding"; do
  needs=$("$NM" -u -P "$file" | awk 'NF > 1 { print $1 }' | grep -E '^(rl|redlock)_')
  [ -z "$needs" ] || complain "$file does not have all its own symbols:" $needs
done

# check_abi file name: the soname, and one version of all symbols.
check_abi() {
  "$READELF" -dW "$1" | grep -q "SONAME.*\[$2\.so\.$abi\]" || complain "$1 has no soname $2.so.$abi"
  others=$("$READELF" --dyn-syms -W "$1" | grep -E ' (GLOBAL|WEAK) .* redlock_' | grep -v "@@REDLOCK_$abi\$")
  [ -z "$others" ] || complain "$1 has symbols without the version REDLOCK_$abi:" $others
}
check_abi "$shared" libredlock
for file in "$shared" "$module"; do
  "$READELF" -dW "$file" | grep -q 'FLAGS_1.*NODELETE' || complain "$file may be unloaded under its threads"
done
"$READELF" -dW "$module" | grep -q 'NEEDED.*libredlock' && complain "$module does not stand alone"

# Only the libraries for TLS use OpenSSL, and they export nothing else.
for file in "$shared" "$module"; do
  "$READELF" -dW "$file" | grep -qE 'NEEDED.*lib(ssl|crypto)' && complain "$file needs OpenSSL"
done
for file in "$static" "$binding"; do
  needs=$("$NM" -u -P "$file" | awk 'NF > 1 { print $1 }' | grep -E '^(SSL|TLS|X509|BIO|EVP|ERR)_')
  [ -z "$needs" ] || complain "$file needs OpenSSL:" $needs
done
check_tls() {
  tls_declared=$(declarations "$tls_header")
  [ "$tls_declared" = redlock_tls ] || complain "$tls_header declares" $tls_declared
  for file in "$tls_shared" "$tls_static"; do
    [ "$(exported "$file")" = "$tls_declared" ] || complain "$file exports" $(exported "$file")
  done
  names=$(exported "$tls_module" | grep -vxF "$tls_declared")
  [ "$names" = luaopen_redlock_tls ] || complain "$tls_module exports" $names
  for file in "$tls_shared" "$tls_module"; do
    "$READELF" -dW "$file" | grep -q 'FLAGS_1.*NODELETE' || complain "$file may be unloaded under OpenSSL's handlers"
    "$READELF" -dW "$file" | grep -q 'NEEDED.*libredlock' && complain "$file does not stand alone"
    "$READELF" -dW "$file" | grep -q 'NEEDED.*libssl' || complain "$file carries no OpenSSL of the system's"
  done
  check_abi "$tls_shared" libredlock_tls
}
[ -z "$tls_header" ] || check_tls

# Negative control: a leaked symbol must be found.
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
echo 'int rl_leak; int redlock_fine;' >"$scratch/leak.c"
$CC -fPIC -c -o "$scratch/leak.o" "$scratch/leak.c" && $CC -shared -o "$scratch/leak.so" "$scratch/leak.o" &&
  "$AR" rcs "$scratch/leak.a" "$scratch/leak.o" || exit 1
for file in "$scratch/leak.so" "$scratch/leak.a"; do
  [ "$(strangers "$file")" = rl_leak ] || complain "does not notice a leaked symbol in a ${file##*.}"
done

[ "$failed" -eq 0 ] && echo "check-exports: $(echo "$declared" | wc -l) functions${tls_header:+, redlock_tls()}, and nothing else"
exit "$failed"
