/*
 * The commands of the core and the replies of the nodes, recorded for the checkers. This is a
 * second account of the outstanding replies, kept without the core's help.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "resp.h"
#include "sim.h"
#include "sim_calls.h"
#include "sim_hold.h"
#include "sim_native.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "sim_watch.h"

uint32_t sim_tap_new_token(sim *s, unsigned client, unsigned lock) {
  s->tokens = grow(s->tokens, sizeof *s->tokens, s->token_count, &s->token_capacity);
  sim_token *token = &s->tokens[s->token_count];
  memset(token, 0, sizeof *token);
  token->client = (uint8_t)client;
  token->lock = (uint8_t)lock;
  token->resource = (uint8_t)s->clients[client].locks[lock].resource;
  token->both = s->clients[client].locks[lock].both;
  token->live = true;
  return (uint32_t)s->token_count++;
}

void sim_tap_over(sim *s, uint32_t token) {
  sim_token_list *list = &s->over[s->tokens[token].client];
  bool joins = s->tokens[token].live && !s->tokens[token].over;
  s->tokens[token].over = true;
  if (!joins) {
    return;
  }
  list->tokens = grow(list->tokens, sizeof *list->tokens, list->count, &list->capacity);
  size_t at = list->count++;
  for (; at > 0 && list->tokens[at - 1] > token; at--) {
    list->tokens[at] = list->tokens[at - 1];
  }
  list->tokens[at] = token;
}

void sim_tap_abandon(sim *s, uint32_t token) {
  sim_token_list *list = &s->over[s->tokens[token].client];
  size_t kept = 0;
  s->tokens[token].abandoned = true;
  s->tokens[token].live = false;
  for (size_t i = 0; i < list->count; i++) {
    if (list->tokens[i] != token) {
      list->tokens[kept++] = list->tokens[i];
    }
  }
  list->count = kept;
}

/* Value of a digit of a token, and 1; 0: no digit. */
static const unsigned char sim_tap_digits[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

/* Returns true for the bytes of a token, with a label or without. */
bool sim_tap_is_token(const char *text, size_t length) {
  return length == REDLOCK_TOKEN_LENGTH ||
         (length > REDLOCK_TOKEN_LENGTH + 1 && length <= RL_LABELLED_MAX + RL_LABEL_PERMITS_MAX &&
          (text[REDLOCK_TOKEN_LENGTH] == ':' || text[REDLOCK_TOKEN_LENGTH] == '/'));
}

/* The first 32 bits of a token are its number: the simulator brings the entropy. */
uint32_t sim_tap_token(const char *text, size_t length) {
  uint32_t number = 0;
  if (!sim_tap_is_token(text, length)) {
    return SIM_NO_TOKEN;
  }
  for (unsigned i = 0; i < 8; i++) {
    uint32_t value = sim_tap_digits[(unsigned char)text[i]];
    if (value == 0) {
      return SIM_NO_TOKEN;
    }
    number = number << 4 | (value - 1);
  }
  return number;
}

static void sim_tap_push(sim_socket *socket, const sim_sent *sent) {
  if (socket->sent_count == socket->sent_capacity) {
    size_t capacity = socket->sent_capacity == 0 ? 64 : socket->sent_capacity * 2;
    sim_sent *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL) {
      abort();
    }
    for (size_t i = 0; i < socket->sent_count; i++) {
      ring[i] = *sim_tap_sent(socket, i);
    }
    free(socket->sent);
    socket->sent = ring;
    socket->sent_head = 0;
    socket->sent_capacity = capacity;
  }
  *sim_tap_sent(socket, socket->sent_count++) = *sent;
}

static sim_sent sim_tap_pop(sim_socket *socket) {
  sim_sent sent = socket->sent[socket->sent_head];
  socket->sent_head = (socket->sent_head + 1) & (socket->sent_capacity - 1);
  socket->sent_count--;
  return sent;
}

/* --------------------------------------------------------------------------------------- output */

/*
 * Returns true if the core has granted the lease in the call of the core that has sent this
 * command.
 */
static bool sim_tap_granted_now(const sim_client *client, const sim_token *token) {
  const rl_lock *lock = client->locks[token->lock].lock;
  return lock != NULL && lock->operation == RL_OPERATION_ACQUIRE && token->live &&
         client->locks[token->lock].state == SIM_APPLICATION_BUSY &&
         rl_lock_result(lock) == REDLOCK_OK && rl_lock_remaining(lock, client->reading_us) > 0;
}

