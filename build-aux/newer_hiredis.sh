#!/bin/sh
# Unpacks the hiredis of a newer Debian into a directory, without installing anything, to compile
# and test against it:
#
#     newer_hiredis.sh DIRECTORY [SUITE]
#     make unit BUILD=build/newer-hiredis HIREDIS_PREFIX=DIRECTORY/usr
#
# Needs apt-get and a network; changes nothing but DIRECTORY.
set -u
directory=$1
suite=${2:-trixie}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || exit 1
mkdir -p "$directory/apt/lists/partial" "$directory/apt/cache/archives/partial" "$directory/packages" || exit 1
directory=$(cd "$directory" && pwd)
# The mirror of this machine.
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
[ -n "$mirror" ] || exit 1
echo "deb [signed-by=$keyring] $mirror $suite main" >"$directory/apt/sources.list"

apt() {
  apt-get -q -o Dir::Etc::sourcelist="$directory/apt/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$directory/apt/lists" -o Dir::Cache="$directory/apt/cache" \
    -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 "$@" </dev/null
}

apt update >&2 || exit 1
cd "$directory/packages" || exit 1
library=$(apt-cache -o Dir::State::lists="$directory/apt/lists" -o Dir::Etc::sourcelist="$directory/apt/sources.list" \
  -o Dir::Etc::sourceparts=- -o Dir::Cache="$directory/apt/cache" depends libhiredis-dev/"$suite" |
  sed -n 's/^ *Depends: \(libhiredis[0-9.]*\)$/\1/p' | head -n 1)
[ -n "$library" ] || exit 1
apt download "libhiredis-dev/$suite" "$library/$suite" >&2 || exit 1
for package in *.deb; do
  dpkg -x "$package" "$directory" || exit 1
done
