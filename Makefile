# redlock. GNU make; `make help` lists the targets, README.md explains the project.
#
#     make                                   the C library, and the Lua module for LUA_VERSION
#     make LUA_VERSION=jit lua               the Lua module for LuaJIT, beside the others
#     make install PREFIX=/usr DESTDIR=...   both
#
# Everything is built below $(BUILD); several Lua versions, and several builds, live side by side.

LUA_VERSION ?= 5.4
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASH_COMPLETION_DIR ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETION_DIR ?= $(PREFIX)/share/zsh/site-functions
FISH_COMPLETION_DIR ?= $(PREFIX)/share/fish/vendor_completions.d
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
OBJCOPY ?= objcopy
NM ?= nm
READELF ?= readelf
INSTALL ?= install
LIBFLAG ?= -shared

VERSION := $(shell sed -n 's/^.define REDLOCK_VERSION "\(.*\)"/\1/p' csrc/include/redlock.h)
# The ABI in one place: the number in the sonames, and the version of every symbol. It changes when
# a program that was compiled earlier would break; docs/c.md has the rules.
ABI = 0
SYMBOL_VERSION = REDLOCK_$(ABI)

LUA_VERSIONS = 5.1 5.2 5.3 5.4 5.5 jit
ifeq ($(filter $(LUA_VERSION),$(LUA_VERSIONS)),)
  $(error LUA_VERSION=$(LUA_VERSION): it is one of $(LUA_VERSIONS))
endif

# ------------------------------------------------------------------------------- dependencies
# Looked up at first use, so that the library needs no Lua.
comma := ,

# LuaJIT keeps its modules where Lua 5.1 does.
LUA_DIR = $(if $(filter jit,$(LUA_VERSION)),5.1,$(LUA_VERSION))
INSTALL_LMOD ?= $(PREFIX)/share/lua/$(LUA_DIR)
INSTALL_CMOD ?= $(PREFIX)/lib/lua/$(LUA_DIR)

LUA_PACKAGES = $(if $(filter jit,$(LUA_VERSION)),luajit,$(foreach name,lua$(LUA_VERSION) \
  lua-$(LUA_VERSION) lua$(subst .,,$(LUA_VERSION)),$(name)))
first_package = $(firstword $(foreach name,$(1),$(shell $(PKG_CONFIG) --exists $(name) && echo $(name))))
once = $(eval $(1) := $(2))$($(1))

LUA_PACKAGE = $(call once,LUA_PACKAGE,$(call first_package,$(LUA_PACKAGES)))
# Where build-aux/newer_lua.sh has unpacked a Lua that this system does not have.
LUA_TREE = $(if $(LUA_PACKAGE),,$(abspath $(wildcard build/other-luas/$(LUA_VERSION))))
ifdef LUA_INCDIR
  LUA_CFLAGS ?= -I$(LUA_INCDIR)
endif
ifeq ($(origin LUA_CFLAGS),undefined)
  LUA_CFLAGS = $(call once,LUA_CFLAGS,$(if $(LUA_PACKAGE),$(shell $(PKG_CONFIG) --cflags $(LUA_PACKAGE)),$(if \
    $(LUA_TREE),-I$(LUA_TREE)/include,$(error \
    no Lua $(LUA_VERSION): none of $(LUA_PACKAGES) is known to $(PKG_CONFIG); `make setup` can help, or set LUA_CFLAGS))))