static void sim_tap_set(sim *s, sim_client *client, unsigned node, sim_sent *sent) {
  sim_token *token = &s->tokens[sent->token];
  uint32_t bit = 1u << node;
  sent->leased = token->granted || (sent->own && sim_tap_granted_now(client, token));
  /* A node that could not be asked in the round may be given the key later. */
  sent->backfills = sent->leased && (token->sent & ~token->unknown & bit) == 0;
  sent->heal = sent->leased && !sent->backfills;
  check_sent(s, client, node, sent);
  sim_count_if(s, sent->backfills, SIM_BACKFILL_SENT);
  if (sent->heal) {
    sim_count(s, SIM_HEAL_SENT);
    token->healed |= bit;
  }
  token->begun_us = token->sent == 0 ? s->now_us : token->begun_us;
  token->sent |= bit;
  token->unknown &= ~bit;
  token->set_refused &= ~bit;
}

/* The lock whose inspection or force is in its round, or NULL. A client has one at a time. */
static sim_lock *sim_tap_asking(const sim *s, sim_client *client, rl_operation operation) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *own = &client->locks[i];
    if (own->lock != NULL && own->state == SIM_APPLICATION_BUSY && own->operation == operation &&
        own->lock->phase == RL_PHASE_ROUND) {
      return own;
    }
  }
  return NULL;
}

/* The kind of the core's entry for the next command, an rl_outstanding_kind. */
static unsigned sim_tap_kind(const sim_client *client, unsigned node) {
  const rl_link *link = &client->core.nodes[node]->link;
  size_t before = client->sockets[node].sent_count;
  unsigned at = link->outstanding_head + (unsigned)before;
  return before < link->outstanding_count ? link->outstanding[at % link->outstanding_capacity].kind
                                          : UINT_MAX;
}

/*
 * Returns true if the command is a force, and not a release: the core's outstanding entry behind
 * the earlier ones is.
 */
static bool sim_tap_is_force(const sim_client *client, unsigned node) {
  return sim_tap_kind(client, node) == RL_OUTSTANDING_FORCE_RELEASE;
}

/* Returns true if the command is an operator's; then it is noted with the lock. */
static bool sim_tap_ask(sim *s, sim_client *client, unsigned node, const resp_request *command,
                        sim_sent *sent) {
  bool inspects = resp_is(command, 0, "EVAL") && command->count == 4;
  bool deletes = resp_is(command, 0, "DEL");
  sim_lock *own =
      sim_tap_asking(s, client, inspects ? RL_OPERATION_INSPECT : RL_OPERATION_FORCE_RELEASE);
  uint32_t token = SIM_NO_TOKEN;
  if (!inspects && !deletes) {
    bool release = command->count == 5 && resp_is(command, 0, "EVAL") &&
                   sim_script_kind(s, command) == SIM_COMMAND_RELEASE;
    token = release ? sim_tap_token(command->words[4], command->lengths[4]) : SIM_NO_TOKEN;
    token = sent->native && sim_tap_is_force(client, node) ? sent->token : token;
    if (own == NULL || token >= s->token_count || token != own->forced ||
        (s->tokens[token].abandoned && !sim_tap_is_force(client, node))) {
      return false; /* A detached token may be released here, too. */
    }
  }
  sent->kind = inspects ? SIM_COMMAND_INSPECT : SIM_COMMAND_RELEASE;
  sent->forces = !inspects;
  sent->token = token;
  check_asked(s, client, own, node, sent);
  if (own != NULL) {
    sent->lock = (uint8_t)(own - client->locks);
    sent->round = own->ask;
    own->asked |= 1u << node;
  }
  sim_mix(s, (uint64_t)sent->token << 16 | (uint64_t)sent->kind << 8 | node);
  return true;
}

/* Adds the arguments that only commands with fencing tokens or a guard have. */
static void sim_tap_watch(sim *s, const resp_request *command, sim_sent *sent) {
  sim_watch watch;
  if (!sim_watch_like(command) || sent->kind == SIM_COMMAND_GUARD ||
      sim_watch_kind(s, command) == SIM_COMMAND_UNKNOWN) {
    return;
  }
  if (!sim_watch_read(command, &watch)) {
    sim_violation(s, "wire", "a TAKE, PROLONG or CONFIRM that no node can understand");
    return;
  }
  sent->own = watch.own;
  sent->guarded = watch.record != 0;
  sent->fence = watch.fence;
}

