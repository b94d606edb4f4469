# The integration tests in C: every csrc/test/integration/*_test.c is a cmocka program that starts its
# own redis-servers; csrc/test/lib has what it may use. Included by the Makefile.

INTEGRATION_SOURCES = $(call without_tls,$(wildcard csrc/test/integration/*_test.c))
INTEGRATION_PROGRAMS = $(patsubst csrc/test/%.c,$(BUILD)/test/%,$(INTEGRATION_SOURCES)) \
  $(call with_tls,$(patsubst %,$(BUILD)/test/integration/over_tls_%_test,$(INTEGRATION_OVER_TLS)))
# These run once more, with all clients speaking TLS.
INTEGRATION_OVER_TLS = nodes loop process leaving contest silence hostile burst client_thread keeper_thread
INTEGRATION_THREAD_PROGRAMS = $(filter %_thread_test,$(INTEGRATION_PROGRAMS))

$(BUILD)/test/integration/%_test: csrc/test/integration/%_test.c $(BUILD)/test/integration/%_test.o \
    $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_test) $(INTERNAL_LIBRARY) $(CMOCKA_LIBS) $(LDLIBS_REDLOCK)

$(BUILD)/test/integration/tls_%.o: csrc/test/integration/tls_%.c $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile_tls_test)
$(BUILD)/test/integration/tls_%_test: csrc/test/integration/tls_%_test.c $(BUILD)/test/integration/tls_%_test.o $(TLS_LIBRARIES) \
    $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_tls_test)
$(BUILD)/test/integration/over_tls_%_test: csrc/test/integration/%_test.c $(BUILD)/test/integration/%_test.o \
    $(BUILD)/test/tls/over_tls.o $(TLS_LIBRARIES) $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(link_tls_test)

.PHONY: integration integration-programs asan-integration tsan-integration tsan-integration-run
integration-programs: $(INTEGRATION_PROGRAMS)
integration: integration-programs lib cli
	sh build-aux/run_unit.sh $(INTEGRATION_PROGRAMS)
# Leases that keep themselves: what is to be noticed, 100 times of 100.
.PHONY: renew-100
renew-100: $(BUILD)/test/integration/renew_test
	RENEW_TIMES=100 RUN_UNIT_TIMEOUT=900 sh build-aux/run_unit.sh $<
# A node forgets what it has granted and a rival comes at once, 1,000 times each way.
.PHONY: guard-1000
guard-1000: $(BUILD)/test/integration/guard_test
	GUARD_ROUNDS=1000 RUN_UNIT_TIMEOUT=3000 sh build-aux/run_unit.sh $<
# Clients, leases and their threads come and go; nothing is left. Under each tool that counts.
.PHONY: cycles-1000 cycles
CYCLES = $(BUILD)/test/integration/keeper_thread_test
cycles: $(CYCLES)
	KEEPER_TEST='a_thousand_cycles*' RUN_UNIT_TIMEOUT=500 sh build-aux/run_unit.sh $<
cycles-1000: $(CYCLES)
	+ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 $(ASAN_MAKE) cycles
	+RUN_UNIT_WRAPPER='$(NO_ASLR)' $(TSAN_MAKE) cycles
	+RUN_UNIT_WRAPPER='$(VALGRIND) $(VALGRIND_FLAGS) --freelist-vol=100000' $(MAKE) --no-print-directory cycles
# Ten minutes of everything that threads may do with a client, under the thread sanitizer.
.PHONY: tsan-stress
tsan-stress:
	+STRESS_SECONDS=600 RUN_UNIT_TIMEOUT=900 TSAN_OPTIONS='die_after_fork=0' $(TSAN_MAKE) tsan-stress-run
.PHONY: tsan-stress-run
tsan-stress-run: $(BUILD)/test/integration/stress_thread_test
	RUN_UNIT_WRAPPER='$(NO_ASLR)' sh build-aux/run_unit.sh $<
asan-integration:
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 $(ASAN_MAKE) integration
tsan-integration:
	$(TSAN_MAKE) tsan-integration-run
# Children of programs with threads start threads of their own.
tsan-integration-run: $(INTEGRATION_THREAD_PROGRAMS)
	TSAN_OPTIONS='die_after_fork=0' RUN_UNIT_WRAPPER='$(NO_ASLR)' sh build-aux/run_unit.sh $(INTEGRATION_THREAD_PROGRAMS)
