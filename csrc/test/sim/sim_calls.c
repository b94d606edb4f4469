/*
 * Queues of waiters on a node, and notifications: executes the scripts of rl_notify.c.
 *
 * SPDX-License-Identifier: MIT
 *
 * A queue is a string beside the key. It disappears when it is empty, and a minute after its last
 * use. A node counts a subscriber until it notices that the connection has ended.
 */
#include "sim_calls.h"

#include <string.h>

#include "base/rl_sha1.h"
#include "check.h"
#include "sim_key.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "wait_queue.h"

#define SIM_CALLS_CHANNEL "redlock:call:"
#define SIM_CALLS_LIFE_MS 60000

/* Common parts of the scripts. */
#define SIM_CALLS_PUBLISH(name)                                                                    \
  "'PUBLISH','redlock:call:'..string.sub(s,at,at+15),string.sub(s,at+16,at+23).." name
#define SIM_CALLS_FIRST(name)                                                                      \
  "local at=1 while at<=#s and at<24576 do local h=redis.pcall(" SIM_CALLS_PUBLISH(                \
      name) ") "                                                                                   \
            "if h~=0 then c=type(h)=='number' and 2 or 3 break end at=at+24 end s=string.sub(s,at) "
#define SIM_CALLS_DELETE(key)                                                                      \
  "n=redis.pcall('DEL'," key ",k..':redlock-wait') "                                               \
  "if n~=1 and n~=2 then redis.call('DEL'," key ") n=3 end "
#define SIM_CALLS_READ "if not s or #s%24~=0 then s='' end local w=#s "
#define SIM_CALLS_WITHOUT(entry)                                                                   \
  "local p=" entry " and string.find(s," entry ",1,true) "                                         \
  "if p then s=string.sub(s,1,p-1)..string.sub(s,p+24) end "
#define SIM_CALLS_SIGN "'SET',k..':redlock-wait','1','PX',60000"
#define SIM_CALLS_STORE                                                                            \
  "if s=='' then if w>0 then redis.pcall('DEL',q,k..':redlock-wait') end elseif #s~=w and "        \
  "redis.pcall('SET',q,s,'PX',60000).err and type(redis.pcall('DEL',q))=='table' then c=3 end "

#define SIM_CALLS_STANDS(look, name)                                                                   \
  "local k,w,m=KEYS[1],ARGV[1],tonumber(ARGV[2]) local q=k..':redlock-queue' "                         \
  "local joins=m==1025 if joins then local n=redis.call('APPEND',q,w)/24 "                             \
  "if n>1 and n<=1024 and n%1==0 then return 2000+n end m=1 end "                                      \
  "local s=redis.call('GET',q) or '' local was,at=#s,1 if was%24~=0 then return "                      \
  "redis.error_reply('WRONGTYPE this is no queue: '..q) end "                                          \
  "local function put() if s=='' then redis.call('DEL',q,k..':redlock-wait') else "                    \
  "redis.call('SET',q,s,'PX',60000) redis.call(" SIM_CALLS_SIGN ") end end " look                      \
  "local p=m>0 and string.find(s,w,1,true) "                                                           \
  "if left==-2 then local evicts=m>1 and p and (p+23)/24==m and "                                      \
  "redis.call('GET',k..':redlock-reserved')~=string.sub(s,1,24) while "                                \
  "at<=#s and at<24576"                                                                                \
  " and string.sub(s,at,at+23)~=w do if not (evicts and at==1) and "                                   \
  "redis.call(" SIM_CALLS_PUBLISH(                                                                     \
      name) ")>0 then break end at=at+24 end "                                                         \
            "local first=at>#s or string.sub(s,at,at+23)==w s=string.sub(s,at) p=p and p-at+1 "        \
            "if first then if at>1 or joins then put() end return 0 end end "                          \
            "if not p then s=s..w p=#s-23 end local n=(p+23)/24 "                                      \
            "if n>1024 then s=string.sub(s,1,p-1)..string.sub(s,p+24) n=0 left=math.max(left,-1) end " \
            "if #s==was and not joins then redis.call('PEXPIRE',q,60000) redis.call(" SIM_CALLS_SIGN   \
            ") else put() end return (math.min(left,1e11)+2)*2000+n"

#define SIM_CALLS_STANDS_KEY SIM_CALLS_STANDS("local left=redis.call('PTTL',k) ", "k")

/* Of a semaphore. */
#define SIM_CALLS_FREE(argument)                                                                   \
  "local z,t,f=tonumber(" argument "),{} for i=1,z do t[i]=k..'/'..i end "                         \
  "if redis.call('EXISTS',(unpack or table.unpack)(t))<z then for i=1,z do "                       \
  "if redis.call('EXISTS',t[i])==0 then f=t[i] break end end end "
#define SIM_CALLS_STANDS_SLOTS                                                                     \
  SIM_CALLS_STANDS(                                                                                \
      SIM_CALLS_FREE("ARGV[3]") "local left=-1 if f then left=-2 elseif z<=64 then for i=1,z do "  \
                                "local x=redis.call('PTTL',t[i]) if x>=0 and (left<0 or x<left) "  \
                                "then left=x end end end ",                                        \
      "f")

