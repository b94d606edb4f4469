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
mkdir -p "$build/node" "$build/python"
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

# apt-get with lists of its own.
apt() {
  apt-get -qq -o Dir::Etc::sourcelist="$build/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$build/apt" \
    -o Dir::State::lists="$build/apt/lists" -o Dir::State::status="$build/apt/status" -o Dir::Cache="$build/apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@" </dev/null
}

if [ ! -e "$build/python/done" ]; then
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  mkdir -p "$build/apt/lists/partial" "$build/apt/cache/archives/partial"
  : >"$build/apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$build/apt/sources.list"
  apt update
  (cd "$build/apt" && apt download python3-aioredlock python3-redis python3-attr python3-async-timeout)
  for package in "$build/apt"/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C "$build/python" --no-same-owner; done
  rm -rf "$build/apt"
  : >"$build/python/done"
fi
