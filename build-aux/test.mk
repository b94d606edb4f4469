# All tests. Included by the Makefile.

# ------------------------------------------------------------------------------------- unit tests
# Each csrc/test/unit/FOLDER/*_test.c is a cmocka program, in the folder of the module that it
# tests. Tests share csrc/test/lib. rl_lua_*_test.c embed a Lua: one program per
# Lua version.

CMOCKA_LIBS ?= $(shell $(PKG_CONFIG) --libs cmocka || echo -lcmocka)
ifneq ($(wildcard csrc/test/*.c csrc/test/unit/*.c),)
  $(error $(wildcard csrc/test/*.c csrc/test/unit/*.c): a unit test belongs in csrc/test/unit/FOLDER, a helper in csrc/test/lib)
endif
# Tests of TLS need TLS, and share csrc/test/tls.
without_tls = $(if $(filter 1,$(TLS)),$(1),$(foreach source,$(1),$(if $(filter rl_tls_% tls_%,$(notdir $(source))),,$(source))))
TEST_SOURCES = $(call without_tls,$(wildcard csrc/test/unit/*/*_test.c))
TEST_LUA_SOURCES = $(foreach source,$(TEST_SOURCES),$(if $(filter rl_lua_%,$(notdir $(source))),$(source)))
vpath %_test.c $(sort $(dir $(TEST_SOURCES)))
TEST_HELPERS = $(filter-out %_lua.c,$(wildcard csrc/test/lib/*.c))
TEST_PROGRAMS = $(patsubst %.c,$(BUILD)/test/%,$(notdir $(filter-out $(TEST_LUA_SOURCES),$(TEST_SOURCES))))
TEST_LUA_PROGRAMS = $(patsubst %.c,$(BUILD)/$(LUA_VERSION)/test/%,$(notdir $(TEST_LUA_SOURCES)))
TEST_THREAD_PROGRAMS = $(filter %_thread_test,$(TEST_PROGRAMS))

# Tests see hidden symbols. It is an archive, so that a test that includes a .c file gets no second
# copy.
INTERNAL_LIBRARY = $(BUILD)/test/libinternal.a
$(INTERNAL_LIBRARY): $(LIBRARY_OBJECTS)
	@mkdir -p $(@D)
	$(archive)
INTERNAL_TLS_LIBRARY = $(BUILD)/test/libinternal_tls.a
$(INTERNAL_TLS_LIBRARY): $(TLS_OBJECTS)
	@mkdir -p $(@D)
	$(archive)
TLS_HELPER_LIBRARY = $(BUILD)/test/libtlshelpers.a
$(TLS_HELPER_LIBRARY): $(patsubst csrc/test/%.c,$(BUILD)/test/%.o,$(filter-out %/over_tls.c,$(wildcard csrc/test/tls/*.c)))
	$(archive)
TLS_LIBRARIES = $(TLS_HELPER_LIBRARY) $(INTERNAL_TLS_LIBRARY)
HELPER_OBJECTS = $(patsubst csrc/test/%.c,$(BUILD)/test/%.o,$(TEST_HELPERS))
HELPER_LIBRARY = $(if $(HELPER_OBJECTS),$(BUILD)/test/libhelpers.a)
$(BUILD)/test/libhelpers.a: $(HELPER_OBJECTS)
	$(archive)
$(BUILD)/test/%.o: csrc/test/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) $(TEST_CPPFLAGS) -c -o $@ $<
compile_tls_test = $(compile) $(TEST_CPPFLAGS) -Icsrc/test/tls $(TLS_CPPFLAGS) -c -o $@ $<
$(BUILD)/test/unit/%_test.o: %_test.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) $(TEST_CPPFLAGS) -c -o $@ $<
$(BUILD)/test/tls/%.o: csrc/test/tls/%.c $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile_tls_test)
$(BUILD)/test/unit/rl_tls_%_test.o: rl_tls_%_test.c $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile_tls_test)

# A test that defines __wrap_malloc, or includes a helper that does, needs --wrap=malloc. This holds
# for each name.
helpers_of = $(wildcard $(addprefix csrc/test/lib/,$(shell sed -n 's/^.include "\([a-z_]*\.h\)".*/\1/p' $(1))))
wraps = $(shell grep -oh '\b__wrap_[A-Za-z0-9_]*' $(1) $(call helpers_of,$(1)) | sort -u | sed 's/__wrap_/-Wl,--wrap=/')
link_test = $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(call wraps,$<) -o $@ $(filter %.o,$^) $(HELPER_LIBRARY)

$(BUILD)/test/%_test: %_test.c $(BUILD)/test/unit/%_test.o $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_test) $(INTERNAL_LIBRARY) $(CMOCKA_LIBS) $(LDLIBS_REDLOCK)
link_tls_test = $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(call wraps,$<) -o $@ $(filter %.o,$^) $(TLS_LIBRARIES) $(HELPER_LIBRARY) \
  $(INTERNAL_LIBRARY) $(CMOCKA_LIBS) $(OPENSSL_LIBS) $(LDLIBS_REDLOCK)
$(BUILD)/test/rl_tls_%_test: rl_tls_%_test.c $(BUILD)/test/unit/rl_tls_%_test.o $(TLS_LIBRARIES) \
    $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_tls_test)

