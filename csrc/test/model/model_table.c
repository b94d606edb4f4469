/*
 * The configurations, and what is expected of each.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

const model_entry model_table[] = {
    /* The protocol, with its assumptions kept. */
    {"base", "one attempt each", MODEL_ROLE_PROTOCOL, false, 0, "", ""},
    {"base-n1", "a single node", MODEL_ROLE_PROTOCOL, false, 0, "",
     "nodes=1 attempts0=2 attempts1=2"},
    {"base-n2", "two nodes", MODEL_ROLE_PROTOCOL, false, 0, "", "nodes=2 attempts0=2"},
    {"base-n4", "four nodes", MODEL_ROLE_PROTOCOL, false, 0, "", "nodes=4"},
    {"base-n5", "five nodes", MODEL_ROLE_PROTOCOL, false, 0, "", "nodes=5 ttl=2"},
    {"retries", "two attempts against one", MODEL_ROLE_PROTOCOL, false, 0, "", "attempts0=2"},
    {"retries-both", "two attempts each", MODEL_ROLE_PROTOCOL, true, 0, "",
     "attempts0=2 attempts1=2 ttl=2"},
    {"extend", "each lease extended", MODEL_ROLE_PROTOCOL, false, 0, "", "extends=1"},
    {"extend-twice", "each lease extended twice", MODEL_ROLE_PROTOCOL, false, 0, "",
     "ttl=2 extends=2"},
    {"extend-n4", "four nodes, each lease extended", MODEL_ROLE_PROTOCOL, false, 0, "",
     "nodes=4 ttl=2 extends=1"},
    {"extend-n5", "five nodes, each lease extended", MODEL_ROLE_PROTOCOL, true, 0, "",
     "nodes=5 ttl=2 extends=1"},
    {"restart", "a restart without keys, after which the node grants nothing for a ttl",
     MODEL_ROLE_PROTOCOL, false, 0, "", "crashes=1 quarantine=3"},
    {"restart-twice", "two such restarts", MODEL_ROLE_PROTOCOL, false, 0, "",
     "crashes=2 quarantine=3"},
    {"restart-extend", "such a restart, leases extended and healed", MODEL_ROLE_PROTOCOL, false, 0,
     "", "crashes=1 quarantine=3 extends=1"},
    {"restart-proxy", "such a restart behind a proxy", MODEL_ROLE_PROTOCOL, false, 0, "",
     "crashes=1 quarantine=3 proxy=1"},
    {"restart-n5", "five nodes, such a restart", MODEL_ROLE_PROTOCOL, false, 0, "",
     "nodes=5 ttl=2 crashes=1 quarantine=2"},
    {"early-drift", "keys may expire a tick early, and leases end a tick before them",
     MODEL_ROLE_PROTOCOL, false, 0, "", "early=1 drift=1 extends=1"},
    {"freeze-drift", "a client's clock misses a tick, and leases end a tick before their keys",
     MODEL_ROLE_PROTOCOL, false, 0, "", "freezes=1 drift=1 extends=1"},
    {"everything", "restart, early expiry, extend and heal, with a drift margin",
     MODEL_ROLE_PROTOCOL, false, 0, "", "crashes=1 quarantine=3 early=1 drift=1 extends=1"},
    {"margin-3-of-3", "three of three votes, two keys lost", MODEL_ROLE_PROTOCOL, false, 0, "",
     "quorum0=3 quorum1=3 losses=2"},
    {"margin-n4", "four nodes, one key lost", MODEL_ROLE_PROTOCOL, false, 0, "",
     "nodes=4 ttl=2 losses=1"},
    {"margin-4-of-5", "four of five votes, two keys lost", MODEL_ROLE_PROTOCOL, false, 0, "",
     "nodes=5 ttl=2 quorum0=4 quorum1=4 losses=2"},
    {"margin-5-of-5", "five of five votes against three, two keys lost", MODEL_ROLE_PROTOCOL, false,
     0, "", "nodes=5 ttl=2 quorum0=5 quorum1=3 losses=2"},
    {"fifo", "one connection that lasts: no orphan keys either", MODEL_ROLE_PROTOCOL, false, 0, "",
     "order=2 properties=31 extends=1"},
    {"fifo-retries", "the same with two attempts against one", MODEL_ROLE_PROTOCOL, false, 0, "",
     "order=2 properties=31 attempts0=2"},
    {"recreate-in-time", "an extend that sets missing keys at once, but keeps the old deadline",
     MODEL_ROLE_PROTOCOL, false, 0, "", "extend_recreate=1 extends=1"},
    {"token-reused-fifo", "one token for all attempts, on one connection that lasts",
     MODEL_ROLE_PROTOCOL, false, 0, "", "token_reused=1 attempts0=2 order=2 properties=1"},
    {"handed", "a lease is detached, and two may attach it, or take the lock", MODEL_ROLE_PROTOCOL,
     false, 0, "", "hands=1 attempts0=2 ttl=2 order=3"},
    {"handed-extend", "the same from one to the other, and leases are extended before and after",
     MODEL_ROLE_PROTOCOL, false, 0, "", "hands=1 extends=1 ttl=2 order=3"},
    {"late-set", "a SET that is executed after its release: an orphan, and no more than that",
     MODEL_ROLE_PROTOCOL, false, MODEL_ORPHAN, "", "properties=16"},

    /* Assumptions that do not hold (docs/safety.md). */
    {"list-differs", "client B knows only one of the nodes", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A1, A10", "list=1"},
    {"double-grant", "a node grants what somebody else has", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A2", "doubles=1"},
    {"restart-at-once", "a restart without keys, and no delay", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A3", "crashes=1"},
    {"restart-short", "a delay that is one tick short", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A3", "crashes=1 quarantine=2"},
    {"restart-proxy-at-once", "a restart behind a proxy, and no delay", MODEL_ROLE_ASSUMPTION,
     false, MODEL_EXCLUSION, "A3", "crashes=1 proxy=1"},
    {"key-lost", "a node loses a key of a bare majority", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A3", "losses=1"},
    {"key-lost-n5", "the same with five nodes", MODEL_ROLE_ASSUMPTION, false, MODEL_EXCLUSION, "A3",
     "nodes=5 ttl=2 losses=1"},
    {"keys-lost-3-of-3", "three of three votes, three keys lost", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A3", "quorum0=3 quorum1=3 losses=3"},
    {"keys-lost-4-of-5", "four of five votes against three, two keys lost", MODEL_ROLE_ASSUMPTION,
     false, MODEL_EXCLUSION, "A3", "nodes=5 ttl=2 quorum0=4 quorum1=3 losses=2"},
    {"early", "keys may expire a tick early, and there is no margin", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A3, A4", "early=1"},
    {"frozen", "a client's clock misses a tick, and there is no margin", MODEL_ROLE_ASSUMPTION,
     false, MODEL_EXCLUSION, "A4", "freezes=1"},
    {"token-repeated", "one token for all attempts: a late release deletes the key of the next",
     MODEL_ROLE_ASSUMPTION, false, MODEL_EXCLUSION, "A5",
     "token_reused=1 attempts0=2 properties=1"},
    {"token-repeated-pairs", "the same, with requests of one attempt in order",
     MODEL_ROLE_ASSUMPTION, false, MODEL_EXCLUSION, "A5",
     "token_reused=1 attempts0=2 order=1 properties=1"},
    {"holder-too-late", "a holder goes on after its deadline", MODEL_ROLE_ASSUMPTION, false,
     MODEL_EXCLUSION, "A9", "deadline_ignored=1"},

    /* Rules of the protocol that are left out. */
    {"no-elapsed", "elapsed time is not subtracted", MODEL_ROLE_RULE, false, MODEL_EXCLUSION, "A7",
     "no_elapsed=1"},
    {"no-recheck", "the deadline is not looked at after the votes", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A7", "no_recheck=1"},
    {"quorum-off-by-one", "one vote of three is enough", MODEL_ROLE_RULE, false, MODEL_EXCLUSION,
     "A1", "quorum0=1 quorum1=1"},
    {"quorum-off-by-one-n4", "two votes of four are enough", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A1", "nodes=4 quorum0=2 quorum1=2"},
    {"set-overwrites", "SET without NX", MODEL_ROLE_RULE, false, MODEL_EXCLUSION, "A2",
     "set_overwrites=1"},
    {"extend-any", "one confirmation is enough for an extend", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A8", "extend_any=1 extends=1"},
    {"extend-foreign", "\"not yours\" counts for an extend", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A6", "extend_foreign=1 extends=1"},
    {"extend-old-reply", "a late reply of one extend counts for the next", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A6", "round_unchecked=1 extends=2 ttl=2"},
    {"extend-late", "an extend that succeeds after the old deadline", MODEL_ROLE_RULE, false,
     MODEL_REVIVAL, "A8", "extend_late=1 extends=1"},
    {"extend-late-gap", "the same: somebody else held in between", MODEL_ROLE_RULE, false,
     MODEL_CONTINUITY, "A8", "extend_late=1 extends=1 properties=4"},
    {"extend-late-fifo", "the same, on one connection that lasts", MODEL_ROLE_RULE, false,
     MODEL_CONTINUITY, "A8", "extend_late=1 extends=1 order=2 properties=4"},
    {"extend-recreate", "an extend that sets missing keys, and succeeds after the old deadline",
     MODEL_ROLE_RULE, false, MODEL_CONTINUITY, "A8",
     "extend_recreate=1 extend_late=1 extends=1 properties=4"},
    {"attach-keeps", "what is attached keeps the handed token", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A5", "attach_keeps=1 hands=1 attempts0=2 ttl=2 order=3 properties=1"},
    {"attach-creates", "a key that is missing is attached, too", MODEL_ROLE_RULE, false,
     MODEL_CONTINUITY, "", "attach_creates=1 hands=1 attempts0=2 ttl=2 order=3"},
    {"attach-all", "a node that may yet execute a SET of the handed token has a vote",
     MODEL_ROLE_RULE, false, MODEL_CONTINUITY, "",
     "attach_all=1 hands=1 attempts0=2 ttl=2 order=3"},
    {"release-blind", "a release deletes whatever is there", MODEL_ROLE_RULE, false, MODEL_TOUCH,
     "A2", "release_blind=1"},
    {"release-blind-holders", "the same: it deletes the key of a holder", MODEL_ROLE_RULE, false,
     MODEL_EXCLUSION, "A2", "release_blind=1 attempts0=2 properties=1"},
    {"release-to-voters", "a release goes only where a vote was counted", MODEL_ROLE_RULE, false,
     MODEL_ORPHAN, "", "release_to_voters=1 order=2 properties=16"},
};

const unsigned model_table_size = sizeof model_table / sizeof model_table[0];

model_config model_entry_config(const model_entry *entry) {
  model_config config = model_config_default();
  char words[256];
  char *rest = NULL;
  (void)snprintf(words, sizeof words, "%s", entry->settings);
  for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    if (!model_config_set(&config, word)) {
      (void)fprintf(stderr, "model: %s: %s is wrong\n", entry->name, word);
      exit(2); /* Without it another configuration would be searched. */
    }
  }
  return config;
}