/* Notes a ticket that was enqueued on, or dequeued from, |node|. */
static void sim_tap_ticket(sim_client *client, unsigned node, uint32_t place, unsigned resource,
                           bool stands) {
  sim_socket *socket = &client->sockets[node];
  unsigned at = 0;
  while (at < socket->enqueued_count && socket->enqueued[at].ticket != place) {
    at++;
  }
  if (stands && at == socket->enqueued_count && at < SIM_ENQUEUED_MAX) {
    socket->enqueued[socket->enqueued_count++] = (sim_enqueued){place, (uint8_t)resource};
  } else if (!stands && at < socket->enqueued_count) {
    socket->enqueued[at] = socket->enqueued[--socket->enqueued_count];
  }
}

/* Notes a command of the wait queues, which has no token. Returns false if it is none. */
static bool sim_tap_call(sim *s, sim_client *client, unsigned node, const resp_request *command,
                         sim_sent *sent) {
  sim_command_kind kind = sim_calls_kind(s, command);
  bool stands = kind == SIM_COMMAND_ENQUEUE;
  if (!stands && kind != SIM_COMMAND_DEQUEUE && kind != SIM_COMMAND_PROBE &&
      kind != SIM_COMMAND_SLOTS) {
    return false;
  }
  sent->kind = (uint8_t)kind;
  if (kind != SIM_COMMAND_PROBE && kind != SIM_COMMAND_SLOTS) {
    unsigned resource = sim_calls_resource(s, command);
    if (resource == SIM_RESOURCES_MAX) {
      return true; /* The node will refuse it. */
    }
    sent->ticket = sim_calls_ticket(command);
    sim_tap_ticket(client, node, sent->ticket, resource, stands);
  }
  sim_mix(s, (uint64_t)sent->ticket << 16 | (uint64_t)sent->kind << 8 | node);
  return true;
}

bool sim_tap_is_twin(const sim *s, const sim_token *token, unsigned node) {
  unsigned server = sim_config_server(&s->config, node);
  uint32_t both = 1u << node | 1u << server;
  uint32_t lost = token->set_lost | token->set_failed | token->queued;
  bool twice = (token->had & both) == both;
  return server != node && s->config.fenced == 0 && !token->supplied && !token->both && !twice &&
         (lost & both) == 0;
}

/*
 * Returns true if the release tests a node that refused the attempt, while the attempt is not over:
 * once per connection for each other node, by hash and by text, or again if a twin has invalidated
 * the test.
 */
static bool sim_tap_tests(const sim *s, const sim_client *client, const sim_token *token,
                          unsigned node, const sim_sent *sent) {
  const rl_lock *lock = client->locks[token->lock].lock;
  return sent->kind == SIM_COMMAND_RELEASE && lock != NULL && lock->phase == RL_PHASE_ROUND &&
         lock->operation == RL_OPERATION_ACQUIRE && !token->granted && !token->over &&
         !token->releasing && !token->supplied && (token->set_refused >> node & 1) != 0 &&
         token->votes != 0 &&
         (s->config.twins || client->sockets[node].tested < 2 * s->config.nodes || sent->by_text);
}

/* Notes which slot of a semaphore the SET tries. */
static void sim_tap_slot(const sim *s, sim_client *client, sim_token *token,
                         const resp_request *command) {
  sim_lock *own = &client->locks[token->lock];
  unsigned resource = sim_script_resource(command, resp_is(command, 0, "SET") ? 1 : 3);
  if (s->config.permits == 0 || resource == SIM_RESOURCES_MAX) {
    return;
  }
  token->resource = (uint8_t)resource;
  if (own->lease == SIM_NO_TOKEN) {
    own->resource = resource;
  }
}

