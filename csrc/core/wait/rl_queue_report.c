/*
 * Queue reports: what nodes answer to queue commands, and the notifications that they send.
 *
 * SPDX-License-Identifier: MIT
 *
 * This module notes each report in its ticket. rl_notify.c has the rules NTF-1 to NTF-10, and
 * decides by all reports of a ticket when its head polls or tries.
 */
#include "wait/rl_queue_report.h"

#include <string.h>

#include "base/rl_number.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"
#include "wait/rl_notify.h"
#include "wait/rl_ticket.h"

#define RL_QUEUE_REPORT_PAYLOAD 8 /* digits of the ticket's id in a message; the key follows */

/* ------------------------------------------------------------------------------------ replies */

bool rl_queue_report_is_for(const rl_outstanding *outstanding) {
  return outstanding->kind == RL_OUTSTANDING_ENQUEUE ||
         outstanding->kind == RL_OUTSTANDING_DEQUEUE || outstanding->kind == RL_OUTSTANDING_PROBE;
}

/*
 * Turns the reports into the head's votes, if a quorum reports a holder. They matter to a head that
 * has made no attempt (NTF-2), or whose attempt did not end with "taken". After an attempt the
 * reports count only from the next poll on: the first ones may be of the head's own key, whose
 * release is still outstanding.
 */
static void rl_queue_report_copy_votes(rl_lock *head, const rl_ticket *ticket) {
  bool polled = head->result == REDLOCK_PENDING || ticket->polled_us != ticket->begun_us;
  if (head->phase != RL_PHASE_DELAY || head->result == REDLOCK_E_TAKEN || !polled ||
      rl_quorum_count(ticket->held) < rl_notify_quorum(head->core)) {
    return;
  }
  rl_round_clear(head);
  for (unsigned i = 0; i < head->core->node_count; i++) {
    if ((ticket->held >> i & 1) != 0) {
      rl_round_settle_copy(head, i, REDLOCK_VOTE_TAKEN, NULL);
    }
  }
  rl_lock_set_result(head, REDLOCK_E_TAKEN);
}

/*
 * NTF-1. Notes the label of the holder that a node has reported. If nodes report several labels,
 *        the first one stays until no node reports it.
 */
static void rl_queue_report_note_label(rl_ticket *ticket, uint32_t bit, const char *label,
                                       size_t length) {
  bool valid = rl_label_is_valid(label, length);
  bool same =
      valid && ticket->holder.length == length && memcmp(ticket->holder.text, label, length) == 0;
  ticket->labelled &= ~bit;
  if (valid && (same || ticket->labelled == 0)) {
    rl_label_set(&ticket->holder, label, length);
    ticket->labelled |= bit;
  }
}

/*
 * Reads the answer of a script, and notes the label or the places (rl_command.h) in |ticket|, if
 * that is not NULL. Returns false if the reply is no answer.
 */
static bool rl_queue_report_read_answer(const rl_node *node, redlock_time now_us, rl_script script,
                                        rl_ticket *ticket, long long *answer) {
  const rl_reply *reply = &node->link.reader.reply;
  size_t digits = 0;
  *answer = reply->integer;
  bool places = script == RL_SCRIPT_ENQUEUE_ALL;
  if (reply->type == RL_REPLY_STRING && (places || script == RL_SCRIPT_ENQUEUE_LABEL)) {
    uint64_t number;
    digits = rl_number_in_digits(reply->bytes, reply->length, &number);
    if (digits == 0 || number > RL_NUMBER_MAX || digits == reply->length ||
        reply->bytes[digits] != ':') {
      return false;
    }
    *answer = (long long)number;
  } else if (reply->type != RL_REPLY_INTEGER || reply->integer < 0) {
    return false;
  }
  const char *rest = reply->bytes + digits + 1;
  size_t length = digits > 0 ? reply->length - digits - 1 : 0;
  if (ticket != NULL && ticket->places != NULL) {
    rl_ticket_note_places(ticket, now_us, node->index, rest, places ? length : 0);
  } else if (ticket != NULL) {
    rl_queue_report_note_label(ticket, rl_node_bit(node), rest, length);
  }
  return true;
}