#define SIM_CALLS_STANDS_ALL                                                                          \
  "local w,notified,was,n=ARGV[1],ARGV[3],{},#KEYS local s,p,f,gone,full={},{},{} "                   \
  "local function hears(t,at,k) return redis.call('PUBLISH','redlock:call:'.."                        \
  "string.sub(t,at,at+15),string.sub(t,at+16,at+23)..k)>0 end "                                       \
  "for d in string.gmatch(ARGV[2],'%d+') do was[#was+1]=tonumber(d) end for i=1,n do "                \
  "local q=KEYS[i]..':redlock-queue' s[i]=redis.call('GET',q) or '' if #s[i]%24~=0 then return "      \
  "redis.error_reply('WRONGTYPE this is no queue: '..q) end p[i]=string.find(s[i],w,1,true) "         \
  "gone=gone or not p[i] f[i]=redis.call('PTTL',KEYS[i]) end if gone then for i=1,n do "              \
  "if p[i] then s[i]=string.sub(s[i],1,p[i]-1)..string.sub(s[i],p[i]+24) end p[i]=#s[i]+1 "           \
  "full=full or p[i]>24553 s[i]=s[i]..w end end if full then for i=1,n do "                           \
  "local q=KEYS[i]..':redlock-queue' s[i]=string.sub(s[i],1,-25) if s[i]=='' then "                   \
  "redis.call('DEL',q) else redis.call('SET',q,s[i],'PX',60000) end end return 2000 end "             \
  "local mine,ready,first,most,left={},true,notified~='-',1 for i=1,n do local k=KEYS[i] "            \
  "if f[i]==-2 and notified=='' then local at,evicts=1,p[i]>1 and (p[i]+23)/24==was[i+1] and "        \
  "redis.call('GET',k..':redlock-reserved')~=string.sub(s[i],1,24) while at<p[i] and at<24576 and "   \
  "((evicts and at==1) or not hears(s[i],at,k)) do at=at+24 end "                                     \
  "s[i]=string.sub(s[i],at) p[i]=p[i]-at+1 end "                                                      \
  "mine[i]=f[i]==-2 and (p[i]==1 or string.sub(notified,i,i)=='1') ready=ready and mine[i] "          \
  "first=first and p[i]==1 most=math.max(most,(p[i]+23)/24) "                                         \
  "if f[i]~=-2 then left=(f[i]==-1 or left==-1) and -1 or math.max(left or 0,f[i]) end end "          \
  "local reserved,places=0,'' for i=1,n do local k=KEYS[i] if mine[i] and not ready then "            \
  "if first then redis.call('SET',k..':redlock-reserved',w,'PX',400) reserved=reserved+2^(i-1) else " \
  "local at=p[i]+24 while at<=#s[i] and not hears(s[i],at,k) do "                                     \
  "s[i]=string.sub(s[i],1,at-1)..string.sub(s[i],at+24) end end end "                                 \
  "places=places..','..(f[i]==-2 and p[i]>1 and (p[i]+23)/24 or 0) "                                  \
  "redis.call('SET',k..':redlock-queue',s[i],'PX',60000) redis.call(" SIM_CALLS_SIGN ") end "         \
  "if ready then return 0 end return string.format('%.0f:%d',"                                        \
  "(left and math.min(left,1e11)+2 or 0)*2000+most,reserved)..places"

typedef enum sim_calls_script {
  SIM_CALLS_RELEASE,
  SIM_CALLS_RELEASE_ALL,
  SIM_CALLS_STAND,
  SIM_CALLS_STAND_LABEL,
  SIM_CALLS_STAND_ALL,
  SIM_CALLS_LEAVE,
  SIM_CALLS_STAND_SLOTS,
  SIM_CALLS_LEAVE_SLOTS,
  SIM_CALLS_SLOTS,
  SIM_CALLS_NONE
} sim_calls_script;

static const char *const sim_calls_texts[SIM_CALLS_SCRIPTS] = {
    [SIM_CALLS_RELEASE] =
        "local l,e=KEYS[1],ARGV[2] local k,v,s,r,n=ARGV[3] or l if e=='' then e=nil end "
        "if not e then v=redis.call('GET',l) if v==ARGV[1] then " SIM_CALLS_DELETE(
            "l") "if n~=2 then return n end elseif v then return 0 "
                 "end end local q,c=k..':redlock-queue',1 if e then r=redis.pcall('MGET',l,q) "
                 "v,s=r[1],r[2] if r.err then v=redis.call('GET',l) c=3 end "
                 "if v==ARGV[1] then redis.call('DEL',l) end "
                 "else r=redis.pcall('MGET',q) s=r[1] if r.err then c=3 end end " SIM_CALLS_READ
                     SIM_CALLS_WITHOUT("e") "if not v or v==ARGV[1] then " SIM_CALLS_FIRST(
                         "l") "end " SIM_CALLS_STORE
                              "if s~='' and (n==2 or e and string.byte(e,20)==48) then redis.pcall(" SIM_CALLS_SIGN
                              ") end if v==ARGV[1] then return c end return 0",
    [SIM_CALLS_RELEASE_ALL] =
        "local d,e,c,x=0,nil,1,ARGV[2] for i=1,#KEYS do local k,n=KEYS[i],nil "
        "local v=redis.pcall('GET',k) local ours=v==ARGV[1] if type(v)=='table' then e=v n=3 "
        "elseif ours then " SIM_CALLS_DELETE(
            "k") "d=d+1 if n==3 then c=3 end end if n==2 or x and n~=3 then "
                 "local q=k..':redlock-queue' local r=redis.pcall('MGET',q) if r.err then c=3 end "
                 "local s=r[1] " SIM_CALLS_READ
                     SIM_CALLS_WITHOUT("x") "if ours or not v then " SIM_CALLS_FIRST(
                         "k") "end " SIM_CALLS_STORE "if s~='' then redis.pcall(" SIM_CALLS_SIGN
                              ") end end end if e then return e end "
                              "if d==#KEYS then return c end return 0",
    [SIM_CALLS_STAND_ALL] = SIM_CALLS_STANDS_ALL,
    [SIM_CALLS_STAND] = SIM_CALLS_STANDS_KEY,
    [SIM_CALLS_STAND_LABEL] =
        "local function enqueue() " SIM_CALLS_STANDS_KEY " end local n=enqueue() "
        "if type(n)~='number' or n<4000 then return n end local v=redis.pcall('GET',KEYS[1]) "
        "local l=type(v)=='string' and #v<=105 and string.match(v,'^%x+(:.+)$') "
        "if not l or #v-#l~=40 then return n end return string.format('%.0f',n)..l",
    [SIM_CALLS_LEAVE] =
        "local k,c=KEYS[1],1 local q=k..':redlock-queue' local r=redis.call('MGET',k,q) "
        "local s=r[2] " SIM_CALLS_READ SIM_CALLS_WITHOUT(
            "ARGV[1]") "local n=(w-#s)/24 "
                       "if not r[1] then " SIM_CALLS_FIRST("k") "end " SIM_CALLS_STORE "return n",
    [SIM_CALLS_STAND_SLOTS] = SIM_CALLS_STANDS_SLOTS,
    [SIM_CALLS_LEAVE_SLOTS] =
        "local k,c=KEYS[1],1 local q=k..':redlock-queue' local s=redis.call('GET',q) " SIM_CALLS_READ
            SIM_CALLS_WITHOUT("ARGV[1]") "local n=(w-#s)/24 if s~='' then " SIM_CALLS_FREE(
                "ARGV[2]") "if f then " SIM_CALLS_FIRST("f") "end end " SIM_CALLS_STORE "return n",
    [SIM_CALLS_SLOTS] =
        "local k,n,t,o,b,x=KEYS[1],tonumber(ARGV[1]),{},{},0,'' for i=1,n do t[i]=k..'/'..i end "
        "local v=redis.call('MGET',(unpack or table.unpack)(t)) for i=1,n do b=b*2 if v[i] then b=b+1 "
        "local p=string.match(v[i],'^%x+/(%d+)') if p and #v[i]-#p<=105 and p~=ARGV[1] then x=' '..p end end "
        "if i%4==0 or i==n then for _=1,-i%4 do b=b*2 end "
        "o[#o+1]=string.format('%x',b) b=0 end end return table.concat(o)..x",
};