/* Notes a command with a token. */
static void sim_tap_sends(sim *s, sim_client *client, unsigned node, const resp_request *command,
                          sim_sent *sent) {
  sim_socket *socket = &client->sockets[node];
  sim_token *token = &s->tokens[sent->token];
  const rl_lock *lock = client->locks[token->lock].lock;
  sent->round = lock != NULL ? lock->round : 0;
  sent->tests = sim_tap_tests(s, client, token, node, sent);
  if (sent->kind == SIM_COMMAND_RELEASE && s->config.notifications) {
    sent->leaves =
        sim_calls_leaves(command, &sent->ticket) || sim_hold_leaves(s, command, &sent->ticket);
  }
  if (sent->kind == SIM_COMMAND_SET) {
    sim_tap_slot(s, client, token, command);
    sim_tap_set(s, client, node, sent);
  } else {
    check_sent(s, client, node, sent);
  }
  if (sent->leaves) {
    sim_tap_ticket(client, node, sent->ticket, 0, false);
  }
  if (sent->kind == SIM_COMMAND_EXTEND) {
    token->asked = (token->asked_round == sent->round ? token->asked : 0) | 1u << node;
    token->asked_round = sent->round;
  } else if (sent->kind == SIM_COMMAND_CONFIRM) {
    token->confirms |= 1u << node;
  } else if (sent->tests) {
    socket->tested++;
    sim_count(s, SIM_TWIN_TESTED);
  } else if (sent->kind == SIM_COMMAND_RELEASE) {
    token->releasing_call = token->releasing ? token->releasing_call : s->calls;
    token->releasing = true;
    token->release_ever |= 1u << node;
    token->release_sent |= 1u << node;
  }
  if (sent->ttl_us != 0) {
    uint64_t life_us = sent->ttl_us + sent->ttl_us / 10 + REDLOCK_SECONDS;
    uint64_t expired_us = client->reading_us + life_us;
    token->life_us = life_us > token->life_us ? life_us : token->life_us;
    token->expired_us[node] =
        expired_us > token->expired_us[node] ? expired_us : token->expired_us[node];
  }
  sim_mix(s, (uint64_t)sent->token << 16 | (uint64_t)sent->kind << 8 | node);
}

static void sim_tap_command(sim *s, sim_client *client, unsigned node,
                            const resp_request *command) {
  sim_socket *socket = &client->sockets[node];
  sim_sent sent = {
      .at_us = client->reading_us, .token = SIM_NO_TOKEN, .kind = SIM_COMMAND_HANDSHAKE};
  unsigned argument = 0;
  if (sim_tap_call(s, client, node, command, &sent)) {
    argument = 0;
  } else if (s->config.native && sim_native_kind(command, &argument) != SIM_COMMAND_UNKNOWN) {
    sent.kind = (uint8_t)sim_native_kind(command, &argument);
    sent.native = sent.kind != SIM_COMMAND_FLAG;
    sent.ttl_us = sent.kind == SIM_COMMAND_EXTEND ? resp_number(command, 6) * 1000 : 0;
    sent.token = sent.native ? sim_tap_token(command->words[argument], command->lengths[argument])
                             : SIM_NO_TOKEN;
  } else if (resp_is(command, 0, "SET")) {
    sent.kind = SIM_COMMAND_SET;
    argument = 2;
    sent.ttl_us = resp_number(command, 6 < command->count ? 6 : command->count - 1) * 1000;
  } else if (command->count >= 5) {
    sent.kind = (uint8_t)sim_script_kind(s, command);
    sent.by_text = resp_is(command, 0, "EVAL");
    argument = sim_script_token(s, command);
    bool lives =
        sent.kind == SIM_COMMAND_SET || sent.kind == SIM_COMMAND_EXTEND || sim_hold_is(s, command);
    sent.ttl_us = lives ? resp_number(command, argument + 1) * 1000 : 0;
    sim_tap_watch(s, command, &sent);
  }
  sent.aside = node < client->nodes && sent.kind == SIM_COMMAND_RELEASE &&
               sim_tap_kind(client, node) == RL_OUTSTANDING_NATIVE;
  bool ask =
      s->config.operators != 0 && !sent.aside && sim_tap_ask(s, client, node, command, &sent);
  if (!ask && sent.kind != SIM_COMMAND_HANDSHAKE && sent.kind != SIM_COMMAND_GUARD &&
      !sim_calls_is_queue((sim_command_kind)sent.kind)) {
    sent.token = sim_tap_token(command->words[argument], command->lengths[argument]);
    if (sent.token >= s->token_count) {
      sim_violation(s, "wire", "a command with a token that was never drawn");
      return;
    }
    if (!sent.aside) {
      sim_tap_sends(s, client, node, command, &sent);
    }
  }
  if (socket->sent_count == 0) {
    socket->heard_us = client->reading_us;
  }
  sim_tap_push(socket, &sent);
}

