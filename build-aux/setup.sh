#!/bin/sh
# Finds the packages that are missing to build, demonstrate or test redlock, and installs them if
# there are apt and the rights. Otherwise names the packages, and fails. If none is missing, it does
# nothing and needs no rights.
#
#     setup.sh demo [LUA_VERSION]      to build the module for one Lua, and to run Redis nodes
#     setup.sh test                    to run every test
#     setup.sh lint                    to check the style of the code
#     setup.sh check                   to check pages in a browser and figures with promtool
#     setup.sh site                    to build and check the site of the docs
#     setup.sh interop                 to run other lock libraries: make interop, make conformance
#     setup.sh all                     everything
set -u
purpose=${1:-test}
lua_version=${2:-5.4}
PKG_CONFIG=${PKG_CONFIG:-pkg-config}

# A test for each dependency, and its packages on Debian, Fedora and Alpine. Names of Debian and
# Ubuntu that are joined by commas are tried one after the other.
needs_demo='
command:cc|gcc|gcc|gcc
header:stdio.h|libc6-dev|glibc-devel|musl-dev
command:make|make|make|make
command:pkg-config|pkg-config|pkgconf-pkg-config|pkgconf
package:hiredis|libhiredis-dev|hiredis-devel|hiredis-dev
command:redis-server|redis-server|redis|redis
command:redis-cli|redis-tools|redis|redis
'
needs_lua='
5.1|command:lua5.1|lua5.1|compat-lua|lua5.1
5.1|package:lua5.1,lua-5.1,lua51|liblua5.1-0-dev|compat-lua-devel|lua5.1-dev
5.2|command:lua5.2|lua5.2|-|lua5.2
5.2|package:lua5.2,lua-5.2,lua52|liblua5.2-dev|-|lua5.2-dev
5.3|command:lua5.3|lua5.3|-|lua5.3
5.3|package:lua5.3,lua-5.3,lua53|liblua5.3-dev|-|lua5.3-dev
5.4|command:lua5.4,lua-5.4|lua5.4|lua|lua5.4
5.4|package:lua5.4,lua-5.4,lua54|liblua5.4-dev|lua-devel|lua5.4-dev
jit|command:luajit|luajit2,luajit|luajit|luajit
jit|package:luajit|libluajit2-5.1-dev,libluajit-5.1-dev|luajit-devel|luajit-dev
'
needs_test='
command:c++|g++|gcc-c++|g++
command:bash|bash|bash|bash
command:setsid|util-linux|util-linux-core|setsid
command:flock|util-linux|util-linux-core|flock
command:ps|procps|procps-ng|procps
command:objcopy|binutils|binutils|binutils
package:openssl|libssl-dev|openssl-devel|openssl-dev
package:cmocka|libcmocka-dev|libcmocka-devel|cmocka-dev
command:busted|lua-busted|-|lua5.4-busted
module51:posix|lua-posix|lua-posix|lua5.4-posix
module:socket|lua-socket|lua-socket|lua5.4-socket
module:cqueues|lua-cqueues|-|lua5.4-cqueues
module:luv|lua-luv|lua-luv|lua5.4-luv
module51:copas|lua-copas|lua-copas|lua5.4-copas
package:libuv|libuv1-dev|libuv-devel|libuv-dev
package:libevent|libevent-dev|libevent-devel|libevent-dev
package:sqlite3|libsqlite3-dev|sqlite-devel|sqlite-dev
command:luarocks|luarocks|luarocks|luarocks5.4
command:valgrind|valgrind|valgrind|valgrind
command:clang|clang|clang|clang
command:git|git|git|git
command:openssl|openssl|openssl|openssl
command:curl|curl|curl|curl
command:unshare|util-linux|util-linux-core|util-linux-misc
file:/usr/sbin/cron,/usr/sbin/crond|cron|cronie|dcron
command:zsh|zsh|zsh|zsh
command:fish|fish|fish|fish
command:nvim|neovim|neovim|neovim
file:/usr/sbin/nginx,/usr/bin/nginx|nginx|nginx|nginx
file:/usr/lib/nginx/modules/ngx_http_lua_module.so|libnginx-mod-http-lua|-|nginx-mod-http-lua
'
needs_lint='
command:cc|gcc|gcc|gcc
package:hiredis|libhiredis-dev|hiredis-devel|hiredis-dev
package:openssl|libssl-dev|openssl-devel|openssl-dev
package:lua5.4,lua-5.4,lua54|liblua5.4-dev|lua-devel|lua5.4-dev
command:pkg-config|pkg-config|pkgconf-pkg-config|pkgconf
package:libuv|libuv1-dev|libuv-devel|libuv-dev
package:libevent|libevent-dev|libevent-devel|libevent-dev
package:sqlite3|libsqlite3-dev|sqlite-devel|sqlite-dev
command:bash|bash|bash|bash
command:git|git|git|git
command:clang-format|clang-format|clang-tools-extra|clang-extra-tools
command:clang-tidy|clang-tidy|clang-tools-extra|clang-extra-tools
command:cppcheck|cppcheck|cppcheck|cppcheck
command:luacheck|lua-check|-|-
command:mandoc|mandoc|mandoc|mandoc
command:groff|groff-base|groff-base|groff
command:luarocks|luarocks|luarocks|luarocks5.4
'
needs_site='
command:make|make|make|make
command:lua5.4,lua-5.4|lua5.4|lua|lua5.4
command:mkdocs|mkdocs|mkdocs|mkdocs
command:mandoc|mandoc|mandoc|mandoc
command:chromedriver|chromium-driver|chromedriver|chromium-chromedriver
command:curl|curl|curl|curl
'
# For specs below spec/check, and for another processor (build-aux/cross.sh).
needs_check='
command:s390x-linux-gnu-gcc|gcc-s390x-linux-gnu|gcc-s390x-linux-gnu|-
file:/usr/s390x-linux-gnu/include/stdio.h|libc6-dev-s390x-cross|-|-
command:qemu-s390x|qemu-user|qemu-user|qemu-s390x
command:promtool|prometheus|golang-github-prometheus|prometheus
command:chromium|chromium|chromium|chromium
command:chromedriver|chromium-driver|chromedriver|chromium-chromedriver
'
# For libraries of Node, PHP and Python.
needs_interop='
command:node|nodejs|nodejs|nodejs
command:npm|npm|npm|npm
file:/usr/bin/python3|python3|python3|python3
command:php|php-cli|php-cli|php-cli
php:redis|php-redis|php-redis|php-redis
file:/usr/share/php/Symfony/Component/Lock/autoload.php|php-symfony-lock|-|-
'
# For bench and coverage.
needs_measure='
command:gcovr|gcovr|gcovr|gcovr
command:strace|strace|strace|strace
'

