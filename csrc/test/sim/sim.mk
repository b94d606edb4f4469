# The simulator. Included by the Makefile; docs/testing.md describes its use.
#
#     make sim SEED=n [RUNS=n] [TIMELINE=1] [SVG=file] [BREAK=assumption] [ONLY=checker]
#     make timeline      docs/timeline.svg: a stretch of one run
#     make sim-test      for every change: SIM_RUNS runs, guard, labels, equal traces of all builds
#     make sim-guard     a guard prevents second holders
#     make sim-long      SIM_LONG_RUNS runs from seed SIM_FIRST, by a program that is made to be fast
#     make sim-fast      that program, $(BUILD)/sim-fast/sim
#     make controls      every fault of controls.lua is detected [CONTROLS='name ...']
#     make check-controls    each change of the controls still has its place: a second
#     make mutants       tests detect every change of a single operator (hours) [MUTANTS='csrc/driver rl_lock.c']

SEED ?= 1
RUNS ?= 1
SIM_PROCESSES ?= 2
SIM_RUNS ?= 10000
SIM_GUARD_RUNS ?= 1000
SIM_MIX_RUNS ?= 100
SIM_LONG_RUNS ?= 5000000
SIM_FIRST ?= 1000001
# Beside the ordinary build: compilers, with and without optimisation.
SIM_BUILDS ?= gcc:-O0 clang:-O2

SIM = $(BUILD)/sim/sim
SIM_OBJECTS = $(patsubst csrc/test/sim/%.c,$(BUILD)/sim/%.o,$(wildcard csrc/test/sim/*.c)) $(BUILD)/test/lib/resp.o $(BUILD)/test/lib/wait_queue.o
$(BUILD)/sim/%.o: csrc/test/sim/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) -Icsrc/test/sim -Icsrc/test/lib $(CORE_CPPFLAGS) -c -o $@ $<
$(SIM): $(SIM_OBJECTS) $(CORE_OBJECTS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(HIREDIS_LIBS)

.PHONY: sim timeline sim-programs sim-fast sim-test sim-guard sim-repeat sim-long controls check-controls mutants
sim-programs: $(SIM)
sim: $(SIM)
	$(SIM) --seed $(SEED) --runs $(RUNS) $(if $(TIMELINE),--timeline) $(if $(SVG),--svg '$(SVG)') \
	  $(if $(BREAK),--break $(BREAK)) $(if $(ONLY),--only $(ONLY)) $(SIM_ARGUMENTS)

# In this stretch locks pass from client to client while a node is down.
timeline: $(SIM)
	$(SIM) --seed 182 --svg docs/timeline.svg --from 4340 --until 4940

sim-test: $(SIM)
	sh build-aux/sim_test.sh $(SIM) $(SIM_RUNS) $(SIM_PROCESSES) 1 5
	$(MAKE) --no-print-directory sim-guard
	$(SIM) --labels --runs $(SIM_GUARD_RUNS)
	$(SIM) --permits --runs $(SIM_GUARD_RUNS)
	$(SIM) --scriptless --nodes 1 --runs $(SIM_GUARD_RUNS)
	$(SIM) --mix --runs $(SIM_MIX_RUNS)
	$(MAKE) --no-print-directory sim-repeat

sim-repeat: $(SIM)
	HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)' HIREDIS_LIBS='$(HIREDIS_LIBS)' sh build-aux/sim_repeat.sh $(SIM) 300 1 $(SIM_BUILDS)

sim-guard: $(SIM)
	sh build-aux/sim_guard.sh $(SIM) $(SIM_GUARD_RUNS)

# All of it at once and by a profile, which takes half a minute: by as much it must be worth it.
SIM_FAST = $(BUILD)/sim-fast/sim
$(SIM_FAST): $(SIM) build-aux/sim_fast.sh
	CC='$(CC)' HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)' HIREDIS_LIBS='$(HIREDIS_LIBS)' \
	  sh build-aux/sim_fast.sh $(@D) $(SIM)
sim-fast: $(SIM_FAST)

sim-long: $(SIM_FAST)
	sh build-aux/sim_test.sh $(SIM_FAST) $(SIM_LONG_RUNS) $(SIM_PROCESSES) $(SIM_FIRST) 1000

CONTROLS_LUA ?= $(firstword $(shell command -v lua5.4 lua5.3 lua5.2 lua5.1 luajit lua))
# The compiler of a changed core: without warnings, which a change may cause, and without debugging.
CONTROLS_COMPILE = $(compile) -O1 -g0 -w -Icsrc/test/sim -Icsrc/test/model -Icsrc/test/lib $(CORE_CPPFLAGS)
run_controls = BUILD='$(BUILD)' COMPILE='$(CONTROLS_COMPILE)' OBJECTS='$(1)' LIBS='$(HIREDIS_LIBS)' \
  $(CONTROLS_LUA) build-aux/run_controls.lua
controls: $(SIM)
	@JOBS=$(SIM_PROCESSES) SEEDS=$(SIM_RUNS) $(call run_controls,$(SIM_OBJECTS) $(CORE_OBJECTS)) simulator $(CONTROLS)
check-controls:
	@$(CONTROLS_LUA) build-aux/run_controls.lua check
	@$(CONTROLS_LUA) build-aux/mutants.lua check
mutants:
	CC='$(CC)' HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)' HIREDIS_LIBS='$(HIREDIS_LIBS)' \
	  $(CONTROLS_LUA) build-aux/mutants.lua $(MUTANTS)

-include $(SIM_OBJECTS:.o=.d)