void sim_tap_output(sim *s, sim_client *client) {
  s->calls++;
  for (unsigned i = 0; i < rl_core_connection_count(&client->core) && !s->failed; i++) {
    size_t length;
    sim_socket *socket = &client->sockets[i];
    const unsigned char *bytes = rl_core_output(&client->core, i, &length);
    while (socket->tapped < length && !s->failed) {
      resp_request command;
      const char *tapped = (const char *)bytes + socket->tapped;
      long size = resp_read(&command, tapped, length - socket->tapped);
      if (size <= 0) {
        sim_violation(s, "wire", "the core's output is not a row of complete commands");
        return;
      }
      sim_tap_command(s, client, i, &command);
      socket->tapped += (size_t)size;
    }
  }
}

/* The command will not be answered; it may yet be executed. */
static void sim_tap_lost(sim *s, const sim_client *client, unsigned node, const sim_sent *sent) {
  sim_token *token = &s->tokens[sent->token];
  if (sent->forces || sent->kind == SIM_COMMAND_CONFIRM) {
    return; /* It sets no key. */
  }
  if (sent->kind == SIM_COMMAND_RELEASE) {
    token->release_sent &= ~(1u << node);
  }
  if (sent->kind == SIM_COMMAND_RELEASE && sent->ttl_us == 0) {
    return;
  }
  token->set_lost |= sent->kind == SIM_COMMAND_SET ? 1u << node : 0;
  if (client->reading_us + token->life_us > token->expired_us[node]) {
    token->expired_us[node] = client->reading_us + token->life_us;
  }
}

/* The core has no connection to the node any more: none of its commands will be answered. */
void sim_tap_dropped(sim *s, sim_client *client, unsigned node) {
  sim_socket *socket = &client->sockets[node];
  while (socket->sent_count > 0) {
    sim_sent sent = sim_tap_pop(socket);
    if (sent.token >= s->token_count || sent.aside) {
      continue;
    }
    sim_tap_lost(s, client, node, &sent);
  }
  /*
   * One call of the core may queue a SET and then give the connection up: the core counts it as
   * sent.
   */
  for (size_t i = 0;
       socket->odd && node < SIM_NODES_MAX && node < client->nodes && i < s->token_count; i++) {
    sim_token *token = &s->tokens[i];
    token->queued |= token->live && token->client == client->index ? 1u << node : 0;
  }
  socket->tapped = 0;
  socket->up = false;
  socket->tested = 0;
  socket->enqueued_count = 0;
}

/* ---------------------------------------------------------------------------------------- input */

static void sim_tap_release_answered(sim_token *token, uint32_t bit, const sim_note *note) {
  if (note->outcome == SIM_OUTCOME_NO_SCRIPT && !note->by_text) {
    return; /* It is sent once more, by its text. */
  }
  token->release_answered |= bit;
  if (note->outcome == SIM_OUTCOME_FORBIDDEN) {
    token->release_forbidden |= bit;
  }
  if (note->outcome == SIM_OUTCOME_GRANTED || note->outcome == SIM_OUTCOME_REFUSED) {
    token->release_certain |= bit;
  }
  if (note->outcome == SIM_OUTCOME_REFUSED) {
    token->release_refused |= bit;
  }
}

/* Returns true if the question or the force is the lock's of now. */
static bool sim_tap_asks_now(const sim_lock *own, const sim_sent *sent) {
  return own->lock != NULL && own->lock->phase == RL_PHASE_ROUND && own->ask == sent->round &&
         own->lock->operation == (sent->forces ? RL_OPERATION_FORCE_RELEASE : RL_OPERATION_INSPECT);
}

/* Notes the answer to an operator. */
static void sim_tap_reported(sim_lock *own, const sim_sent *sent, unsigned node,
                             const sim_note *note) {
  bool granted = note->outcome == SIM_OUTCOME_GRANTED;
  if (!sim_tap_asks_now(own, sent) || (!granted && note->outcome != SIM_OUTCOME_REFUSED)) {
    return;
  }
  own->answered |= 1u << node;
  own->deleted |= (uint32_t)granted << node;
  own->seen[node] = note->seen;
}

