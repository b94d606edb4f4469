# Interoperability and conformance: docs/conformance.md. Included by the Makefile.

CONFORMANCE_LUA = lua5.4
CONFORMANCE_ENV = LUA_PATH='./?.lua;lua/?.lua;lua/?/init.lua;;' LUA_CPATH='$(BUILD)/5.4/?.so;;' BUILD=$(BUILD)
CLOCKSHIM = $(CHAOS)/chaos_clockshim.so

.PHONY: conformance-programs conformance-quick conformance interop check-conformance-page conformance-page
conformance-programs: $(CLOCKSHIM)
	+@$(MAKE) --no-print-directory lua LUA_VERSION=5.4

# Our adapters and the wrong ones: needs no network.
conformance-quick: conformance-programs
	@$(CONFORMANCE_ENV) $(CONFORMANCE_LUA) conformance/run.lua quick

# All libraries. Writes the tables of the pages anew.
conformance: conformance-programs
	@sh conformance/install.sh
	@$(CONFORMANCE_ENV) CONFORMANCE_SECONDS=$${CONFORMANCE_SECONDS:-10} \
	  $(CONFORMANCE_LUA) conformance/run.lua all conformance/results.tsv
	@$(MAKE) --no-print-directory conformance-page
interop: conformance-programs
	@sh conformance/install.sh
	@$(CONFORMANCE_ENV) CONFORMANCE_SECONDS=$${CONFORMANCE_SECONDS:-30} \
	  $(CONFORMANCE_LUA) conformance/run.lua interop conformance/interop.tsv
	@$(MAKE) --no-print-directory conformance-page

# The tables in README.md and docs are those of the results.
conformance-page:
	@$(CONFORMANCE_ENV) $(CONFORMANCE_LUA) conformance/report.lua
check-conformance-page:
	@$(CONFORMANCE_ENV) $(CONFORMANCE_LUA) conformance/report.lua check