endif
ifeq ($(origin LUA_LIBS),undefined)
  LUA_LIBS = $(call once,LUA_LIBS,$(if $(LUA_TREE),-Wl$(comma)--allow-shlib-undefined $(wildcard \
    $(LUA_TREE)/root/usr/lib/*/liblua$(LUA_VERSION).so),$(shell $(PKG_CONFIG) --libs $(LUA_PACKAGE))))
endif
LUA ?= $(if $(filter jit,$(LUA_VERSION)),luajit,$(call once,LUA_COMMAND,$(shell \
  command -v lua$(LUA_VERSION) || command -v lua$(subst .,,$(LUA_VERSION)) || \
  { test -z '$(LUA_TREE)' || echo '$(LUA_TREE)/lua$(LUA_VERSION)'; } || echo lua)))

# For a hiredis outside the directories of the compiler: HIREDIS_PREFIX=/opt/hiredis, or
# PKG_CONFIG_PATH.
ifdef HIREDIS_PREFIX
  HIREDIS_INCDIR ?= $(HIREDIS_PREFIX)/include
  HIREDIS_LIBDIR ?= $(patsubst %/,%,$(dir $(firstword $(wildcard $(HIREDIS_PREFIX)/lib/libhiredis.so \
    $(HIREDIS_PREFIX)/lib64/libhiredis.so $(HIREDIS_PREFIX)/lib/*/libhiredis.so))))
endif
ifdef HIREDIS_INCDIR
  HIREDIS_CFLAGS ?= -I$(HIREDIS_INCDIR)
  HIREDIS_LIBS ?= -L$(HIREDIS_LIBDIR) -lhiredis \
    $(if $(filter /usr/lib% /lib%,$(HIREDIS_LIBDIR)),,-Wl,-rpath,$(HIREDIS_LIBDIR))
endif
ifeq ($(origin HIREDIS_CFLAGS),undefined)
  # We include <hiredis/...>; some hiredis.pc only name the directory itself, hence its parent.
  HIREDIS_CFLAGS = $(call once,HIREDIS_CFLAGS,$(if $(shell $(PKG_CONFIG) --exists hiredis && echo yes),$(shell \
    $(PKG_CONFIG) --cflags hiredis) $(patsubst %,-I%/..,$(filter-out \
    /usr/include/hiredis,$(filter %/hiredis,$(patsubst -I%,%,$(shell $(PKG_CONFIG) --cflags-only-I hiredis))))),$(error \
    no hiredis: $(PKG_CONFIG) does not know it; `make setup` can help, or set HIREDIS_PREFIX)))
endif
ifeq ($(origin HIREDIS_LIBS),undefined)
  HIREDIS_LIBS = $(call once,HIREDIS_LIBS,$(shell $(PKG_CONFIG) --libs hiredis))
  PC_REQUIRES_PRIVATE = hiredis
endif

