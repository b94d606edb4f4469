# Fuzzing with libFuzzer, which is clang's. Included by the Makefile; `make test` only plays the
# corpora.
#
#     make fuzz [FUZZ_SECONDS=3600] [FUZZ_TARGETS="core api address options tls"]
#
# Every target runs for FUZZ_SECONDS, FUZZ_PROCESSES of them at once.

FUZZ_SECONDS ?= 3600
FUZZ_TARGETS ?= core api address options $(call with_tls,tls)
FUZZ_PROCESSES ?= 2
FUZZ_CFLAGS = -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=fuzzer-no-link,address,undefined
FUZZ_MAKE = $(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=clang CFLAGS='$(FUZZ_CFLAGS)'
FUZZ_PROGRAMS = $(patsubst %,$(BUILD)/test/fuzz/fuzz_%,$(FUZZ_TARGETS))

$(BUILD)/test/fuzz/fuzz_%: $(BUILD)/test/fuzz/fuzz_%.o $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $< $(HELPER_LIBRARY) $(INTERNAL_LIBRARY) $(LDLIBS_REDLOCK)
$(BUILD)/test/fuzz/fuzz_tls.o: csrc/test/fuzz/fuzz_tls.c $(BUILD)/flags $(BUILD)/tls-flags
	@mkdir -p $(@D)
	$(compile_tls_test)
$(BUILD)/test/fuzz/fuzz_tls: $(BUILD)/test/fuzz/fuzz_tls.o $(TLS_LIBRARIES) $(HELPER_LIBRARY) $(INTERNAL_LIBRARY)
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $< $(TLS_LIBRARIES) $(HELPER_LIBRARY) $(INTERNAL_LIBRARY) \
	  $(CMOCKA_LIBS) $(OPENSSL_LIBS) $(LDLIBS_REDLOCK)

.PHONY: fuzz fuzz-programs fuzz-run $(patsubst %,fuzz-run-%,$(FUZZ_TARGETS))
fuzz:
	+$(FUZZ_MAKE) fuzz-programs
	+$(FUZZ_MAKE) -j$(FUZZ_PROCESSES) -k fuzz-run
fuzz-programs: $(FUZZ_PROGRAMS)
fuzz-run: $(patsubst %,fuzz-run-%,$(FUZZ_TARGETS))
$(patsubst %,fuzz-run-%,$(FUZZ_TARGETS)): fuzz-run-%:
	@sh build-aux/fuzz.sh $(BUILD)/test/fuzz/fuzz_$* csrc/test/fuzz/corpus/$*.hex $(BUILD)/$* $(FUZZ_SECONDS)