/* NTF-1. Notes the answer of ENQUEUE (rl_command.h). */
static void rl_queue_report_enqueue_answered(rl_core *core, rl_ticket *ticket, unsigned node,
                                             redlock_time now_us, long long answer) {
  uint32_t bit = (uint32_t)1 << node;
  uint64_t left_ms = (uint64_t)answer / RL_COMMAND_ENQUEUE_UNIT;
  uint32_t position = (uint32_t)((uint64_t)answer % RL_COMMAND_ENQUEUE_UNIT);
  /* The ticket moved up by one while the key was free: this query has evicted the first ticket. */
  bool evicted = (ticket->outranked & bit) != 0 && left_ms == 0 && position > 0 &&
                 position + 1 == ticket->at[node].position;
  ticket->evicted = evicted ? ticket->evicted | bit : ticket->evicted & ~bit;
  ticket->held &= ~bit;
  ticket->outranked &= ~bit;
  if (left_ms != 1 || position < 2) { /* APPEND answers one unit and a position above 1. */
    ticket->unqueried &= ~bit;
  }
  if ((ticket->again & bit) != 0) {
    ticket->again &= ~bit;
    rl_ticket_request_enqueue(core->notify, ticket, bit);
  }
  if (answer == 0) {
    rl_notify_node_notified(core, ticket, bit, now_us, (ticket->prompted & bit) != 0);
    return;
  }
  ticket->contended = true;
  ticket->notified &= ~bit;
  ticket->enqueued = position > 0 ? ticket->enqueued | bit : ticket->enqueued & ~bit;
  /* A node without a working subscriber will not notify the head. */
  if (position > 0 && (core->notify->ready & bit) != 0) {
    ticket->at[node].position = position;
    *(left_ms > 0 ? &ticket->held : &ticket->outranked) |= bit;
    ticket->at[node].ends_us =
        left_ms > 1 ? rl_time_add(now_us, (left_ms - 1) * REDLOCK_MILLISECONDS) : REDLOCK_NEVER;
    rl_queue_report_copy_votes(ticket->waitlist->head, ticket);
  }
  rl_notify_decide(core, ticket, now_us);
}

/*
 * Returns true if the reply forbids a command that DEQUEUE needs: a waiter that can enqueue but not
 * dequeue would block other waiters. Most servers name the command. Redis 6 ("can't run") and 7.0
 * ("this command"), and a renamed command ("unknown"), do not. An error about the key says nothing
 * about the node: a forged message may have named that key (NTF-8).
 */
static bool rl_queue_report_is_forbidden(const rl_reply *reply) {
  return reply->type == RL_REPLY_ERROR &&
         (rl_reply_names_command(reply->text) ||
          strstr(reply->text, "executing the script can't run") != NULL ||
          strstr(reply->text, "t run this command") != NULL ||
          strstr(reply->text, "nknown ") != NULL);
}

/*
 * NTF-9. Errors that concern one ENQUEUE. Before Redis 7 the code stands inside the text.
 * rl_verdict_refusals (rl_verdict.c) has the errors after which a SET has set nothing.
 */
static const char *const rl_queue_report_enqueue_errors[] = {
    "WRONGTYPE",   "OOM ",  "LOADING ",    "MISCONF ",
    "NOREPLICAS ", "BUSY ", "MASTERDOWN ", "READONLY "};

/* NTF-9. Returns true if the node refuses one ENQUEUE, and not all of them. */
static bool rl_queue_report_refuses_one(const rl_reply *reply) {
  bool found = false;
  for (size_t i = 0;
       i < sizeof rl_queue_report_enqueue_errors / sizeof rl_queue_report_enqueue_errors[0]; i++) {
    found = found || (reply->type == RL_REPLY_ERROR &&
                      strstr(reply->text, rl_queue_report_enqueue_errors[i]));
  }
  return found;
}