needs_luas=$(echo "$needs_lua" | sed 's/^[^|]*|//')
case $purpose in
demo) needs="$needs_demo$(echo "$needs_lua" | sed -n "s/^$lua_version|//p")" ;;
test) needs="$needs_demo$needs_luas$needs_test" ;;
lint) needs=$needs_lint ;;
check) needs=$needs_check ;;
interop) needs=$needs_interop ;;
site) needs=$needs_site ;;
all) needs="$needs_demo$needs_luas$needs_test$needs_lint$needs_check$needs_site$needs_measure" ;;
*)
  echo "setup: demo, test, lint, check, site, interop or all, not $purpose" >&2
  exit 2
  ;;
esac

# Succeeds if one of the names in a,b,c is installed.
have() {
  kind=${1%%:*}
  for name in $(echo "${1#*:}" | tr , ' '); do
    case $kind in
    command) command -v "$name" ;;
    file) test -e "$name" ;;
    package) "$PKG_CONFIG" --exists "$name" ;;
    header) echo "#include <$name>" | cc -fsyntax-only -x c - ;;
    php) php -m | grep -qx "$name" ;;
    module51) luajit -e "require '$name'" ;;
    module) lua5.4 -e "require '$name'" && luajit -e "require '$name'" ;;
    esac >/dev/null 2>&1 && return 0
  done
  return 1
}

# Prints the missing packages as lines Debian|Fedora|Alpine.
missing() {
  for need in $needs; do
    have "${need%%|*}" || echo "${need#*|}"
  done
}

column() {
  echo "$lacking" | cut -d '|' -f "$1" | grep -vx -e '-' | sort -u | tr '\n' ' '
}

as_root=
if [ "$(id -u)" -ne 0 ]; then
  as_root='sudo -n'
  $as_root true >/dev/null 2>&1 || as_root=none
fi

# A system of debootstrap has no /etc/hosts, and the tests resolve localhost. Without rights another
# source of the name is enough.
if [ "$purpose" = test ] || [ "$purpose" = all ]; then
  if ! grep -qsw localhost /etc/hosts && [ "$as_root" != none ]; then
    echo "setup: adding '127.0.0.1 localhost' to /etc/hosts" >&2
    echo '127.0.0.1 localhost' | $as_root tee -a /etc/hosts >/dev/null
  elif ! grep -qsw localhost /etc/hosts && ! getent hosts localhost >/dev/null; then
    echo "setup: cannot resolve localhost; add '127.0.0.1 localhost' to /etc/hosts" >&2
    exit 1
  fi
fi

lacking=$(missing)
[ -n "$lacking" ] || exit 0
here=$(dirname "$0")
if command -v apt-get >/dev/null 2>&1 && [ "$as_root" != none ]; then
  # shellcheck disable=SC2046,SC2086
  $as_root sh "$here/apt_install.sh" $(column 1) >&2 ||
    echo "setup: apt could not install the missing packages without removing others; see its messages above." >&2
  lacking=$(missing)
  [ -n "$lacking" ] || exit 0
fi

# Without apt the newest name is the best guess.
debian_names() {
  # shellcheck disable=SC2046
  sh "$here/apt_install.sh" --names $(column 1) 2>/dev/null | tr '\n' ' '
}

{
  echo "These packages are missing:"
  echo "  Debian, Ubuntu  apt-get install $(debian_names)"
  echo "  Fedora          dnf install $(column 2)"
  echo "  Alpine          apk add $(column 3)"
  if echo "$lacking" | grep -q 'busted\|lua-check\|cqueues\|lua-posix\|lua-luv\|lua-copas'; then
    echo "For packages that a distribution lacks: luarocks install busted luacheck cqueues luv copas luaposix"
  fi
} >&2
exit 1
