# The integration tests in C: each csrc/test/integration/*_test.c is a cmocka program that starts
# redis-servers. They share csrc/test/lib. Included by the Makefile.

INTEGRATION_SOURCES = $(call without_tls,$(wildcard csrc/test/integration/*_test.c))
INTEGRATION_PROGRAMS = $(patsubst csrc/test/%.c,$(BUILD)/test/%,$(INTEGRATION_SOURCES)) \
  $(call with_tls,$(patsubst %,$(BUILD)/test/integration/over_tls_%_test,$(INTEGRATION_OVER_TLS)))
# These run once more with TLS, because it changes descriptors, buffered bytes, threads and the end
# of a client. tls_hostile_test and tls_server_test have hostile peers and forks.
INTEGRATION_OVER_TLS = nodes loop linger burst client_thread
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

.PHONY: integration integration-programs
integration-programs: $(INTEGRATION_PROGRAMS)
# All programs with threads, for tsan-programs.
thread-programs: lib cli $(TEST_THREAD_PROGRAMS) $(INTEGRATION_THREAD_PROGRAMS)
integration:
	@$(run_tests) --only integration/ test
# The tests that depend on the server, with servers of several suites of Debian.
.PHONY: other-servers
other-servers:
	@$(run_tests) --only servers/ check

-include $(wildcard $(BUILD)/test/integration/*.d)
