#!/bin/sh
# Installs the libraries of conformance/adapters.lua into build/interop: those of npm by their lock
# file, those of Python from Debian's sid, unpacked. PHP's are packages of this system.
#
#     install.sh
#
# Environment: BUILD [build]. Needs a network the first time.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}/interop
sh build-aux/setup.sh interop
mkdir -p "$build/node"
build=$(cd "$build" && pwd)

if ! cmp -s conformance/node/package-lock.json "$build/node/package-lock.json"; then
  cp conformance/node/package.json "$build/node/"
  cp conformance/node/package-lock.json "$build/node/new-lock.json"
  mv "$build/node/new-lock.json" "$build/node/package-lock.json"
  (cd "$build/node" && npm ci --ignore-scripts --no-audit --no-fund) || {
    rm -f "$build/node/package-lock.json"
    exit 1
  }
fi

sh build-aux/debian_tree.sh --get --only 'python3-aioredlock_* python3-redis_* python3-attr_* python3-async-timeout_*' \
  "$build/python" sid python3-aioredlock python3-redis python3-async-timeout