void rl_queue_report_answered(rl_core *core, rl_node *node, redlock_time now_us,
                              const rl_outstanding *outstanding) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_ticket *ticket = rl_ticket_find_waiting(core->notify, outstanding->round);
  bool enqueues = outstanding->kind == RL_OUTSTANDING_ENQUEUE;
  bool waits = enqueues && ticket != NULL;
  long long answer;
  if (outstanding->kind == RL_OUTSTANDING_PROBE) {
    rl_queue_report_subscribers_changed(core, rl_subscriber_probed(core, node, now_us), now_us);
    return;
  }
  if (waits) {
    ticket->outstanding &= ~rl_node_bit(node);
  }
  if (rl_queue_report_read_answer(node, now_us, (rl_script)outstanding->script,
                                  waits ? ticket : NULL, &answer)) {
    node->link.knows[outstanding->script] = true;
    if (waits) {
      rl_queue_report_enqueue_answered(core, ticket, node->index, now_us, answer);
    }
    return;
  }
  bool unknown = reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0;
  if (unknown && !outstanding->by_text) {
    node->link.knows[outstanding->script] = false;
    if (waits) {
      rl_ticket_request_enqueue(core->notify, ticket, rl_node_bit(node));
    }
    return;
  }
  bool refuses_one = enqueues && rl_queue_report_refuses_one(reply);
  if (refuses_one &&
      waits) { /* The waiter polls the node, whose queue may still have its ticket. */
    ticket->held &= ~rl_node_bit(node);
    ticket->outranked &= ~rl_node_bit(node);
    rl_notify_decide(core, ticket, now_us);
  }
  if ((enqueues && !refuses_one) || rl_queue_report_is_forbidden(reply)) {
    const char *reason = reply->type == RL_REPLY_ERROR
                             ? rl_link_error_text(&node->link)
                             : "unexpected reply to the script of the queue";
    rl_queue_report_subscribers_changed(core, rl_subscriber_refuse(core, node, now_us, reason),
                                        now_us);
  }
}

void rl_queue_report_unanswered(rl_core *core, const rl_node *node,
                                const rl_outstanding *outstanding) {
  rl_ticket *ticket = rl_ticket_find_waiting(core->notify, outstanding->round);
  if (outstanding->kind == RL_OUTSTANDING_ENQUEUE && ticket != NULL) {
    ticket->outstanding &= ~rl_node_bit(node);
    ticket->enqueued |= rl_node_bit(node); /* The node may have executed it. */
  }
}

/* ----------------------------------------------------------------------------------- messages */

/* Reads the id at the beginning of a message. Returns false if there is none. */
static bool rl_queue_report_read_id(const rl_reply *reply, uint32_t *id) {
  static const char digits[] = "0123456789abcdef";
  *id = 0;
  for (unsigned i = 0; i < RL_QUEUE_REPORT_PAYLOAD; i++) {
    char byte = i < reply->length ? reply->bytes[i] : '\0';
    const char *digit = byte != '\0' ? strchr(digits, byte) : NULL;
    if (digit == NULL) {
      return false;
    }
    *id = *id << 4 | (uint32_t)(digit - digits);
  }
  return true;
}

/*
 * NTF-8. Answers a notification of an unknown ticket with DEQUEUE. The key may be that of a lock,
 *        or of a semaphore's slot: DEQUEUE does nothing in the queue of the other one.
 */
static void rl_queue_report_decline(rl_core *core, rl_node *node, redlock_time now_us, uint32_t id,
                                    const char *key, size_t length) {
  char entry[RL_LINK_ENTRY_SIZE];
  size_t base_length = length;
  rl_link_entry(core->notify->channel, id, entry);
  bool slot = rl_resource_parse_slot(key, length, &base_length) != 0;
  if (length > 0 && rl_link_has_room(&node->link, RL_OUTSTANDING_DEQUEUE)) {
    (void)rl_link_queue_dequeue(&node->link, now_us, id, key, length, entry, 0);
  }
  if (slot && rl_link_has_room(&node->link, RL_OUTSTANDING_DEQUEUE)) {
    (void)rl_link_queue_dequeue(&node->link, now_us, id, key, base_length, entry, 0);
  }
}