# TLS is a separate library. TLS=1 requires it, TLS=0 omits it; otherwise it is built if there is an
# OpenSSL: that of pkg-config, or OPENSSL_DIR=/opt/openssl.
OPENSSL_PACKAGE = openssl >= 1.1.1
ifdef OPENSSL_DIR
  OPENSSL_INCDIR ?= $(OPENSSL_DIR)/include
  OPENSSL_LIBDIR ?= $(patsubst %/,%,$(dir $(firstword $(wildcard $(OPENSSL_DIR)/lib/libssl.so $(OPENSSL_DIR)/lib64/libssl.so \
    $(OPENSSL_DIR)/lib/*/libssl.so))))
endif
ifdef OPENSSL_INCDIR
  OPENSSL_CFLAGS ?= -I$(OPENSSL_INCDIR)
  OPENSSL_LIBS ?= $(if $(OPENSSL_LIBDIR),-L$(OPENSSL_LIBDIR)) -lssl -lcrypto \
    $(if $(filter-out /usr/lib% /lib%,$(OPENSSL_LIBDIR)),-Wl$(comma)-rpath$(comma)$(OPENSSL_LIBDIR))
endif
TLS ?= $(call once,TLS,$(if $(OPENSSL_INCDIR),1,$(shell \
  $(PKG_CONFIG) --exists '$(OPENSSL_PACKAGE)' 2>/dev/null && echo 1 || echo 0)))
ifeq ($(filter 0 1,$(TLS)),)
  $(error TLS=$(TLS): it is 0 or 1)
endif
ifeq ($(origin OPENSSL_CFLAGS),undefined)
  OPENSSL_CFLAGS = $(call once,OPENSSL_CFLAGS,$(if $(shell $(PKG_CONFIG) --exists '$(OPENSSL_PACKAGE)' && echo yes),$(shell \
    $(PKG_CONFIG) --cflags openssl),$(error no OpenSSL from 1.1.1 on: $(PKG_CONFIG) does not know it. It is in libssl-dev \
    of Debian, openssl-devel of Fedora, openssl-dev of Alpine; or set OPENSSL_DIR; TLS=0 goes without)))
endif
ifeq ($(origin OPENSSL_LIBS),undefined)
  OPENSSL_LIBS = $(call once,OPENSSL_LIBS,$(shell $(PKG_CONFIG) --libs openssl))
  PC_TLS_REQUIRES_PRIVATE = openssl
endif
with_tls = $(if $(filter 1,$(TLS)),$(1))

# ------------------------------------------------------------------------------------------ flags

WARNINGS = -Wall -Wextra
ifdef WERROR
  WARNINGS += -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
    -Wvla -Wpointer-arith -Wundef -Wwrite-strings -Werror
endif
ALL_CFLAGS = -std=c11 -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(CFLAGS)
ALL_CPPFLAGS = -D_GNU_SOURCE -Icsrc/include $(CPPFLAGS)
# A layer sees only lower layers.
CORE_CPPFLAGS = -Icsrc/core $(HIREDIS_CFLAGS)
DRIVER_CPPFLAGS = -Icsrc/driver -Icsrc/core $(HIREDIS_CFLAGS)
BINDING_CPPFLAGS = -Icsrc/binding $(DRIVER_CPPFLAGS) $(LUA_CFLAGS)
TLS_CPPFLAGS = -Icsrc/tls -Icsrc/driver $(OPENSSL_CFLAGS)
# cmocka passes a state to each test, which most tests do not use.
TEST_CPPFLAGS = -Icsrc/test/lib -Icsrc/binding $(DRIVER_CPPFLAGS) -Wno-unused-parameter
LDLIBS_REDLOCK = $(HIREDIS_LIBS) -pthread -lm
# Bsymbolic: a copy inside a Lua module must never use half of another copy in the same process.
# nodelete: a resolver thread may still be running when the module is closed.
SHARED_LDFLAGS = -Wl,-Bsymbolic -Wl,-z,nodelete
SYMBOL_MAP = $(BUILD)/symbols.map
VERSIONED_LDFLAGS = -Wl,-soname,$(@F) -Wl,--version-script=$(SYMBOL_MAP) $(SHARED_LDFLAGS) $(NO_UNDEFINED) $(LDFLAGS)
compile = $(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -MMD -MP
# A sanitized library uses the runtime of the program that loads it.
NO_UNDEFINED = $(if $(findstring -fsanitize,$(CFLAGS)),,-Wl,-z,defs)

# ---------------------------------------------------------------------------------------- objects

CORE_OBJECTS = $(patsubst csrc/%.c,$(BUILD)/obj/%.o,$(wildcard csrc/core/*.c csrc/core/*/*.c))
DRIVER_OBJECTS = $(patsubst csrc/%.c,$(BUILD)/obj/%.o,$(wildcard csrc/driver/*/*.c))
LIBRARY_OBJECTS = $(CORE_OBJECTS) $(DRIVER_OBJECTS)
BINDING_OBJECTS = $(patsubst csrc/binding/%.c,$(BUILD)/$(LUA_VERSION)/obj/%.o,$(wildcard csrc/binding/rl_lua*.c))

TLS_OBJECTS = $(patsubst csrc/%.c,$(BUILD)/obj/%.o,$(wildcard csrc/tls/rl_tls*.c))
TLS_SOURCES = $(patsubst $(BUILD)/obj/%.o,csrc/%.c,$(TLS_OBJECTS))
TLS_STATIC_LIBRARY = $(BUILD)/lib/libredlock_tls.a
TLS_SHARED_LIBRARY = $(BUILD)/lib/libredlock_tls.so.$(ABI)
TLS_LUA_OBJECTS = $(patsubst csrc/%.c,$(BUILD)/$(LUA_VERSION)/obj/%.o,$(wildcard csrc/tls/lua/*.c))
TLS_LUA_MODULE = $(BUILD)/$(LUA_VERSION)/redlock/tls.so

STATIC_LIBRARY = $(BUILD)/lib/libredlock.a
SHARED_LIBRARY = $(BUILD)/lib/libredlock.so.$(ABI)
CLI = $(BUILD)/bin/redlock
CLI_OBJECTS = $(patsubst csrc/%.c,$(BUILD)/obj/%.o,$(wildcard csrc/cli/*.c))
LUA_MODULE = $(BUILD)/$(LUA_VERSION)/redlock/core.so
LUA_LIBRARY = $(BUILD)/$(LUA_VERSION)/libredlock-lua$(LUA_VERSION).a
LUA_FILES = $(wildcard lua/redlock/*.lua)
LUA_ALIASES = $(wildcard lua/resty/*.lua)

.PHONY: all lib cli lua
.DELETE_ON_ERROR:
all: lib cli lua
lib: $(STATIC_LIBRARY) $(BUILD)/lib/libredlock.so $(call with_tls,$(TLS_STATIC_LIBRARY) $(BUILD)/lib/libredlock_tls.so)
cli: $(CLI)
lua: $(LUA_MODULE) $(LUA_LIBRARY) $(call with_tls,$(TLS_LUA_MODULE))

# Changed flags rebuild all objects.
.PHONY: force
remember = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' > $@
$(BUILD)/flags: force
	$(call remember,$(compile) $(HIREDIS_CFLAGS) $(HIREDIS_LIBS) $(LDFLAGS))
$(BUILD)/$(LUA_VERSION)/flags: force
	$(call remember,$(compile) $(LUA_CFLAGS) $(HIREDIS_LIBS) $(LDFLAGS) $(LIBFLAG))
$(SYMBOL_MAP): force
	$(call remember,$(SYMBOL_VERSION) { global: redlock_*; };)
$(BUILD)/tls-flags: force
	$(call remember,$(OPENSSL_CFLAGS) $(OPENSSL_LIBS))

$(BUILD)/obj/core/%.o: csrc/core/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) $(CORE_CPPFLAGS) -c -o $@ $<
$(BUILD)/obj/driver/%.o: csrc/driver/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) $(DRIVER_CPPFLAGS) -c -o $@ $<
$(BUILD)/obj/tls/%.o: csrc/tls/%.c $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile) $(TLS_CPPFLAGS) -c -o $@ $<
$(BUILD)/$(LUA_VERSION)/obj/tls/%.o: csrc/tls/%.c $(BUILD)/$(LUA_VERSION)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile) $(TLS_CPPFLAGS) $(LUA_CFLAGS) -c -o $@ $<
# The tool sees only redlock.h.
$(BUILD)/obj/cli/%.o: csrc/cli/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) -c -o $@ $<
$(BUILD)/$(LUA_VERSION)/obj/%.o: csrc/binding/%.c $(BUILD)/$(LUA_VERSION)/flags
	@mkdir -p $(@D)
	$(compile) $(BINDING_CPPFLAGS) -c -o $@ $<

# Each library is compiled as one file, whose hidden symbols then become local: the compiler sees
# that programs call only redlock_*, and a pair of acquire and release needs a sixth fewer
# instructions. The objects above are for tests; each sees only the headers of its layer and of
# lower ones. The library for Lua hosts contains binding and library, because the binding uses hidden
# parts of the driver.
LIBRARY_SOURCES = $(patsubst $(BUILD)/obj/%.o,csrc/%.c,$(LIBRARY_OBJECTS))
BINDING_SOURCES = $(patsubst $(BUILD)/$(LUA_VERSION)/obj/%.o,csrc/binding/%.c,$(BINDING_OBJECTS))
WHOLE = $(call once,WHOLE,$(if $(shell $(CC) -dM -E -x c /dev/null | grep __clang__),,-fwhole-program \
  '-DREDLOCK_EXTERN=__attribute__((visibility("default"), externally_visible))'))
compile_whole = $(compile) -fno-lto $(WHOLE) $(1) $(addprefix -include ,$(2)) -x c -c -o $@ /dev/null && \
  $(OBJCOPY) --localize-hidden $@
$(BUILD)/obj/redlock.o: $(LIBRARY_SOURCES) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call compile_whole,$(DRIVER_CPPFLAGS),$(LIBRARY_SOURCES))
$(BUILD)/$(LUA_VERSION)/obj/redlock.o: $(LIBRARY_SOURCES) $(BINDING_SOURCES) $(BUILD)/$(LUA_VERSION)/flags
	@mkdir -p $(@D)
	$(call compile_whole,$(BINDING_CPPFLAGS),$(LIBRARY_SOURCES) $(BINDING_SOURCES))

archive = rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(STATIC_LIBRARY): $(BUILD)/obj/redlock.o
	@mkdir -p $(@D)
	$(archive)
$(LUA_LIBRARY): $(BUILD)/$(LUA_VERSION)/obj/redlock.o
	$(archive)

# OpenSSL must stay loaded: it has handlers for the end of the process and of threads.
$(BUILD)/obj/redlock_tls.o: $(TLS_SOURCES) $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(call compile_whole,$(TLS_CPPFLAGS),$(TLS_SOURCES))
$(TLS_STATIC_LIBRARY): $(BUILD)/obj/redlock_tls.o
	@mkdir -p $(@D)
	$(archive)
$(TLS_SHARED_LIBRARY): $(BUILD)/obj/redlock_tls.o $(SYMBOL_MAP)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared $(VERSIONED_LDFLAGS) -o $@ $< $(OPENSSL_LIBS)
$(BUILD)/lib/libredlock_tls.so: $(TLS_SHARED_LIBRARY)
	ln -sf $(<F) $@
$(TLS_LUA_MODULE): $(TLS_LUA_OBJECTS) $(BUILD)/obj/redlock_tls.o
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFLAG) $(SHARED_LDFLAGS) $(LDFLAGS) -o $@ $^ $(OPENSSL_LIBS)

$(SHARED_LIBRARY): $(BUILD)/obj/redlock.o $(SYMBOL_MAP)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -shared $(VERSIONED_LDFLAGS) -o $@ $< $(LDLIBS_REDLOCK)
# The tool finds libredlock_tls in this tree, in PREFIX, or in the directories of the system. Under
# a sanitizer, whose own dlopen() makes the call, only the old tag works.
CLI_DTAGS = $(if $(findstring -fsanitize,$(CFLAGS)),--disable-new-dtags,--enable-new-dtags)
$(CLI): $(CLI_OBJECTS) $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -Wl,$(CLI_DTAGS),-rpath,'$$ORIGIN/../lib' -o $@ $^ $(LDLIBS_REDLOCK) -ldl
$(BUILD)/lib/libredlock.so: $(SHARED_LIBRARY)
	ln -sf $(<F) $@
$(LUA_MODULE): $(BUILD)/$(LUA_VERSION)/obj/redlock.o
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFLAG) $(SHARED_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_REDLOCK)

# ---------------------------------------------------------------------------------------- install

.PHONY: install install-lib install-tls install-cli install-lua uninstall
install: install-lib $(call with_tls,install-tls) install-cli install-lua

# fill,redlock.pc,packages,flags: packages and flags of a static link
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
  -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES_PRIVATE@|$(2)|' -e 's|@LIBS_PRIVATE@|$(3)|' $(1).in > $(BUILD)/$(1)
PC_LIBS_PRIVATE = $(if $(PC_REQUIRES_PRIVATE),,$(HIREDIS_LIBS)) -pthread -lm
install-lib: lib
	$(INSTALL) -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 csrc/include/redlock.h '$(DESTDIR)$(INCLUDEDIR)/redlock.h'
	$(INSTALL) -m 644 $(STATIC_LIBRARY) '$(DESTDIR)$(LIBDIR)/libredlock.a'
	$(INSTALL) -m 755 $(SHARED_LIBRARY) '$(DESTDIR)$(LIBDIR)/libredlock.so.$(VERSION)'
	ln -sf libredlock.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libredlock.so.$(ABI)'
	ln -sf libredlock.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libredlock.so'
	$(call fill,redlock.pc,$(PC_REQUIRES_PRIVATE),$(PC_LIBS_PRIVATE))
	$(INSTALL) -m 644 $(BUILD)/redlock.pc '$(DESTDIR)$(LIBDIR)/pkgconfig/redlock.pc'

PC_TLS_LIBS_PRIVATE = $(if $(PC_TLS_REQUIRES_PRIVATE),,$(OPENSSL_LIBS))
install-tls: lib
	$(INSTALL) -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 csrc/include/redlock_tls.h '$(DESTDIR)$(INCLUDEDIR)/redlock_tls.h'
	$(INSTALL) -m 644 $(TLS_STATIC_LIBRARY) '$(DESTDIR)$(LIBDIR)/libredlock_tls.a'
	$(INSTALL) -m 755 $(TLS_SHARED_LIBRARY) '$(DESTDIR)$(LIBDIR)/libredlock_tls.so.$(VERSION)'
	ln -sf libredlock_tls.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libredlock_tls.so.$(ABI)'
	ln -sf libredlock_tls.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libredlock_tls.so'
	$(call fill,redlock_tls.pc,$(PC_TLS_REQUIRES_PRIVATE),$(PC_TLS_LIBS_PRIVATE))
	$(INSTALL) -m 644 $(BUILD)/redlock_tls.pc '$(DESTDIR)$(LIBDIR)/pkgconfig/redlock_tls.pc'

install-cli: cli
	$(INSTALL) -d '$(DESTDIR)$(BINDIR)'
	$(INSTALL) -m 755 $(CLI) '$(DESTDIR)$(BINDIR)/redlock'
	$(INSTALL) -d '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(BASH_COMPLETION_DIR)' '$(DESTDIR)$(ZSH_COMPLETION_DIR)' \
	  '$(DESTDIR)$(FISH_COMPLETION_DIR)'
	$(INSTALL) -m 644 docs/redlock.1 '$(DESTDIR)$(MANDIR)/man1/redlock.1'
	$(INSTALL) -m 644 completion/redlock.bash '$(DESTDIR)$(BASH_COMPLETION_DIR)/redlock'
	$(INSTALL) -m 644 completion/_redlock '$(DESTDIR)$(ZSH_COMPLETION_DIR)/_redlock'
	$(INSTALL) -m 644 completion/redlock.fish '$(DESTDIR)$(FISH_COMPLETION_DIR)/redlock.fish'

install-lua: lua install-lua-files
	$(INSTALL) -d '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 644 $(LUA_LIBRARY) '$(DESTDIR)$(LIBDIR)/$(notdir $(LUA_LIBRARY))'

# Files of a Lua package: LuaRocks has no directory for the library.
.PHONY: install-lua-files
install-lua-files: $(LUA_MODULE) $(call with_tls,$(TLS_LUA_MODULE))
	$(INSTALL) -d '$(DESTDIR)$(INSTALL_LMOD)/redlock' '$(DESTDIR)$(INSTALL_CMOD)/redlock'
	$(INSTALL) -m 644 lua/redlock.lua '$(DESTDIR)$(INSTALL_LMOD)/redlock.lua'
	$(if $(LUA_FILES),$(INSTALL) -m 644 $(LUA_FILES) '$(DESTDIR)$(INSTALL_LMOD)/redlock/')
	$(INSTALL) -d '$(DESTDIR)$(INSTALL_LMOD)/resty'
	$(INSTALL) -m 644 $(LUA_ALIASES) '$(DESTDIR)$(INSTALL_LMOD)/resty/'
	$(INSTALL) -m 755 $(LUA_MODULE) '$(DESTDIR)$(INSTALL_CMOD)/redlock/core.so'
	$(call with_tls,$(INSTALL) -m 755 $(TLS_LUA_MODULE) '$(DESTDIR)$(INSTALL_CMOD)/redlock/tls.so')

LIBRARY_FILES = libredlock.a libredlock.so libredlock.so.$(ABI) libredlock.so.$(VERSION) pkgconfig/redlock.pc
uninstall:
	rm -f '$(DESTDIR)$(BINDIR)/redlock' '$(DESTDIR)$(MANDIR)/man1/redlock.1' '$(DESTDIR)$(BASH_COMPLETION_DIR)/redlock' \
	  '$(DESTDIR)$(ZSH_COMPLETION_DIR)/_redlock' '$(DESTDIR)$(FISH_COMPLETION_DIR)/redlock.fish' \
	  '$(DESTDIR)$(INCLUDEDIR)/redlock.h' '$(DESTDIR)$(INCLUDEDIR)/redlock_tls.h' \
	  $(foreach file,$(LIBRARY_FILES) $(subst redlock,redlock_tls,$(LIBRARY_FILES)),'$(DESTDIR)$(LIBDIR)/$(file)') \
	  '$(DESTDIR)$(LIBDIR)/$(notdir $(LUA_LIBRARY))' '$(DESTDIR)$(INSTALL_LMOD)/redlock.lua' \
	  $(patsubst lua/%,'$(DESTDIR)$(INSTALL_LMOD)/%',$(LUA_FILES) $(LUA_ALIASES)) \
	  '$(DESTDIR)$(INSTALL_CMOD)/redlock/core.so' '$(DESTDIR)$(INSTALL_CMOD)/redlock/tls.so'
	-rmdir '$(DESTDIR)$(INSTALL_LMOD)/resty' '$(DESTDIR)$(INSTALL_LMOD)/redlock' '$(DESTDIR)$(INSTALL_CMOD)/redlock' 2>/dev/null

# LuaRocks sets the directory of Lua's headers, and not its version.
.PHONY: luarocks-build luarocks-install
ROCKS_VERSION = $(if $(wildcard $(LUA_INCDIR)/luajit.h),jit,$(shell \
  sed -n -e 's/^.define LUA_VERSION_NUM[^0-9]*5\([0-9]\)\([0-9]\).*/5.\2/p' \
  -e 's/^.define LUA_VERSION_MINOR_N[^0-9]*\([0-9]\).*/5.\1/p' $(LUA_INCDIR)/lua.h))
ROCKS_MAKE = $(MAKE) LUA_VERSION=$(ROCKS_VERSION) BUILD=$(BUILD)/luarocks
luarocks-build:
	+$(ROCKS_MAKE) lua
luarocks-install:
	+$(ROCKS_MAKE) install-lua-files

# ----------------------------------------------------------------------------- examples and bench

.PHONY: examples demo bench
# Examples for another library are built if it is installed.
EXAMPLE_PACKAGE_libuv_loop = libuv
EXAMPLE_PACKAGE_libevent_loop = libevent
EXAMPLE_PACKAGE_fenced_sqlite = sqlite3
example_flags = $(if $(EXAMPLE_PACKAGE_$(1)),$(shell $(PKG_CONFIG) $(2) $(EXAMPLE_PACKAGE_$(1))))
EXAMPLES_WITHOUT_PACKAGE = $(foreach name,libuv_loop libevent_loop fenced_sqlite,$(if $(shell \
  $(PKG_CONFIG) --exists $(EXAMPLE_PACKAGE_$(name)) && echo yes),,examples/c/$(name).c))
EXAMPLES = $(patsubst examples/c/%.c,$(BUILD)/examples/%,$(filter-out %/lua_host.c $(EXAMPLES_WITHOUT_PACKAGE),$(wildcard examples/c/*.c))) \
  $(BUILD)/examples/loops_page $(BUILD)/$(LUA_VERSION)/examples/lua_host
examples: $(EXAMPLES)
$(BUILD)/examples/%: examples/c/%.c $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	$(compile) $(call example_flags,$*,--cflags) $(LDFLAGS) -o $@ $< $(STATIC_LIBRARY) $(LDLIBS_REDLOCK) \
	  $(call example_flags,$*,--libs)
# Negative controls: stores that ignore the fencing token.
$(BUILD)/examples/unfenced_%: examples/c/fenced_%.c $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	sed 's/ WHERE excluded.fence >= report.fence//; s/if tonumber(ARGV.1.) < last then return 0 end//' $< >$@.c
	@! cmp -s $< $@.c
	$(compile) $(call example_flags,fenced_$*,--cflags) $(LDFLAGS) -o $@ $@.c $(STATIC_LIBRARY) $(LDLIBS_REDLOCK) \
	  $(call example_flags,fenced_$*,--libs)
# The program that docs/loops.md shows.
$(BUILD)/examples/loops_page: docs/loops.md $(STATIC_LIBRARY)
	@mkdir -p $(@D)
	sed -n '/^```c$$/,/^```$$/{/^```/d;p;}' $< >$@.c
	$(compile) $(LDFLAGS) -o $@ $@.c $(STATIC_LIBRARY) $(LDLIBS_REDLOCK)
$(BUILD)/$(LUA_VERSION)/examples/lua_host: examples/c/lua_host.c $(LUA_LIBRARY)
	@mkdir -p $(@D)
	$(compile) $(LUA_CFLAGS) $(LDFLAGS) -o $@ $< $(LUA_LIBRARY) $(LUA_LIBS) $(LDLIBS_REDLOCK)

# Makes Lua find the module in this tree.
LUA_ENV = LUA_PATH='lua/?.lua;lua/?/init.lua;spec/?.lua;;' LUA_CPATH='$(BUILD)/$(LUA_VERSION)/?.so;;' \
  LUA_VERSION=$(LUA_VERSION) LUA=$(LUA) REDLOCK_SPEC_LUA=$(LUA) BUILD=$(BUILD)

demo:
	@sh build-aux/setup.sh demo $(LUA_VERSION)
	@$(MAKE) --no-print-directory -s lua
	@$(LUA_ENV) sh examples/demo.sh

bench:
	bench/run $(BENCH_ARGUMENTS)

include build-aux/test.mk
include build-aux/integration.mk
include csrc/test/sim/sim.mk
include csrc/test/chaos/chaos.mk
include csrc/test/model/model.mk
include csrc/test/fuzz/fuzz.mk
include conformance/conformance.mk

# -------------------------------------------------------------------------------------- the rest

.PHONY: clean help
clean:
	rm -rf $(BUILD)
help:
	@echo 'all lib cli lua install uninstall LUA_VERSION=$(subst $(eval) ,|,$(LUA_VERSIONS)) TLS=0|1 PREFIX DESTDIR CC ...'
	@echo 'demo                              starts five Redis nodes and shows locks'
	@echo 'test                              runs the tests for users, and installs what they need'
	@echo 'ci                                runs test and check, as .ci/run does'
	@echo 'setup                             installs all dependencies, or names the missing packages'
	@echo 'site check-site                   the docs as a web site in $(BUILD)/site, and a check of its links'
	@echo 'fresh                             runs demo and test on new systems (debootstrap)'
	@echo 'lint unit spec luas examples-test check-pure check-exports check-abi abidiff check-header check-install check-rocks check-without-tls other-servers'
	@echo 'chaos chaos-controls soak         CHAOS_SECONDS SEED ...: faults on real servers, under load'
	@echo 'conformance interop conformance-quick   other libraries on faulty nodes, and against this one: docs/conformance.md'
	@echo 'model model-replay model-controls model-test model-long   the formal model, docs/model.md'
	@echo 'sim timeline sim-test sim-long controls mutants fuzz     docs/testing.md'
	@echo 'cross                             other processors, C libraries and systems (build-aux/cross.sh)'
	@echo 'asan tsan valgrind coverage bench format clean'

-include $(BUILD)/obj/redlock.d $(BUILD)/obj/redlock_tls.d $(BUILD)/$(LUA_VERSION)/obj/redlock.d $(LIBRARY_OBJECTS:.o=.d) $(TLS_OBJECTS:.o=.d) $(TLS_LUA_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(BINDING_OBJECTS:.o=.d) $(wildcard $(BUILD)/examples/*.d)
