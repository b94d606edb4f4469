#!/usr/bin/env bash
# Style and static analysis: one step, or all. Each complaint of a tool is an error.
#
#     lint.sh [format|tidy [PART/PARTS]|cppcheck|lua|words|manual]
#
# Environment, set by make: HIREDIS_CFLAGS, LUA_CFLAGS, OPENSSL_CFLAGS; C_FILES, and TIDY_FILES for
# the analysers.
set -u
failed=0
part=${2:-1/1}

# step name command...
step() {
  local name=$1
  shift
  if "$@"; then
    echo "ok - $name"
  else
    echo "not ok - $name"
    failed=1
  fi
}

includes="-Icsrc/include -Icsrc/cli -Icsrc/core -Icsrc/driver -Icsrc/binding -Icsrc/tls ${HIREDIS_CFLAGS:-} ${OPENSSL_CFLAGS:-} ${LUA_CFLAGS:-}"

# Analyses one part of the files. One file at a time: clang-tidy 14 misses va_start() in the second
# file that has one.
tidy() {
  # shellcheck disable=SC2086
  printf '%s\n' $TIDY_FILES | awk -v part="${part%/*}" -v parts="${part#*/}" 'NR % parts == part % parts' |
    xargs -n 1 sh -c 'clang-tidy --quiet "$@" -- -std=c11 -D_GNU_SOURCE '"$includes"' 2>/dev/null' tidy
}

# The two checks for uninitialized variables report buffers that a function fills; valgrind and the
# compilers check these. Newer versions report unchecked branches.
check() {
  # shellcheck disable=SC2086
  cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppress=uninitvar --suppress=ctuuninitvar --suppress=normalCheckLevelMaxBranches \
    --enable=warning,performance,portability \
    -D_GNU_SOURCE -D__linux__ -Icsrc/include -Icsrc/core -Icsrc/driver -Icsrc/binding -Icsrc/tls $TIDY_FILES
}

lua_files() {
  find lua spec examples bench rockspec build-aux conformance csrc -name '*.lua' -o -name '*.rockspec' 2>/dev/null
}

lint_lua() {
  local config='--std max+busted'
  [ -f .luacheckrc ] && config=
  # shellcheck disable=SC2046,SC2086
  luacheck --quiet --no-color $config $(lua_files | grep '\.lua$')
}

clean_words() {
  ! git ls-files -co --exclude-standard 2>/dev/null | grep -v '^build-aux/lint.sh$' |
    xargs -d '\n' grep -nE "TO""DO|FIX""ME|X""XX([^X]|$)|[[:space:]]+$" -- 2>/dev/null |
    grep -v 'XXXXXX'
}

shell_syntax() {
  local script
  for script in build-aux/*.sh conformance/*.sh examples/*.sh .ci/run $(find spec bench -name '*.sh' -o -path bench/run 2>/dev/null); do
    bash -n "$script" || return 1
  done
}

# Pages that this system lacks are no fault of ours.
manual_page() {
  ! mandoc -T lint -W style docs/redlock.1 2>/dev/null | grep -v 'referenced manual not found'
}

# groff prints warnings, and no page.
manual_page_of_groff() {
  ! groff -mdoc -ww -z -K utf8 -T utf8 docs/redlock.1 2>&1 | grep .
}

manual() {
  step 'mandoc' manual_page
  step 'groff' manual_page_of_groff
}

format() {
  # shellcheck disable=SC2086
  step 'clang-format' clang-format --dry-run -Werror $C_FILES
}

words() {
  step 'no leftovers in the text' clean_words
  step 'shell scripts parse' shell_syntax
}

lua() {
  step 'luacheck' lint_lua
  step 'luarocks lint' luarocks lint rockspec/redlock-scm-1.rockspec
}

case ${1:-all} in
format | words | lua | manual) "$1" ;;
tidy) step "clang-tidy $part" tidy ;;
cppcheck) step 'cppcheck' check ;;
all)
  format
  step 'clang-tidy' tidy
  step 'cppcheck' check
  lua
  words
  manual
  ;;
esac
exit "$failed"