$(BUILD)/$(LUA_VERSION)/test/%_test.o: %_test.c $(BUILD)/$(LUA_VERSION)/flags
	@mkdir -p $(@D)
	$(compile) $(TEST_CPPFLAGS) $(LUA_CFLAGS) -c -o $@ $<
$(BUILD)/$(LUA_VERSION)/test/%_test: %_test.c $(BUILD)/$(LUA_VERSION)/test/%_test.o $(BINDING_OBJECTS) \
    $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_test) $(INTERNAL_LIBRARY) $(LUA_LIBS) $(CMOCKA_LIBS) $(LDLIBS_REDLOCK)
.SECONDARY:

.PHONY: unit unit-programs unit-lua-programs
unit-programs: $(TEST_PROGRAMS)
unit-lua-programs: $(TEST_LUA_PROGRAMS)
unit:
	@$(run_tests) --only unit/ test

# ------------------------------------------------------------------------------------------ specs

SPECS ?= $(wildcard spec)
# The witness of the specs (csrc/test/lib/witness.h).
WITNESS_MODULE = $(BUILD)/$(LUA_VERSION)/witness.so
$(BUILD)/$(LUA_VERSION)/test/witness_lua.o: csrc/test/lib/witness_lua.c $(BUILD)/$(LUA_VERSION)/flags
	@mkdir -p $(@D)
	$(compile) -Icsrc/test/lib $(LUA_CFLAGS) -c -o $@ $<
$(WITNESS_MODULE): $(BUILD)/$(LUA_VERSION)/test/witness_lua.o $(BUILD)/test/lib/witness_clock.o $(BUILD)/test/lib/port.o
	$(CC) $(ALL_CFLAGS) $(LIBFLAG) -Wl,-z,nodelete $(LDFLAGS) -o $@ $^

.PHONY: spec luas
# make spec LUA_VERSION=5.4 [SPECS=spec/lock_spec.lua]
spec: lua lib cli $(WITNESS_MODULE)
	BUILD=$(BUILD) sh build-aux/spec.sh $(LUA_VERSION) $(SPECS)

luas:
	sh build-aux/newer_lua.sh --get
	for version in $(LUA_VERSIONS); do $(MAKE) --no-print-directory lua LUA_VERSION=$$version || exit 1; done
	REDLOCK_BUILD=$(BUILD) sh spec/all_luas.sh $(LUA_VERSIONS)

# ----------------------------------------------------------------------------------------- checks

.PHONY: check-layers check-links check-language check-messages messages check-manual manual check-pure check-exports check-header check-without-tls check-safety check-install check-rocks examples-test demo-test
check-pure: $(CORE_OBJECTS)
	@CC='$(CC)' NM='$(NM)' sh build-aux/check_pure.sh $(CORE_OBJECTS)