/* ------------------------------------------------------------------------------- what is asked */

static sim_calls_script sim_calls_find(sim *s, const resp_request *command) {
  bool by_text = resp_is(command, 0, "EVAL");
  for (unsigned i = 0; i < SIM_CALLS_SCRIPTS && s->calls_names[i][0] == '\0'; i++) {
    rl_sha1(s->calls_names[i], sim_calls_texts[i], strlen(sim_calls_texts[i]));
  }
  for (unsigned i = 0; i < SIM_CALLS_SCRIPTS; i++) {
    if (by_text ? resp_is(command, 1, sim_calls_texts[i])
                : resp_equals(command, 1, s->calls_names[i], SIM_SHA1_LENGTH)) {
      return (sim_calls_script)i;
    }
  }
  return SIM_CALLS_NONE;
}

sim_command_kind sim_calls_kind(sim *s, const resp_request *command) {
  static const sim_command_kind kinds[] = {
      [SIM_CALLS_RELEASE] = SIM_COMMAND_RELEASE,     [SIM_CALLS_RELEASE_ALL] = SIM_COMMAND_RELEASE,
      [SIM_CALLS_STAND] = SIM_COMMAND_ENQUEUE,       [SIM_CALLS_STAND_LABEL] = SIM_COMMAND_ENQUEUE,
      [SIM_CALLS_LEAVE] = SIM_COMMAND_DEQUEUE,       [SIM_CALLS_NONE] = SIM_COMMAND_UNKNOWN,
      [SIM_CALLS_STAND_SLOTS] = SIM_COMMAND_ENQUEUE, [SIM_CALLS_LEAVE_SLOTS] = SIM_COMMAND_DEQUEUE,
      [SIM_CALLS_SLOTS] = SIM_COMMAND_SLOTS,         [SIM_CALLS_STAND_ALL] = SIM_COMMAND_ENQUEUE,
  };
  if (s->config.permits > 0 && command->count == 5 &&
      sim_calls_find(s, command) == SIM_CALLS_SLOTS) {
    return SIM_COMMAND_SLOTS;
  }
  if (!s->config.notifications) {
    return SIM_COMMAND_UNKNOWN;
  }
  if (command->count == 3 && resp_is(command, 0, "PUBLISH")) {
    return SIM_COMMAND_PROBE;
  }
  bool script = command->count >= 5 && command->count <= 8 &&
                (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA"));
  return script ? kinds[sim_calls_find(s, command)] : SIM_COMMAND_UNKNOWN;
}

static bool sim_calls_is_semaphore(const resp_request *command) {
  return resp_equals(command, 3, SIM_SEMAPHORE, sizeof SIM_SEMAPHORE - 1);
}

/* EVALSHA or EVAL, script, 1, key, permits: which slots exist. */
static void sim_calls_slots(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  char reply[32];
  unsigned digit = 0;
  if (!sim_calls_is_semaphore(command) || resp_number(command, 4) != s->config.permits) {
    sim_violation(s, "wire", "a question about slots that the node does not understand");
    return;
  }
  for (unsigned i = 0; i < 4; i++) {
    const sim_key *key =
        i < s->config.permits ? sim_key_find(s, from->node, from->database, i) : NULL;
    digit = digit * 2 + (key != NULL && !key->foreign_type);
  }
  (void)snprintf(reply, sizeof reply, "$1\r\n%x\r\n", digit);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

unsigned sim_calls_resource(const sim *s, const resp_request *command) {
  bool several = command->count == 8 && resp_is(command, 2, "2");
  bool understood = s->config.notifications && command->count >= 5 &&
                    (several || resp_is(command, 2, "1")) &&
                    command->lengths[several ? 5 : 4] == SIM_ENTRY_LENGTH;
  return !understood                       ? SIM_RESOURCES_MAX
         : sim_calls_is_semaphore(command) ? 0
                                           : sim_script_resource(command, 3);
}

uint32_t sim_calls_ticket(const resp_request *command) {
  return sim_calls_place(command->words[command->count == 8 ? 5 : 4]);
}

uint32_t sim_calls_place(const char *entry) {
  uint32_t place = 0;
  for (unsigned i = SIM_CHANNEL_LENGTH; i < SIM_ENTRY_LENGTH; i++) {
    place = place << 4 | (uint32_t)(entry[i] <= '9' ? entry[i] - '0' : entry[i] - 'a' + 10);
  }
  return place;
}

bool sim_calls_leaves(sim *s, const resp_request *command, uint32_t *place) {
  sim_calls_script script = sim_calls_find(s, command);
  unsigned at = script == SIM_CALLS_RELEASE_ALL ? 6 : 5;
  if ((script != SIM_CALLS_RELEASE && script != SIM_CALLS_RELEASE_ALL) ||
      command->count != at + 1 || command->lengths[at] != SIM_ENTRY_LENGTH) {
    return false;
  }
  *place = sim_calls_place(command->words[at]);
  return true;
}

/* ------------------------------------------------------------------------------------ queues */

sim_waiters *sim_calls_waiters(sim *s, unsigned node, unsigned database, unsigned resource) {
  sim_waiters *waiters = &s->nodes[node].data.waiters[database][resource];
  if (waiters->expire_ms != 0 && sim_key_wall_ms(s, node) > waiters->expire_ms) {
    sim_count(s, SIM_QUEUE_EXPIRED);
    waiters->count = 0;
  }
  waiters->expire_ms = waiters->count == 0 ? 0 : waiters->expire_ms;
  return waiters;
}

void sim_calls_lose(sim *s, unsigned node) {
  memset(s->nodes[node].data.waiters, 0, sizeof s->nodes[node].data.waiters);
}

static bool sim_calls_denies(const sim *s, unsigned node, sim_deaf what) {
  return s->now_us < s->nodes[node].deaf_until_us && (s->nodes[node].deaf & (unsigned)what) != 0;
}

/* ------------------------------------------------------------------------------------ calling */

/* PUBLISH. Returns the number of receivers. */
static unsigned sim_calls_publish(sim *s, unsigned node, const char *channel, const char *message,
                                  size_t length) {
  char bytes[256];
  unsigned receivers = 0;
  sim_note note = {.token = SIM_NO_TOKEN, .kind = SIM_COMMAND_MESSAGE, .asked = true};
  int head = snprintf(
      bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\n" SIM_CALLS_CHANNEL "%.*s\r\n$%zu\r\n",
      sizeof SIM_CALLS_CHANNEL - 1 + SIM_CHANNEL_LENGTH, SIM_CHANNEL_LENGTH, channel, length);
  memcpy(bytes + head, message, length);
  memcpy(bytes + (size_t)head + length, "\r\n", 2);
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    const sim_connection *connection = &s->connections[i];
    if (!connection->used || !connection->subscribed || connection->node != node ||
        !connection->node_open || memcmp(connection->channel, channel, SIM_CHANNEL_LENGTH) != 0) {
      continue;
    }
    receivers++;
    if (!connection->client_open) {
      sim_count(s, SIM_NOTIFY_UNNOTICED);
    } else if (length == 0 || sim_waiting_calls(s, i)) {
      sim_network_reply(s, i, bytes, (size_t)head + length + 2, &note);
    }
  }
  return receivers;
}

/* Publishes a notification of |entry|. */
static unsigned sim_calls_tell(sim *s, unsigned node, unsigned resource, const char *entry) {
  char message[128];
  size_t length;
  const char *key =
      s->config.permits > 0 ? sim_slot(resource, &length) : sim_resource(resource, &length);
  memcpy(message, entry + SIM_CHANNEL_LENGTH, SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH);
  memcpy(message + SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH, key, length);
  unsigned heard =
      sim_calls_publish(s, node, entry, message, SIM_ENTRY_LENGTH - SIM_CHANNEL_LENGTH + length);
  SIM_TRACE(s, "node %u: calls place %x of %u: %u hear it", node, sim_calls_place(entry), resource,
            heard);
  sim_count(s, heard > 0 ? SIM_NOTIFIED : SIM_NOTIFIED_DISCONNECTED);
  return heard;
}

/* The queue of a resource on a node, for csrc/test/lib/wait_queue.h. */
typedef struct sim_calls_queue {
  wait_queue model;
  sim *s;
  unsigned node, resource;
  sim_waiters *waiters;
} sim_calls_queue;

static int sim_calls_notify(void *context, const char *entry) {
  const sim_calls_queue *queue = context;
  return sim_calls_denies(queue->s, queue->node, SIM_DEAF_PUBLISH)
             ? -1
             : (int)sim_calls_tell(queue->s, queue->node, queue->resource, entry);
}

/* Fills |queue|; sim_calls_close() stores what has become of it. */
static sim_waiters *sim_calls_open(sim_calls_queue *queue, sim *s, const sim_connection *from,
                                   unsigned resource) {
  sim_waiters *waiters =
      sim_calls_waiters(s, from->node, from->database, s->config.permits > 0 ? 0 : resource);
  wait_queue model = {waiters->entries,
                      waiters->count,
                      s->config.waiters_max,
                      false,
                      sim_calls_notify,
                      queue,
                      NULL};
  model.reserved_for =
      sim_key_wall_ms(s, from->node) <= waiters->reserved_until_ms ? waiters->reserved_for : NULL;
  *queue = (sim_calls_queue){model, s, from->node, resource, waiters};
  return waiters;
}

static void sim_calls_close(const sim_calls_queue *queue) {
  queue->waiters->count = (uint8_t)queue->model.count;
  queue->waiters->expire_ms = queue->model.count == 0 ? 0 : queue->waiters->expire_ms;
}

/* Sets the waiters flag. */
static void sim_calls_sign(sim *s, unsigned node, sim_waiters *waiters) {
  waiters->sign_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
}

static bool sim_calls_is_full(const sim *s, unsigned node) {
  return s->nodes[node].error == SIM_NODE_ERROR_OOM && s->now_us < s->nodes[node].error_until_us;
}

/*
 * Stores the rest of a queue that had |before| entries, or gives it up without memory. A script
 * that has deleted something may write.
 */
static void sim_calls_store(sim *s, unsigned node, sim_waiters *waiters, unsigned before,
                            bool full) {
  if (waiters->count == 0) {
    waiters->sign_ms = before > 0 ? 0 : waiters->sign_ms;
  } else if (waiters->count != before && full) {
    SIM_TRACE(s, "node %u: a queue that there is no memory for is given up", node);
    waiters->count = 0;
    waiters->expire_ms = 0;
  } else if (waiters->count != before) {
    waiters->expire_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
  }
}

/* The key is deleted with the waiters flag. Notifies the first entry if the flag was set. */
static wait_queue_notified sim_calls_by_sign(sim *s, const sim_connection *from,
                                             unsigned resource) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  if (sim_calls_denies(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  bool sign = waiters->sign_ms != 0 && sim_key_wall_ms(s, from->node) <= waiters->sign_ms;
  waiters->sign_ms = 0;
  if (!sign) {
    sim_count(s, SIM_NO_FLAG);
    return WAIT_QUEUE_EMPTY;
  }
  unsigned before = waiters->count;
  wait_queue_notified said = wait_queue_notify_first(&queue.model);
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, false);
  if (waiters->count > 0) {
    sim_calls_sign(s, from->node, waiters);
  }
  return said;
}

/* Dequeues the lease, and notifies the first entry if the key is |free| or was |deleted|. */
static wait_queue_notified sim_calls_by_queue(sim *s, const sim_connection *from, unsigned resource,
                                              const char *entry, bool free, bool deleted) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  bool full = !deleted && sim_calls_is_full(s, from->node);
  if (sim_calls_denies(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  if (entry != NULL) {
    while (wait_queue_remove(&queue.model, entry)) {
    }
  }
  wait_queue_notified said = free ? wait_queue_notify_first(&queue.model) : WAIT_QUEUE_EMPTY;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, full);
  if (entry != NULL && waiters->count > 0 && entry[19] == '0' && !full) {
    sim_calls_sign(s, from->node, waiters);
  }
  return said;
}

wait_queue_notified sim_calls_held(sim *s, const sim_connection *from, unsigned resource,
                                   const char *entry, bool tells, bool wrote) {
  sim_calls_queue queue;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  if (sim_calls_denies(s, from->node, SIM_DEAF_QUEUE)) {
    return WAIT_QUEUE_FORBIDDEN;
  }
  if (entry != NULL) {
    (void)wait_queue_remove(&queue.model, entry);
  }
  wait_queue_notified said = tells ? wait_queue_notify_first(&queue.model) : WAIT_QUEUE_EMPTY;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, !wrote && sim_calls_is_full(s, from->node));
  return said;
}

