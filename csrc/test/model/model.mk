# The formal model and its replay in the core. Included by the Makefile; docs/model.md describes
# them.
#
#     make model            all configurations of the suite: states, and counter-examples
#     make model-replay     random walks and counter-examples, replayed in the core
#     make model-controls   the replay must detect wrong cores
#     make model-test       the three
#     make model-long       the lengthy configurations (minutes, up to MODEL_LONG_MEMORY MiB)
#     make model-run MODEL_ARGUMENTS='extends=1 extend_late=1'      one configuration of your own

MODEL_MEMORY ?= 2048
MODEL_LONG_MEMORY ?= 3072
MODEL_WALKS ?= 20000
MODEL_SEED ?= 1

MODEL = $(BUILD)/model/model
MODEL_REPLAY = $(BUILD)/model/model_replay
MODEL_OBJECTS = $(patsubst csrc/test/model/%.c,$(BUILD)/model/%.o,$(filter-out %_main.c,$(wildcard csrc/test/model/model_*.c)))
REPLAY_OBJECTS = $(patsubst csrc/test/model/%.c,$(BUILD)/model/%.o,$(wildcard csrc/test/model/replay_*.c))
$(BUILD)/model/%.o: csrc/test/model/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(compile) -Icsrc/test/model -Icsrc/test/lib $(CORE_CPPFLAGS) -c -o $@ $<
$(MODEL): $(MODEL_OBJECTS) $(BUILD)/model/model_main.o
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^
MODEL_REPLAY_OBJECTS = $(MODEL_OBJECTS) $(REPLAY_OBJECTS) $(BUILD)/test/lib/fake_store.o $(BUILD)/test/lib/fake_command.o $(BUILD)/test/lib/fake_guard.o \
  $(BUILD)/test/lib/fake_queue.o $(BUILD)/test/lib/wait_queue.o $(BUILD)/test/lib/resp.o $(CORE_OBJECTS)
$(MODEL_REPLAY): $(MODEL_REPLAY_OBJECTS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(HIREDIS_LIBS)

.PHONY: model model-replay model-controls model-test model-long model-run model-programs asan-model
model-programs: $(MODEL) $(MODEL_REPLAY)
model: $(MODEL)
	$(MODEL) --table --memory $(MODEL_MEMORY)
model-replay: $(MODEL_REPLAY)
	$(MODEL_REPLAY) --seed $(MODEL_SEED) --walks $(MODEL_WALKS)
model-controls: $(MODEL_REPLAY)
	@JOBS=$(SIM_PROCESSES) $(call run_controls,$(MODEL_REPLAY_OBJECTS)) replay $(CONTROLS)
model-test: model-programs
	+status=0; $(MAKE) --no-print-directory -j2 -k --output-sync=target model model-replay || status=1; \
	$(MAKE) --no-print-directory model-controls || status=1; exit $$status
asan-model: $(MODEL_REPLAY)
	$(MODEL_REPLAY) --seed $(MODEL_SEED) --walks 3000 --only-walks
model-long: $(MODEL)
	$(MODEL) --long --memory $(MODEL_LONG_MEMORY)
model-run: $(MODEL)
	$(MODEL) $(MODEL_ARGUMENTS)

-include $(MODEL_OBJECTS:.o=.d) $(BUILD)/model/model_main.d $(REPLAY_OBJECTS:.o=.d)