/* Returns true if the record of the node was old enough, by the client's clock. */
static bool sim_tap_ripe(const sim *s, const sim_note *note) {
  uint64_t quarantine_us = sim_guard_quarantine_us(s);
  uint64_t apart_ppm = 2ull * (s->config.client_ppm + s->config.node_ppm);
  return note->age_us + quarantine_us * apart_ppm / 1000000 >= quarantine_us;
}

/* The node has not set the key. An earlier SET may have done so. */
static void sim_tap_refused(const sim *s, sim_token *token, uint32_t bit) {
  token->set_refused |= bit & ~(token->had | token->set_failed);
  token->refused_now = bit | (token->refused_call == s->calls ? token->refused_now : 0);
  token->refused_call = s->calls;
}

/* Counts the reply, which the core is about to read. */
static void sim_tap_count(sim_client *client, unsigned node, const sim_sent *sent,
                          const sim_note *note) {
  bool granted = note->outcome == SIM_OUTCOME_GRANTED;
  sim_account *account = &client->account;
  account->replies[node]++;
  account->heals[node] += sent->heal && granted;
  account->backfills[node] += sent->backfills && granted;
  account->granted[node] += granted && !sent->heal && sent->kind != SIM_COMMAND_CONFIRM;
}

static void sim_tap_answered(sim *s, const sim_sent *sent, unsigned node, const sim_note *note) {
  sim_token *token = &s->tokens[sent->token];
  uint32_t bit = 1u << node;
  bool granted = note->outcome == SIM_OUTCOME_GRANTED;
  bool failed = note->outcome == SIM_OUTCOME_ERROR;
  token->had |= sent->kind == SIM_COMMAND_SET && granted ? bit : 0;
  token->set_failed |= sent->kind == SIM_COMMAND_SET && failed ? bit : 0;
  if (sent->kind == SIM_COMMAND_SET && granted && !sent->own) {
    token->raised[node] = note->fence;
    token->ripe |= sim_tap_ripe(s, note) ? bit : 0;
  } else if (sent->kind == SIM_COMMAND_CONFIRM && granted && note->held) {
    token->confirmed[node] = sent->fence;
  } else if (sent->kind == SIM_COMMAND_CONFIRM && note->outcome == SIM_OUTCOME_REFUSED) {
    token->gone |= bit; /* It may be released there, and need not. */
  }
  if (sent->kind == SIM_COMMAND_RELEASE) {
    sim_tap_release_answered(token, bit, note);
  } else if (sent->kind == SIM_COMMAND_SET &&
             (note->outcome == SIM_OUTCOME_NO_SCRIPT || note->outcome == SIM_OUTCOME_OTHER)) {
    /* It has set nothing, and may be sent once more, by its text, or for the record of now. */
    sim_tap_refused(s, token, bit);
    token->unknown |= bit;
  } else if (sent->kind == SIM_COMMAND_SET && !granted) {
    sim_tap_refused(s, token, note->outcome != SIM_OUTCOME_ERROR ? bit : 0);
  } else if (sent->kind == SIM_COMMAND_SET && sent->heal) {
    sim_count(s, SIM_HEAL_GRANTED);
  } else if (sent->kind == SIM_COMMAND_SET && granted) {
    token->votes |= bit;
  } else if (sent->kind == SIM_COMMAND_EXTEND && granted && sent->round >= token->round) {
    token->extend_votes = sent->round > token->round ? bit : token->extend_votes | bit;
    token->round = sent->round;
  }
}

/* Returns true if the lock still waits for the answer to this. */
static bool sim_tap_current(const sim *s, const sim_client *client, const sim_sent *sent) {
  if (sent->forces || sent->kind == SIM_COMMAND_INSPECT) {
    return sim_tap_asks_now(&client->locks[sent->lock], sent);
  }
  const sim_lock *own = &client->locks[s->tokens[sent->token].lock];
  const rl_lock *lock = own->lock;
  if (lock == NULL || lock->phase != RL_PHASE_ROUND || lock->round != sent->round) {
    return false;
  }
  switch ((sim_command_kind)sent->kind) {
  case SIM_COMMAND_SET:
    return !sent->heal && own->attempt == sent->token;
  case SIM_COMMAND_CONFIRM:
    return own->attempt == sent->token;
  case SIM_COMMAND_RELEASE:
    return sent->tests ? own->attempt == sent->token : lock->operation == RL_OPERATION_RELEASE;
  case SIM_COMMAND_EXTEND:
    return lock->operation == RL_OPERATION_EXTEND && own->lease == sent->token;
  default:
    return false;
  }
}