/* ---------------------------------------------------------------------------------- the scripts */

static bool sim_calls_is_ours(const sim_key *key, const resp_request *command, unsigned token) {
  return key != NULL && !key->foreign_type && sim_key_is(key, command, token);
}

static void sim_calls_delete(sim *s, const sim_connection *from, sim_key *key,
                             const sim_request *request, unsigned resource) {
  check_touched(s, from, key, request->token, SIM_COMMAND_RELEASE);
  key->used = false;
  sim_key_deleted(s, from->node, resource, key->token);
  if (request->forced) {
    sim_key_forced(s, from->node, key->token);
  }
}

static const char sim_calls_wrong_type[] =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

static void sim_calls_released(sim *s, int connection, const sim_request *request, bool granted,
                               wait_queue_notified said) {
  char reply[8] = ":0\r\n";
  if (granted) {
    (void)snprintf(reply, sizeof reply, ":%u\r\n", (unsigned)said);
  }
  if (granted && said == WAIT_QUEUE_FORBIDDEN) {
    sim_count(s, SIM_RELEASE_SILENT);
  }
  sim_count(s, granted ? SIM_SCRIPT_GRANTED : SIM_SCRIPT_REFUSED);
  sim_node_reply(s, connection, request, reply,
                 granted ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* EVALSHA or EVAL, script, 1, key, token[, entry] */
static void sim_calls_release(sim *s, int connection, const resp_request *command,
                              const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_script_resource(command, 3);
  bool leaves = command->count == 6;
  bool based = command->count == 7 && resp_is(command, 5, "") && resp_is(command, 6, SIM_SEMAPHORE);
  if (resource == SIM_RESOURCES_MAX || !resp_is(command, 2, "1") ||
      based != (s->config.permits > 0) ||
      !sim_tap_is_token(command->words[4], command->lengths[4]) ||
      (leaves && command->lengths[5] != SIM_ENTRY_LENGTH)) {
    sim_violation(s, "wire", "a release that calls, which the node does not understand");
    return;
  }
  sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL && key->foreign_type) {
    sim_count(s, SIM_SCRIPT_WRONG_TYPE);
    sim_node_reply(s, connection, request, sim_calls_wrong_type, SIM_OUTCOME_REFUSED);
    return;
  }
  bool ours = sim_calls_is_ours(key, command, 4);
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  if (ours) {
    sim_calls_delete(s, from, key, request, resource);
  }
  if (ours && !leaves) {
    said = sim_calls_by_sign(s, from, resource);
  } else if (leaves || key == NULL) {
    said = sim_calls_by_queue(s, from, resource, leaves ? command->words[5] : NULL,
                              key == NULL || ours, ours);
  }
  SIM_TRACE(s, "node %u: release of %u by token %u%s: %s%s%s", from->node, resource, request->token,
            leaves ? ", which leaves the queue" : "", ours ? "1" : "0",
            said == WAIT_QUEUE_NOTIFIED ? ", calls" : "",
            from->client_open ? "" : " (on a connection that was given up)");
  sim_calls_released(s, connection, request, ours, said);
}

/* EVALSHA or EVAL, script, 2, key, key, token[, entry] */
static void sim_calls_release_all(sim *s, int connection, const resp_request *command,
                                  const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  unsigned ours = 0;
  bool leaves = command->count == 7;
  bool wrong = false, understood = resp_is(command, 2, "2") && (command->count == 6 || leaves) &&
                                   sim_tap_is_token(command->words[5], command->lengths[5]) &&
                                   (!leaves || command->lengths[6] == SIM_ENTRY_LENGTH);
  for (unsigned i = 0; i < 2 && understood; i++) {
    understood = sim_script_resource(command, 3 + i) != SIM_RESOURCES_MAX;
  }
  for (unsigned i = 0; i < 2 && understood; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    sim_key *key = sim_key_find(s, from->node, from->database, resource);
    wrong = wrong || (key != NULL && key->foreign_type);
    if (sim_calls_is_ours(key, command, 5)) {
      ours++;
      sim_calls_delete(s, from, key, request, resource);
      if (!leaves) {
        wait_queue_notified one = sim_calls_by_sign(s, from, resource);
        said = one != WAIT_QUEUE_EMPTY ? one : said;
      }
    }
    bool deleted = key != NULL && !key->used;
    if (leaves && (key == NULL || !key->foreign_type)) {
      wait_queue_notified one =
          sim_calls_by_queue(s, from, resource, command->words[6], key == NULL || deleted, deleted);
      said = one != WAIT_QUEUE_EMPTY ? one : said;
    }
  }
  if (!understood) {
    sim_violation(s, "wire", "a release of several keys that the node does not understand");
    return;
  }
  sim_count(s, ours == 2 ? SIM_SEVERAL_GRANTED : SIM_SEVERAL_REFUSED);
  if (wrong) {
    sim_node_reply(s, connection, request, sim_calls_wrong_type, SIM_OUTCOME_REFUSED);
  } else {
    sim_calls_released(s, connection, request, ours == 2, said);
  }
}

/* Prolongs the queue and its flag. Both disappear with the last entry. */
static void sim_calls_live(sim *s, unsigned node, sim_waiters *waiters) {
  uint64_t ends_ms = sim_key_wall_ms(s, node) + SIM_CALLS_LIFE_MS;
  waiters->expire_ms = waiters->count > 0 ? ends_ms : 0;
  waiters->sign_ms = waiters->count > 0 ? ends_ms : 0;
}

/*
 * Returns the answer of ENQUEUE; -1 if it is forbidden, or there is no memory for it. A script that
 * finds no memory has changed nothing but the entries that it removed.
 */
/*
 * Returns a key that keeps a waiter out: that of the resource, or of the slot of a semaphore that
 * expires first, if no slot is free. Otherwise NULL, and |*resource| is free.
 */
static const sim_key *sim_calls_holder(sim *s, const sim_connection *from, unsigned *resource) {
  const sim_key *first = sim_key_find(s, from->node, from->database, *resource);
  for (unsigned i = 0; i < s->config.permits; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, i);
    if (key == NULL) {
      *resource = i;
      return NULL;
    }
    first = i == 0 || key->expire_ms < first->expire_ms ? key : first;
  }
  return first;
}