check-exports: lib lua
	@CC='$(CC)' NM='$(NM)' READELF='$(READELF)' AR='$(AR)' ABI='$(ABI)' sh build-aux/check_exports.sh csrc/include/redlock.h \
	  $(SHARED_LIBRARY) $(STATIC_LIBRARY) $(LUA_MODULE) $(LUA_LIBRARY) \
	  $(call with_tls,csrc/include/redlock_tls.h $(TLS_SHARED_LIBRARY) $(TLS_STATIC_LIBRARY) $(TLS_LUA_MODULE))
check-header:
	@for header in csrc/include/*.h; do CC='$(CC)' sh build-aux/check_header.sh $$header || exit 1; done
# A program that was compiled with an older header runs with today's library.
OLDER_PROGRAM = $(BUILD)/test/older_program
.PHONY: check-abi abidiff
$(OLDER_PROGRAM): csrc/test/abi/older_program.c csrc/test/abi/redlock_0.h $(BUILD)/lib/libredlock.so
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< -L$(BUILD)/lib -Wl,-rpath,$(abspath $(BUILD)/lib) -lredlock
check-abi: $(OLDER_PROGRAM)
	@$(OLDER_PROGRAM)
# make abidiff OLD=libredlock.so.0: differences in the ABI from an older build of the library.
ABIDIFF ?= abidiff
abidiff: $(SHARED_LIBRARY)
	@command -v $(ABIDIFF) >/dev/null || { echo 'abidiff: not installed; it is in abigail-tools of Debian, libabigail of Fedora'; exit 1; }
	@test -n '$(OLD)' || { echo 'abidiff: set OLD to the libredlock.so.$(ABI) of an older release, with debug information'; exit 1; }
	$(ABIDIFF) --headers-dir1 csrc/include --headers-dir2 csrc/include '$(OLD)' $(SHARED_LIBRARY)
# Only libredlock_tls needs OpenSSL: its headers and its libraries.
check-without-tls:
	MAKE='$(MAKE)' sh build-aux/test_without_tls.sh
check-safety:
	@$(CONTROLS_LUA) build-aux/check_safety.lua docs/safety.md
# Folders are layers.
check-layers: $(LIBRARY_OBJECTS) $(BINDING_OBJECTS)
	@$(CONTROLS_LUA) build-aux/check_layers.lua $(BUILD)
# Charts of docs/benchmarks.md.
.PHONY: charts check-charts
charts:
	@LUA='$(CONTROLS_LUA)' bench/plot
check-charts:
	@LUA='$(CONTROLS_LUA)' bench/plot check
# Links between pages.
check-links:
	@$(CONTROLS_LUA) build-aux/check_links.lua
# The docs as a web site in $(BUILD)/site. check-site also renders it, if there is a browser.
.PHONY: site check-site
site:
	@sh build-aux/setup.sh site
	@LUA='$(CONTROLS_LUA)' sh build-aux/build_site.sh $(BUILD)/site
check-site: site
	@$(CONTROLS_LUA) build-aux/check_site.lua $(BUILD)/site
	@sh build-aux/render_site.sh $(BUILD)/site
# How many sentences are hard to read: the ceilings only go down.
# docs/messages.md has all messages of the library, the Lua modules and the tool.
messages:
	@$(CONTROLS_LUA) build-aux/messages.lua
check-messages:
	@$(CONTROLS_LUA) build-aux/messages.lua check
# The manual page and the completions have the tables of the tool.
manual:
	@$(CONTROLS_LUA) build-aux/manual.lua
check-manual:
	@$(CONTROLS_LUA) build-aux/manual.lua check
# README.md has the versions with which the tests run.
.PHONY: versions check-versions
versions:
	@$(CONTROLS_LUA) build-aux/versions.lua
check-versions:
	@$(CONTROLS_LUA) build-aux/versions.lua check
check-language:
	@$(CONTROLS_LUA) build-aux/check_language.lua
check-install:
	MAKE='$(MAKE)' CC='$(CC)' bash build-aux/test_install.sh
check-rocks:
	bash build-aux/test_rocks.sh
.PHONY: examples-programs
examples-programs: examples lua $(BUILD)/examples/unfenced_sqlite $(BUILD)/examples/unfenced_redis
examples-test: examples-programs
	$(LUA_ENV) bash build-aux/test_examples.sh
demo-test:
	MAKE='$(MAKE)' bash build-aux/test_demo.sh

.PHONY: werror
# Compiles without warnings what no other job compiles.
werror:
	$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -Wshadow -Wvla -Werror \
	  $(HIREDIS_CFLAGS) $(LUA_CFLAGS) -fsyntax-only $(filter-out bench/tls_% bench/load% bench/node_cost%,$(wildcard bench/*.c))
	$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -Wshadow -Wvla -Werror -Icsrc/test/lib $(CORE_CPPFLAGS) -fsyntax-only $(wildcard bench/load*.c) bench/node_cost.c
	$(if $(filter 1,$(TLS)),$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -Wshadow -Wvla -Werror -DBENCH_TLS \
	  $(DRIVER_CPPFLAGS) $(TLS_CPPFLAGS) -fsyntax-only bench/limit.c bench/client.c $(wildcard bench/tls_*.c))

# Unit tests and a spec with another hiredis: make newer-hiredis
# HIREDIS_PREFIX=... (build-aux/debian_tree.sh).
.PHONY: newer-hiredis newer-hiredis-run
newer-hiredis:
	@test -n '$(HIREDIS_LIBDIR)' || { echo 'newer-hiredis: set HIREDIS_PREFIX'; exit 1; }
	+$(MAKE) --no-print-directory WERROR= newer-hiredis-run BUILD=$(BUILD)/newer-hiredis
newer-hiredis-run: unit-programs lua $(WITNESS_MODULE)
	@ldd $(LUA_MODULE) | grep -F '$(HIREDIS_LIBDIR)/libhiredis' && echo 'ok - it is the other hiredis'
	status=0; for program in $(TEST_PROGRAMS); do $$program || status=1; done; \
	BUILD=$(BUILD) sh build-aux/spec.sh $(LUA_VERSION) spec/redlock_spec.lua || status=1; exit $$status

# ------------------------------------------------------------------------------------- sanitizers

SANITIZE_CFLAGS = -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
ASAN_MAKE = $(MAKE) --no-print-directory WERROR= BUILD=$(BUILD)/asan CFLAGS='$(SANITIZE_CFLAGS) -fsanitize=address,undefined'
TSAN_MAKE = $(MAKE) --no-print-directory WERROR= BUILD=$(BUILD)/tsan CFLAGS='$(SANITIZE_CFLAGS) -fsanitize=thread'
# An interpreter with linked sanitizers, because preloaded ones would also be in each redis-server
# of a spec. Lua does not free all memory, so only the C tests check for leaks.
SANITIZED_LUA = $(BUILD)/$(LUA_VERSION)/sanitized-lua
$(SANITIZED_LUA): build-aux/sanitized_lua.c $(BUILD)/$(LUA_VERSION)/flags
	@mkdir -p $(@D)
	$(compile) $(LUA_CFLAGS) $(LDFLAGS) -rdynamic -o $@ $< $(LUA_LIBS) -lm -ldl

# All programs of a sanitizer, and the jobs that run them.
.PHONY: asan asan-programs sanitized-lua tsan tsan-programs thread-programs valgrind
sanitized-lua: lua unit-lua-programs $(SANITIZED_LUA) $(WITNESS_MODULE)
asan-programs:
	+$(ASAN_MAKE) lib cli unit-programs integration-programs model-programs
	+$(ASAN_MAKE) sanitized-lua LUA_VERSION=5.4
	+$(ASAN_MAKE) sanitized-lua LUA_VERSION=jit
tsan-programs:
	+$(TSAN_MAKE) thread-programs
asan tsan valgrind:
	@$(run_tests) --only $@/ check check-long

# 1,000 fail-overs of one server with a replica.
.PHONY: failover-1000
failover-1000:
	@export REDLOCK_JOB_SECONDS=20000; $(run_tests) --only long/failover check-long

# -------------------------------------------------------------------------- style, coverage, test

.PHONY: lint format coverage setup test fresh
C_FILES = $(wildcard csrc/*/*.[ch] csrc/*/*/*.[ch] csrc/*/*/*/*.[ch] build-aux/*.c examples/c/*.c bench/*.[ch])
TIDY_FILES = $(wildcard csrc/core/*.c csrc/core/*/*.c csrc/driver/*/*.c csrc/tls/*.c csrc/tls/lua/*.c csrc/binding/*.c csrc/cli/*.c examples/c/*.c)
# All steps. A job of `make check` runs one.
lint:
	@sh build-aux/setup.sh lint
	@$(MAKE) --no-print-directory lint-step STEP=all
.PHONY: lint-step
lint-step:
	@HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)' LUA_CFLAGS='$(LUA_CFLAGS)' OPENSSL_CFLAGS='$(OPENSSL_CFLAGS)' TIDY_FILES='$(TIDY_FILES)' \
	  C_FILES='$(C_FILES)' bash build-aux/lint.sh $(STEP)
format:
	clang-format -i $(C_FILES)

coverage:
	$(MAKE) --no-print-directory BUILD=$(BUILD)/coverage CFLAGS='-O0 -g --coverage' coverage-run
	gcovr --root . --filter 'csrc/core/' --exclude-unreachable-branches --print-summary $(BUILD)/coverage
.PHONY: coverage-run
coverage-run: unit-programs
	status=0; for program in $(TEST_PROGRAMS); do $$program || status=1; done; exit $$status

setup:
	@sh build-aux/setup.sh all

# The last line is "N passed, N failed". make test ONLY=rl_quorum, ONLY=spec/nginx, ONLY=changed: a
# part of it. exec: a signal that make hands on must reach the runner, not a shell above it.
run_tests = exec env MAKE='$(MAKE)' bash build-aux/run_tests.sh $(patsubst %,--only %,$(ONLY))
.PHONY: check check-long test-busy
test:
	@sh build-aux/setup.sh test
	@$(run_tests) test

# For developers: lint, sanitizers, controls, the model, chaos, other Luas and servers,
# packages.
check:
	@sh build-aux/setup.sh test && sh build-aux/setup.sh lint && sh build-aux/setup.sh check
	@export WERROR=1; $(run_tests) check

# Tests that rarely find more than the two above. They must pass before a release.
check-long:
	@sh build-aux/setup.sh test && sh build-aux/setup.sh site
	@export REDLOCK_JOB_SECONDS=20000; $(run_tests) check-long

# Other processors, C libraries, compilers and systems (build-aux/cross.sh): half an hour.
.PHONY: cross
cross:
	@sh build-aux/setup.sh test && sh build-aux/cross.sh --install
	@export REDLOCK_JOB_SECONDS=20000; $(run_tests) cross

# The proof that the tests are sound: `make test` beside two processes that never sleep and one that
# stops it regularly.
$(BUILD)/test/busy: build-aux/busy.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 $(WARNINGS) -o $@ $<
test-busy: $(BUILD)/test/busy
	@sh build-aux/setup.sh test
	@$(BUILD)/test/busy $(MAKE) --no-print-directory test

# The table of suites in docs/testing.md: make suites QUIET=ci.log BUSY=busy.log.
.PHONY: suites
suites:
	@$(CONTROLS_LUA) build-aux/suites.lua '$(or $(QUIET),-)' $(BUSY)

# `make test` in half a processor. Needs root and cgroups.
.PHONY: test-half
test-half:
	@sh build-aux/setup.sh test
	@sh build-aux/half_core.sh $(MAKE) --no-print-directory test

# `make demo` and `make test` on new systems. Needs root, debootstrap and an hour.
#
#     make fresh [FRESH_SUITES="bookworm trixie"] [FRESH_TESTS=spec/nginx]
FRESH_SUITES ?= bookworm trixie
fresh:
	@FRESH_TESTS='$(FRESH_TESTS)' bash build-aux/fresh.sh $(FRESH_SUITES)

-include $(wildcard $(BUILD)/test/*/*.d $(BUILD)/*/test/*.d)
