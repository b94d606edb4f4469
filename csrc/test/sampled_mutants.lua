-- Mutants of a random sample that the suites of `make test` kill. build-aux/suites.lua writes the
-- last column of the table in docs/testing.md from it.
--
-- The sample: all mutants (build-aux/mutate.lua, without statements) of the .c and .lua files of
-- csrc/core, csrc/driver, csrc/binding, csrc/cli and lua at commit 2fca7282, files sorted, shuffled
-- with seed 22: the first 59 that compile to other code.
--
-- The suites ran one after another until two had killed the mutant. So |killed| is a lower bound,
-- and |alone| counts the mutants that no other suite kills. In each suite only tests of the same
-- subject ran: the unit tests with the name of the file, of its folder, and of the whole core or
-- client; 300 simulated runs; the specs and programs of the folder. Two mutants of the core that
-- survived them met all unit tests of the library and 2,000 simulated runs, and were killed. Tests
-- of TLS, checks, examples and demo were left out.
--
-- SPDX-License-Identifier: MIT

return {
  mutants = 59,
  killed = { ["unit"] = 28, ["unit@5.4"] = 0, ["unit@jit"] = 0, ["sim"] = 17,
    ["spec@5.1"] = 6, ["spec@5.4"] = 17, ["integration"] = 12, ["spec@jit"] = 6 },
  alone = { ["unit"] = 8, ["unit@5.4"] = 0, ["unit@jit"] = 0, ["sim"] = 1,
    ["spec@5.1"] = 0, ["spec@5.4"] = 0, ["integration"] = 10, ["spec@jit"] = 1 },
  survived = 6, -- Tests written since then kill five of them; equivalent.lua has the sixth.
}