static int64_t sim_calls_enqueue(sim *s, const sim_connection *from, unsigned resource,
                                 const char *entry, uint64_t mode, sim_request *request) {
  sim_calls_queue queue;
  const sim_key *key = sim_calls_holder(s, from, &resource);
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  bool full = sim_calls_is_full(s, from->node), appends = mode == RL_COMMAND_ENQUEUE_APPEND;
  unsigned before = waiters->count;
  if (full && (appends || key != NULL)) {
    return -1;
  }
  queue.model.max = full ? 0 : queue.model.max;
  int64_t answer =
      wait_queue_enqueue(&queue.model, entry, (unsigned)mode,
                         key == NULL ? 0 : key->expire_ms - sim_key_wall_ms(s, from->node) + 2);
  sim_calls_close(&queue);
  if (queue.model.evicted) {
    sim_count(s, SIM_EVICTED);
  }
  if (appends && before > 0 && answer / RL_COMMAND_ENQUEUE_UNIT == 1 && waiters->count > before) {
    sim_count(s, SIM_ENQUEUE_JOINED);
    return answer;
  }
  bool writes = answer != 0 || appends || waiters->count != before;
  if (answer < 0 || (full && writes && waiters->count > 0)) {
    return -1;
  }
  if (writes) {
    sim_calls_live(s, from->node, waiters);
  }
  request->full = answer != 0 && answer % RL_COMMAND_ENQUEUE_UNIT == 0;
  if (request->full) {
    sim_count(s, SIM_QUEUE_FULL);
  }
  return answer;
}

