# Fault tests on real servers, under load. Included by the Makefile; docs/testing.md describes them.
#
# SPDX-License-Identifier: MIT
#
#     make chaos [CHAOS_SECONDS=60] [SEED=n] [CHAOS_WORKERS=8]
#     make soak            an hour, at a gentle pace, with flat memory and descriptors
#     make chaos-controls  every fault of controls.lua is detected
#     make chaos-run       a short run, for every change

CHAOS_SECONDS ?= 60
CHAOS_TEST_SECONDS ?= 20
CHAOS_WORKERS ?= 8
CHAOS_PACE_MS ?= 10
CHAOS_CALM_SECONDS ?= 10
SOAK_CALM_SECONDS ?= 60
SOAK_SECONDS ?= 3600
SOAK_PACE_MS ?= 60
SOAK_WARM_SECONDS ?= 300
CHAOS = $(BUILD)/chaos
# One is drawn unless the caller gives it; the simulator's default does not count.
chaos_seed = $(if $(filter command environment,$(origin SEED)),--seed $(SEED))

CHAOS_SOURCES = $(wildcard csrc/test/chaos/*.c)
CHAOS_OBJECTS = $(patsubst csrc/test/chaos/%.c,$(CHAOS)/%.o,$(CHAOS_SOURCES))
chaos_objects = $(patsubst %,$(CHAOS)/%.o,$(1))
CHAOS_PROGRAMS = $(CHAOS)/chaos $(CHAOS)/chaos_worker $(CHAOS)/chaos_check $(CHAOS)/chaos_clockshim.so

$(CHAOS)/%.o: csrc/test/chaos/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) -Icsrc/test/chaos -Icsrc/test/sim -Icsrc/test/lib -c -o $@ $<
# The programs use the public API only.
$(CHAOS)/chaos: $(call chaos_objects,chaos chaos_main chaos_need chaos_fault chaos_control chaos_farm chaos_proxy) \
    $(BUILD)/test/lib/server.o $(BUILD)/test/lib/port.o $(BUILD)/test/lib/scratch.o $(STATIC_LIBRARY)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_REDLOCK)
$(CHAOS)/chaos_worker: $(call chaos_objects,chaos chaos_worker chaos_worker_loop chaos_worker_fork chaos_worker_ways) \
    $(BUILD)/test/lib/witness_clock.o $(STATIC_LIBRARY)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_REDLOCK)
$(CHAOS)/chaos_check: $(call chaos_objects,chaos_check chaos_read chaos_report)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^
# Without sanitizers: it is loaded into redis-servers.
$(CHAOS)/chaos_clockshim.so: csrc/test/chaos/chaos_clockshim.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -fPIC $(WARNINGS) -shared -o $@ $<

chaos_run = sh build-aux/chaos.sh $(CHAOS) $(1) --workers $(CHAOS_WORKERS) $(chaos_seed) \
  $(CHAOS_ARGUMENTS)
run_chaos_controls = CONTROLS_LUA='$(CONTROLS_LUA)' sh build-aux/chaos_controls.sh $(CHAOS) csrc/test/chaos/logs $(CONTROLS)

.PHONY: chaos chaos-programs chaos-controls chaos-run soak
chaos-programs: $(CHAOS_PROGRAMS)
chaos: chaos-programs
	$(call chaos_run,run) --seconds $(CHAOS_SECONDS) --pace $(CHAOS_PACE_MS) --calm $(CHAOS_CALM_SECONDS)
soak: chaos-programs
	$(call chaos_run,soak) --seconds $(SOAK_SECONDS) --pace $(SOAK_PACE_MS) --calm $(SOAK_CALM_SECONDS) --flat $(SOAK_WARM_SECONDS)
chaos-controls: chaos-programs
	$(run_chaos_controls)
chaos-run: chaos-programs
	$(call chaos_run,run) --seconds $(CHAOS_TEST_SECONDS) --pace $(CHAOS_PACE_MS) --calm $(CHAOS_CALM_SECONDS)

-include $(CHAOS_OBJECTS:.o=.d)
