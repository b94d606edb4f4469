#!/bin/sh
# A machine without OpenSSL, for pkg-config and the compiler. The project must build there without
# options, with the tests that need no TLS; TLS=1 must name the missing packages.
set -u
MAKE=${MAKE:-make}
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
failed=0
unset TLS OPENSSL_DIR OPENSSL_INCDIR OPENSSL_LIBDIR

try() {
  name=$1
  shift
  if "$@" >"$scratch/output" 2>&1; then
    echo "ok - $name"
  else
    cat "$scratch/output"
    echo "not ok - $name"
    failed=1
  fi
}

# Directories before those of the system.
mkdir -p "$scratch/bin" "$scratch/include/openssl"
for header in ssl err x509 x509v3 evp bio crypto pem; do
  echo '#error OpenSSL is not there' >"$scratch/include/openssl/$header.h"
done
cat >"$scratch/bin/pkg-config" <<SCRIPT
#!/bin/sh
case " \$* " in *openssl* | *libssl* | *libcrypto*) exit 1 ;; esac
PATH='$PATH' exec pkg-config "\$@"
SCRIPT
chmod +x "$scratch/bin/pkg-config"
PATH=$scratch/bin:$PATH
export PATH
without() {
  CPATH="$scratch/include" "$MAKE" --no-print-directory -s -j2 BUILD="$scratch/build" "$@"
}

try 'builds without OpenSSL' without all
try 'has no TLS then' sh -c '! find "$0" -name "libredlock_tls*" -o -name tls.so | grep .' "$scratch/build"
try 'passes its checks' without check-exports check-pure
try 'installs' without install PREFIX="$scratch/prefix"
try 'installs no TLS' sh -c '! find "$0" -name "*redlock_tls*" -o -name tls.so | grep .' "$scratch/prefix"
# shellcheck disable=SC2016
try 'has the tests that need no TLS' sh -c '"$0" -n unit-programs integration-programs BUILD="$1" >"$1/plan" &&
  grep -q "rl_socket_test" "$1/plan" && ! grep -q "rl_tls_\|/tls_" "$1/plan"' "$MAKE" "$scratch/build"
try 'builds one of them' without "$scratch/build/test/rl_client_test"
try 'which passes' "$scratch/build/test/rl_client_test"
if without TLS=1 lib >"$scratch/refused" 2>&1; then
  echo 'not ok - TLS=1 builds without OpenSSL'
  failed=1
fi
try 'TLS=1 names the packages' grep -q 'libssl-dev.*openssl-devel.*openssl-dev' "$scratch/refused"
exit "$failed"
