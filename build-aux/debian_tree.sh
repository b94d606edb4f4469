#!/bin/sh
# Unpacks packages of other suites and architectures of Debian, and runs their programs with their
# own C library. Installs nothing and needs no rights.
#
#     debian_tree.sh --get [--arch ARCH] [--only PATTERNS] TREE SUITES PACKAGE...
#         unpacks the packages and all that they need into TREE/root, once
#     debian_tree.sh --get-source DIRECTORY SUITE PACKAGE...
#         unpacks the sources of the packages, without Debian's changes, into DIRECTORY, once
#     debian_tree.sh --wrap TREE NAME PROGRAM [LINE]
#         writes TREE/NAME, a script that runs LINE and then TREE/root/PROGRAM. With an empty
#         PROGRAM it runs the program in its arguments.
#
# SUITES     for apt, separated by spaces; the packages are in the first one
# --arch     an architecture of Debian; that of this machine by default
# --only     unpacks only packages whose names match one of these patterns of the shell
#
# --get needs apt-get and a network. Processes may get the same tree at the same time.
set -u
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
  echo "debian_tree.sh: $1" >&2
  exit 1
}

# apt-get with its own lists and cache, which installs nothing.
apt() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$apt" \
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none \
    -o Acquire::Retries=3 "$@" </dev/null >&2
}

# Gets the lists of the suites $2 for apt into $1/apt. $3 is deb or deb-src.
lists() {
  apt=$1/apt
  # shellcheck disable=SC2016 # The mirror of this machine.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  if [ ! -r "$keyring" ] || [ -z "$mirror" ]; then fail "cannot get $1 without apt-get and the keyring of Debian"; fi
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" || exit 1
  : >"$apt/status"
  for suite in $2; do
    echo "$3 [signed-by=$keyring] $mirror $suite main"
  done >"$apt/sources.list"
  apt update || fail "cannot get $1: apt-get update failed"
}

# Unpacks the packages $3... of the first of the suites $2 into $1.
unpack() {
  new=$1
  suites=$2
  shift 2
  lists "$new" "$suites" deb
  mkdir -p "$new/root" || exit 1
  apt install --yes --download-only --no-install-recommends --target-release "${suites%% *}" "$@" ||
    fail "cannot get $*: apt-get found no such packages of $arch in ${suites%% *}"
  set -f
  for pattern in $only; do
    set +f
    for archive in "$apt/cache/archives"/$pattern.deb; do
      dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$new/root" --no-same-owner --exclude './dev/*' || exit 1
    done
  done
  rm -rf "$apt"
}

# Unpacks the sources of the packages $3... of the suite $2 into $1.
unpack_source() {
  new=$1
  suites=$2
  shift 2
  lists "$new" "$suites" deb-src
  (cd "$new" && apt source --tar-only "$@") || fail "cannot get the sources of $*"
  for archive in "$new"/*.orig.tar.*; do
    case $archive in *.asc) continue ;; esac
    tar -x -C "$new" --no-same-owner -f "$archive" && rm "$archive" || exit 1
  done
  rm -rf "$apt"
}

get() {
  unpack=$1
  shift
  arch=$(dpkg --print-architecture) || exit 1
  only='*'
  while :; do
    case $1 in
    --arch) arch=$2 ;;
    --only) only=$2 ;;
    *) break ;;
    esac
    shift 2
  done
  mkdir -p "$(dirname "$1")" || exit 1
  tree=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
  shift
  exec 9>"$tree.lock"
  flock 9 || exit 1
  [ ! -d "$tree" ] || exit 0
  rm -rf "$tree.new"
  "$unpack" "$tree.new" "$@"
  mv "$tree.new" "$tree"
}

# The loader of the tree runs the program. A program that starts itself again starts the script.
wrap() {
  tree=$(cd "$1" && pwd) || exit 1
  loader=$(find "$tree/root" -name 'ld-linux*.so.*' | head -n 1)
  libraries=$(find "$tree/root" -name 'lib*.so.*' -printf '%h\n' | sort -u | tr '\n' ':')
  if [ -z "$loader" ] || [ ! -e "$tree/root/$3" ]; then fail "the packages in $1 have no loader, or no $3"; fi
  printf '#!/bin/sh\n%s\nexec "%s" --library-path "%s" %s "$@"\n' "${4:-}" "$loader" "${libraries%:}" \
    "${3:+--argv0 \"$tree/$2\" \"$tree/root/$3\"}" >"$tree/$2.$$"
  chmod +x "$tree/$2.$$" && mv "$tree/$2.$$" "$tree/$2"
}

case ${1:-} in
--get)
  shift
  get unpack "$@"
  ;;
--get-source)
  shift
  get unpack_source "$@"
  ;;
--wrap)
  shift
  wrap "$@"
  ;;
*) fail 'it needs --get, --get-source or --wrap' ;;
esac