/* Notes which slot of a semaphore is free, by the first message since the last attempt. */
static void rl_queue_report_note_slot(rl_ticket *ticket, uint32_t bit, const char *key,
                                      size_t length) {
  size_t base_length;
  unsigned slot = rl_resource_parse_slot(key, length, &base_length);
  if (slot <= ticket->permits && base_length == ticket->base->key_length) {
    ticket->slot = ticket->slot == 0 ? (uint16_t)slot : ticket->slot;
    ticket->slot_nodes |= ticket->slot == slot ? bit : 0;
  }
}

void rl_queue_report_message(rl_core *core, unsigned node, redlock_time now_us,
                             const rl_reply *reply) {
  uint32_t id;
  uint32_t bit = (uint32_t)1 << node;
  if (!rl_queue_report_read_id(reply, &id)) {
    return; /* This is the probe. */
  }
  const char *key = reply->bytes + RL_QUEUE_REPORT_PAYLOAD;
  bool whole = reply->length <= RL_REPLY_BYTES_MAX; /* Of a longer key the client knows nothing. */
  size_t length = whole ? reply->length - RL_QUEUE_REPORT_PAYLOAD : 0;
  rl_ticket *ticket = rl_ticket_find(core->notify, id);
  if (ticket != NULL && ticket->granted) {
    return; /* The node is late: its key was freed for this lease (NTF-8). */
  }
  if (ticket == NULL || ticket->waitlist == NULL) {
    rl_queue_report_decline(core, core->nodes[node], now_us, id, key, length);
    return;
  }
  if (ticket->places == NULL || rl_ticket_note_notified(core->notify, ticket, node, key, length)) {
    if (ticket->permits > 0) {
      rl_queue_report_note_slot(ticket, bit, key, length);
    }
    rl_notify_node_notified(core, ticket, bit, now_us, true);
  }
}

/* ------------------------------------------------------------------------------------- nodes */

/*
 * Drops the reports of the node in all tickets. With |connected| only its subscriber has ended or
 * refuses: DEQUEUE can still be sent, and notifications that have come still count.
 */
static void rl_queue_report_drop(rl_core *core, uint32_t bit, bool connected, redlock_time now_us) {
  rl_notify_state *notify = core->notify;
  for (uint32_t i = 0; i < notify->ticket_count; i++) {
    rl_ticket *ticket = notify->tickets[i];
    ticket->to_enqueue &= ~bit;
    ticket->again &= ~bit;
    ticket->reserved &= ~bit;
    ticket->to_dequeue &= connected ? ~(uint32_t)0 : ~bit;
    ticket->held &= ~bit;
    ticket->outranked &= ~bit;
    ticket->unqueried &= ~bit;
    ticket->notified &= connected ? ~(uint32_t)0 : ~bit;
    if (ticket->waitlist != NULL) {
      rl_notify_decide(core, ticket, now_us);
    }
  }
}

void rl_queue_report_node_down(rl_core *core, const rl_node *node, redlock_time now_us) {
  rl_queue_report_subscribers_changed(core, rl_subscriber_node_down(core, node), now_us);
  rl_queue_report_drop(core, rl_node_bit(node), false, now_us);
}

void rl_queue_report_mute(rl_core *core, rl_node *node, redlock_time now_us) {
  node->link.notify_denied_until_us = rl_time_add(now_us, RL_SUBSCRIBER_REFUSED_US);
  rl_queue_report_subscribers_changed(core, rl_subscriber_mute(core, node, now_us), now_us);
}

void rl_queue_report_subscribers_changed(rl_core *core, rl_subscriber_change change,
                                         redlock_time now_us) {
  if (change.lost != 0) {
    rl_queue_report_drop(core, change.lost, true, now_us);
  }
  for (uint32_t i = 0; change.ready != 0 && i < core->notify->ticket_count; i++) {
    if (core->notify->tickets[i]->waitlist != NULL) {
      rl_ticket_request_enqueue(core->notify, core->notify->tickets[i], change.ready);
    }
  }
}
