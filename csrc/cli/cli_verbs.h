/*
 * redlock(1): the table of verbs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stddef.h>

#define CLI_OPERANDS_ANY ((size_t)-1)

/*
 * X(function, name, fewest and most operands, their names, groups of options, purpose). A new verb
 * is a row here and a file cli_NAME.c with a function cli_FUNCTION(); acquire, extend and release
 * are in cli_handover.c. Its lock is that of the operand RESOURCE or TEXT; without one, it has a
 * name of its own. A verb without CLIENT runs without nodes, loop and lock: they are NULL.
 */
#define CLI_VERBS(X)                                                                               \
  X(run, "run", 2, CLI_OPERANDS_ANY, " RESOURCE [--] COMMAND [ARGUMENT]...",                       \
    CLI_FOR_NODES | CLI_FOR_WAIT | CLI_FOR_KEEP | CLI_FOR_LABEL | CLI_FOR_FENCE |                  \
        CLI_FOR_PERMITS | CLI_FOR_LEAST | CLI_FOR_RUN | CLI_FOR_STOP | CLI_FOR_TALK,               \
    "takes the lock, runs the command, extends the lock meanwhile, releases it")                   \
  X(lead, "lead", 2, CLI_OPERANDS_ANY, " RESOURCE [--] COMMAND [ARGUMENT]...",                     \
    CLI_FOR_NODES | CLI_FOR_WAIT | CLI_FOR_KEEP | CLI_FOR_LABEL | CLI_FOR_STOP | CLI_FOR_TALK,     \
    "stands by until it leads, runs the command while it leads, and stops it afterwards")          \
  X(acquire, "acquire", 1, 1, " RESOURCE",                                                         \
    CLI_FOR_NODES | CLI_FOR_WAIT | CLI_FOR_LABEL | CLI_FOR_FENCE | CLI_FOR_PERMITS |               \
        CLI_FOR_LEAST | CLI_FOR_REPORT,                                                            \
    "takes a lock, and prints a text of it for extend and release")                                \
  X(extend, "extend", 1, 1, " TEXT", CLI_FOR_NODES | CLI_FOR_LABEL | CLI_FOR_REPORT,               \
    "extends the lock of a text, and prints its new text; - reads the text from the input")        \
  X(release, "release", 1, 1, " TEXT", CLI_FOR_NODES | CLI_FOR_REPORT,                             \
    "releases the lock of a text; - reads the text from the input")                                \
  X(hold, "hold", 1, 1, " RESOURCE",                                                               \
    CLI_FOR_NODES | CLI_FOR_WAIT | CLI_FOR_KEEP | CLI_FOR_LABEL | CLI_FOR_FENCE |                  \
        CLI_FOR_PERMITS | CLI_FOR_LEAST | CLI_FOR_HOLD | CLI_FOR_REPORT,                           \
    "prints a line when it has the lock, and holds it until its input ends or a signal arrives")   \
  X(inspect, "inspect", 1, 1, " RESOURCE", CLI_FOR_NODES | CLI_FOR_PERMITS | CLI_FOR_REPORT,       \
    "shows the holder of a lock, and its key on each node")                                        \
  X(force_release, "force-release", 2, 2, " RESOURCE TOKEN", CLI_FOR_NODES | CLI_FOR_REPORT,       \
    "deletes the lock of a holder that is known to be dead; inspect shows its token")              \
  X(watch, "watch", 1, 1, " RESOURCE", CLI_FOR_NODES | CLI_FOR_WATCH | CLI_FOR_REPORT,             \
    "prints a line for each change of a lock, until a signal arrives")                             \
  X(nodes, "nodes", 0, 0, "", CLI_FOR_NODES | CLI_FOR_REPORT,                                      \
    "takes locks of its own names, and shows the answer of each node")                             \
  X(doctor, "doctor", 0, 1, " [RESOURCE]", CLI_FOR_NODES | CLI_FOR_KEYS | CLI_FOR_REPORT,          \
    "examines the nodes without changing them, and reports problems")                              \
  X(bootstrap, "bootstrap", 0, 0, "", CLI_FOR_NODES | CLI_FOR_REPORT,                              \
    "with --guard: lets new nodes vote; only safe while no lock is held")                          \
  X(bench, "bench", 0, 0, "", CLI_FOR_NODES | CLI_FOR_BENCH | CLI_FOR_REPORT,                      \
    "measures how fast the nodes grant and release a lock of its own name")                        \
  X(help, "help", 0, 1, " [VERB]", 0, "shows the help of the verb, or of all")

#endif