/*
 * An odd reply settles the oldest command; then the core closes. Returns true if that was one of
 * the handshake.
 */
static bool sim_tap_odd(sim *s, sim_client *client, unsigned node) {
  sim_socket *socket = &client->sockets[node];
  socket->odd = true;
  client->account.odd = true;
  if (socket->sent_count == 0) {
    return false;
  }
  sim_sent sent = sim_tap_pop(socket);
  if (sent.token < s->token_count && !sent.aside) {
    sim_tap_lost(s, client, node, &sent);
  }
  return sent.kind == SIM_COMMAND_HANDSHAKE || sent.kind == SIM_COMMAND_GUARD;
}

/*
 * Settles the oldest command by its reply. Returns true if the reply comes too late: there is no
 * such command, or its lock no longer waits for it.
 */
static bool sim_tap_reply(sim *s, sim_client *client, unsigned node, const sim_note *note) {
  sim_socket *socket = &client->sockets[node];
  if (socket->sent_count == 0) {
    return true;
  }
  sim_sent sent = sim_tap_pop(socket);
  if ((sent.kind != note->kind || sent.token != note->token) && s->breach == SIM_BREACH_NONE &&
      !socket->odd) {
    sim_violation(s, "simulator", "a reply does not match what was asked");
  }
  if (sent.kind == SIM_COMMAND_SLOTS) {
    client->account.replies[node]++;
  }
  if (sent.kind == SIM_COMMAND_GUARD || sim_calls_is_queue((sim_command_kind)sent.kind)) {
    if (note->full) {
      sim_tap_ticket(client, node, sent.ticket, 0, false);
    }
    return false;
  }
  if (sent.aside) {
    return false;
  }
  if (sent.kind == SIM_COMMAND_HANDSHAKE) {
    socket->odd = socket->odd || note->outcome != SIM_OUTCOME_GRANTED;
    return false;
  }
  sim_tap_count(client, node, &sent, note);
  bool stale = !sim_tap_current(s, client, &sent);
  sim_count_if(s, stale, SIM_REPLY_STALE);
  if (sent.forces || sent.kind == SIM_COMMAND_INSPECT) {
    sim_tap_reported(&client->locks[sent.lock], &sent, node, note);
  } else {
    sim_tap_answered(s, &sent, node, note);
  }
  return stale;
}

bool sim_tap_input(sim *s, sim_client *client, unsigned node, size_t bytes) {
  sim_socket *socket = &client->sockets[node];
  sim_connection *connection = &s->connections[socket->connection];
  sim_notes *notes = &connection->notes;
  uint64_t end = connection->to_client.read + bytes;
  bool any = false, all_old = true;
  socket->heard_us = client->reading_us;
  while (notes->head < notes->tail && notes->notes[notes->head].end <= end && !s->failed) {
    const sim_note *note = &notes->notes[notes->head++];
    any = true;
    socket->odd = socket->odd || note->read_only;
    all_old = all_old && !note->read_only; /* It settles all commands of the connection. */
    if (note->kind == SIM_COMMAND_MESSAGE) {
      sim_count(s, SIM_NOTIFY_RECEIVED);
      all_old = false;
    } else if (note->outcome == SIM_OUTCOME_ODD || !note->asked) {
      all_old = false;
      if (!sim_tap_odd(s, client, node)) {
        break; /* Only a reply to CLIENT SETNAME may be any. */
      }
    } else if (!sim_tap_reply(s, client, node, note)) {
      all_old = false;
    }
  }
  /* A part of a reply may be odd already. */
  if (notes->head < notes->tail && notes->notes[notes->head].outcome == SIM_OUTCOME_ODD) {
    socket->odd = true;
    all_old = false;
  }
  return any && all_old && !socket->odd; /* Later replies may be taken for those before. */
}