/* Writes the answer with the label of the holder. Returns false if there is none. */
static bool sim_calls_label(sim *s, const sim_connection *from, unsigned resource, int64_t answer,
                            char *reply, size_t size) {
  const sim_key *key = sim_key_find(s, from->node, from->database, resource);
  char text[160];
  if (answer < 2 * RL_COMMAND_ENQUEUE_UNIT || key == NULL || key->foreign_type ||
      key->value_length <= REDLOCK_TOKEN_LENGTH + 1) {
    return false;
  }
  int length =
      snprintf(text, sizeof text, "%lld%.*s", (long long)answer,
               (int)key->value_length - REDLOCK_TOKEN_LENGTH, key->value + REDLOCK_TOKEN_LENGTH);
  (void)snprintf(reply, size, "$%d\r\n%s\r\n", length, text);
  return true;
}

/* EVALSHA or EVAL, script, 1, key, entry, mode */
static void sim_calls_stand(sim *s, int connection, const resp_request *command,
                            sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  const char *entry = command->words[4];
  unsigned resource = sim_calls_resource(s, command);
  char reply[256];
  uint64_t mode =
      resp_number(command, 5); /* 0: new; 1: it may be there; else the position of before */
  if (resource == SIM_RESOURCES_MAX || command->count != (s->config.permits > 0 ? 7 : 6) ||
      mode > RL_COMMAND_ENQUEUE_APPEND) {
    sim_violation(s, "wire", "a STAND that the node does not understand");
    return;
  }
  bool denied = sim_calls_denies(s, from->node, SIM_DEAF_QUEUE);
  bool full = sim_calls_is_full(s, from->node);
  int64_t answer = denied ? -1 : sim_calls_enqueue(s, from, resource, entry, mode, request);
  if (answer < 0) {
    sim_count(s, SIM_ENQUEUE_DENIED);
    sim_node_reply(s, connection, request,
                   full && !denied ? "-OOM command not allowed when used memory > "
                                     "'maxmemory'.\r\n"
                                   : SIM_CALLS_NOPERM,
                   SIM_OUTCOME_ERROR);
    return;
  }
  sim_count(s, answer == 0                        ? SIM_ENQUEUE_FREE
               : answer < RL_COMMAND_ENQUEUE_UNIT ? SIM_ENQUEUE_BEHIND
                                                  : SIM_ENQUEUE_HELD);
  SIM_TRACE(s, "node %u: place %x of client %u stands for %u: %lld", from->node,
            sim_calls_place(entry), from->client, resource, (long long)answer);
  if (sim_calls_find(s, command) != SIM_CALLS_STAND_LABEL ||
      !sim_calls_label(s, from, resource, answer, reply, sizeof reply)) {
    (void)snprintf(reply, sizeof reply, ":%lld\r\n", (long long)answer);
  }
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

/* Reserves the free key for the entry. */
static void sim_calls_reserve(sim *s, unsigned node, sim_waiters *waiters, const char *entry) {
  memcpy(waiters->reserved_for, entry, SIM_ENTRY_LENGTH);
  waiters->reserved_until_ms = sim_key_wall_ms(s, node) + RL_COMMAND_RESERVE_MS;
  sim_count(s, SIM_RESERVED);
}

/* The next waiter takes the key that the node must reserve: only as a breach. */
static void sim_calls_reserve_nothing(wait_queue_key *keys, char *places) {
  for (unsigned i = 0; i < 2; i++) {
    wait_queue *queue = keys[i].queue;
    if (keys[i].reserves && queue->count > 1) {
      (void)queue->notify(queue->context, queue->entries[1]);
    }
    keys[i].reserves = false;
  }
  if (places[0] != '\0') {
    places[0] = '0';
  }
}

/* EVALSHA or EVAL, script, 2, key, key, entry, before, notified */
static void sim_calls_stand_all(sim *s, int connection, const resp_request *command,
                                sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_calls_queue queues[2];
  wait_queue_key keys[2];
  sim_waiters *waiters[2];
  char places[64] = "", text[160], reply[200];
  unsigned mask = 0, before[2] = {0, 0};
  char notified[3] = "";
  if (sim_calls_resource(s, command) == SIM_RESOURCES_MAX || command->count != 8 ||
      command->lengths[6] >= sizeof places || command->lengths[7] >= sizeof notified) {
    sim_violation(s, "wire", "a STAND for several keys that the node does not understand");
    return;
  }
  if (sim_calls_denies(s, from->node, SIM_DEAF_QUEUE) || sim_calls_is_full(s, from->node)) {
    sim_count(s, SIM_ENQUEUE_DENIED);
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  memcpy(text, command->words[6], command->lengths[6]);
  text[command->lengths[6]] = '\0';
  memcpy(notified, command->words[7], command->lengths[7]);
  (void)sscanf(text, "%u,%u,%u", &mask, &before[0], &before[1]);
  for (unsigned i = 0; i < 2; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    const sim_key *key = sim_key_find(s, from->node, from->database, resource);
    waiters[i] = sim_calls_open(&queues[i], s, from, resource);
    keys[i] = (wait_queue_key){
        .queue = &queues[i].model,
        .left = key == NULL ? 0 : key->expire_ms - sim_key_wall_ms(s, from->node) + 2,
        .before = before[i]};
  }
  int64_t answer =
      wait_queue_enqueue_all(keys, 2, command->words[5], notified, places, sizeof places);
  if (s->breach == SIM_BREACH_KEY_NOT_RESERVED) {
    sim_calls_reserve_nothing(keys, places);
  }
  for (unsigned i = 0; i < 2; i++) {
    sim_calls_close(&queues[i]);
    sim_calls_live(s, from->node, waiters[i]);
    if (keys[i].reserves) {
      sim_calls_reserve(s, from->node, waiters[i], command->words[5]);
    }
  }
  if (answer < 0) {
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  request->full = places[0] == '\0';
  sim_count_if(s, request->full, SIM_QUEUE_FULL);
  int length = snprintf(text, sizeof text, "%lld:%s", (long long)answer, places);
  if (answer == 0 || places[0] == '\0') {
    (void)snprintf(reply, sizeof reply, ":%lld\r\n", (long long)answer);
  } else {
    (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, text);
  }
  SIM_TRACE(s, "node %u: place %x of client %u stands for both: %s", from->node,
            sim_calls_place(command->words[5]), from->client, text);
  sim_count(s, answer == 0 ? SIM_ENQUEUE_ALL_FREE : SIM_ENQUEUE_ALL);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

/* EVALSHA or EVAL, script, 1, key, entry */
static void sim_calls_leave(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_calls_resource(s, command);
  bool slots = sim_calls_find(s, command) == SIM_CALLS_LEAVE_SLOTS;
  if (resource == SIM_RESOURCES_MAX || command->count != (slots ? 6 : 5)) {
    sim_violation(s, "wire", "a LEAVE that the node does not understand");
    return;
  }
  if (sim_calls_denies(s, from->node, SIM_DEAF_QUEUE)) {
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  if (s->config.permits > 0 && !sim_calls_is_semaphore(command)) { /* A slot has no queue. */
    sim_node_reply(s, connection, request, ":0\r\n", SIM_OUTCOME_GRANTED);
    return;
  }
  sim_calls_queue queue;
  bool held = sim_calls_holder(s, from, &resource) != NULL;
  sim_waiters *waiters = sim_calls_open(&queue, s, from, resource);
  unsigned before = waiters->count;
  unsigned count = 0;
  while (wait_queue_remove(&queue.model, command->words[4])) {
    count++;
  }
  /* The semaphore's name is no key, so DEQUEUE takes it for free. */
  bool called = (!held || (s->config.permits > 0 && !slots)) &&
                wait_queue_notify_first(&queue.model) == WAIT_QUEUE_NOTIFIED;
  sim_calls_close(&queue);
  sim_calls_store(s, from->node, waiters, before, sim_calls_is_full(s, from->node));
  sim_count(s, called ? SIM_DEQUEUED_AND_NOTIFIED : SIM_DEQUEUED);
  SIM_TRACE(s, "node %u: place %x of client %u leaves the queue of %u: %u", from->node,
            sim_calls_place(command->words[4]), from->client, resource, count);
  sim_node_reply(s, connection, request, count > 0 ? ":1\r\n" : ":0\r\n", SIM_OUTCOME_GRANTED);
}

/* PUBLISH of nothing to the client's own channel. */
static void sim_calls_probe(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  size_t prefix = sizeof SIM_CALLS_CHANNEL - 1;
  char reply[16];
  if (command->lengths[1] != prefix + SIM_CHANNEL_LENGTH || command->lengths[2] != 0 ||
      memcmp(command->words[1], SIM_CALLS_CHANNEL, prefix) != 0) {
    sim_violation(s, "wire", "a probe that is none");
    return;
  }
  if (sim_calls_denies(s, from->node, SIM_DEAF_PUBLISH)) {
    sim_count(s, SIM_PROBE_DENIED);
    sim_node_reply(s, connection, request, SIM_CALLS_NOPERM, SIM_OUTCOME_ERROR);
    return;
  }
  unsigned heard = sim_calls_publish(s, from->node, command->words[1] + prefix, "", 0);
  sim_count(s, heard > 0 ? SIM_PROBE_RECEIVED : SIM_PROBE_LOST);
  (void)snprintf(reply, sizeof reply, ":%u\r\n", heard);
  sim_node_reply(s, connection, request, reply, SIM_OUTCOME_GRANTED);
}

void sim_calls_eval(sim *s, int connection, const resp_request *command, sim_request *request) {
  sim_node *node = &s->nodes[s->connections[connection].node];
  if (request->kind == SIM_COMMAND_PROBE) {
    sim_calls_probe(s, connection, command, request);
    return;
  }
  sim_calls_script script = sim_calls_find(s, command);
  if (!request->by_text && (node->calling >> script & 1) == 0) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (request->by_text) {
    node->calling |= 1u << script;
    sim_count(s, SIM_SCRIPT_BY_TEXT);
  }
  if (request->kind == SIM_COMMAND_RELEASE && request->token < s->token_count && !request->forced) {
    s->tokens[request->token].released_there |= 1u << s->connections[connection].node;
  }
  switch (script) {
  case SIM_CALLS_RELEASE:
    sim_calls_release(s, connection, command, request);
    break;
  case SIM_CALLS_RELEASE_ALL:
    sim_calls_release_all(s, connection, command, request);
    break;
  case SIM_CALLS_STAND:
  case SIM_CALLS_STAND_LABEL:
    sim_calls_stand(s, connection, command, request);
    break;
  case SIM_CALLS_STAND_SLOTS:
    sim_calls_stand(s, connection, command, request);
    break;
  case SIM_CALLS_SLOTS:
    sim_calls_slots(s, connection, command, request);
    break;
  case SIM_CALLS_STAND_ALL:
    sim_calls_stand_all(s, connection, command, request);
    break;
  default:
    sim_calls_leave(s, connection, command, request);
    break;
  }
}

const char *sim_calls_odd(sim *s) {
  static const char *const odd[] = {"$3\r\nfoo\r\n", "*0\r\n",  ":0\r\n",       ":7\r\n",
                                    "+QUEUED\r\n",   ":-1\r\n", ":12000003\r\n"};
  return odd[sim_below(&s->random_calls, sizeof odd / sizeof odd[0])];
}

/* ----------------------------------------------------------------------------------- listening */

bool sim_calls_listen(sim *s, int index, const resp_request *command, const sim_request *request) {
  sim_connection *connection = &s->connections[index];
  size_t prefix = sizeof SIM_CALLS_CHANNEL - 1;
  char reply[128];
  if (resp_is(command, 0, "PING")) {
    sim_count(s, SIM_SUBSCRIBER_PINGED);
    sim_node_reply(s, index, request,
                   connection->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n",
                   connection->subscribed ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_ERROR);
    return true;
  }
  if (command->count != 2 || command->lengths[1] != prefix + SIM_CHANNEL_LENGTH) {
    sim_violation(s, "wire", "a SUBSCRIBE that the node does not understand");
    return true;
  }
  if (sim_calls_denies(s, connection->node, SIM_DEAF_SUBSCRIBE)) {
    sim_count(s, SIM_SUBSCRIBE_DENIED);
    return false;
  }
  connection->subscribed = true;
  memcpy(connection->channel, command->words[1] + prefix, SIM_CHANNEL_LENGTH);
  (void)snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%.*s\r\n:1\r\n",
                 command->lengths[1], (int)command->lengths[1], command->words[1]);
  sim_count(s, SIM_SUBSCRIBED);
  sim_node_reply(s, index, request, reply, SIM_OUTCOME_GRANTED);
  return true;
}
