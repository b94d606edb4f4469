/*
 * The texts of the scripts that nodes run.
 *
 * SPDX-License-Identifier: MIT
 *
 * Release: deletes the key only if it still has the token (specification, "Correct Implementation
 * with a Single Instance").
 * Extend: prolongs the key only if it still has the token. It never creates or shortens a key. If
 * the extend fails, the old deadline stands, and a shorter key would end before it.
 *
 * Several keys: a node takes all or none. A script is atomic, and checks all keys before it changes
 * one. Only a release treats each key separately: a missing key must not prevent the deletion of
 * the other keys.
 * Acquire: sets nothing if any key exists, whatever its token.
 * Heal: sets the missing keys of a confirmed lease, and prolongs the others. It shortens no key,
 * because a late heal may follow an extend.
 *
 * With a fencing token (rl_fence.c) each key has a counter, which only grows. With a guard
 * (rl_guard.c) each node has a record. One script changes all of it or nothing: TAKE checks
 * everything before it writes. Both return the node's clock.
 *
 * RL_TEXT_... are parts of texts; rl_script_queue.h has those of queues. A changed text needs its
 * new SHA-1.
 */
#include "wire/rl_script.h"

#include <assert.h>

#include "base/rl_label.h"
#include "wire/rl_lineage.h"
#include "wire/rl_script_queue.h"

/* Texts have one Lua statement a line, indented as in Lua. */
/* clang-format off */

/*
 * The replication history in |was|: the second replication id and its offset, which a promotion
 * changes. A replica has "f" before it.
 */
#define RL_TEXT_HISTORY \
  "local c,a,b=string.match(redis.call('INFO','replication')," \
      "'role:(%a+).*_replid2:(%x+).*second_repl_offset:(%-?%d+)') " \
  "local was=a and " \
      "(c=='master' and '' or 'f')..string.sub(a,1,16)..string.format('%.0f',b+1) or '' "

/*
 * "If the node is not" the server of |argument|: "run_id-history". The script's name may identify
 * the server already: then the run_id is empty.
 */
#define RL_TEXT_SERVER(argument) \
  "local run,past=string.match(" argument ",'^(%w*)-(%x*)$') " \
  RL_TEXT_HISTORY \
  "if (past~='' and past~=was) or " \
      "(run~='' and not string.find(redis.call('INFO','server'),'run_id:'..run,1,true)) "

#define RL_TEXT_TAKES_SERVER RL_TEXT_SERVER("ARGV[7]")

/*
 * The seal is a key with a hash of the record in its name. Its value is "raw" only in the memory
 * where APPEND has lengthened it. A short string from a snapshot or a full resynchronisation is
 * "embstr", and no replica receives the APPEND. Newer servers count the key's name towards the
 * limit of "embstr", so the name is short, and the script first sets the whole value: a server that
 * stores it as "raw" at once would also load it as "raw". Such a server gets no seal and no record.
 */
#define RL_TEXT_SEAL_OF(record) \
  "'" RL_LINEAGE_SEAL "'..string.sub(redis.sha1hex(" record "),1," RL_LINEAGE_SEAL_DIGITS ")"
#define RL_TEXT_SEAL RL_TEXT_SEAL_OF("r")
#define RL_TEXT_UNSEALED(seal) "redis.call('OBJECT','ENCODING'," seal ")~='raw' "
#define RL_TEXT_SEALS \
  "local seal=" RL_TEXT_SEAL " " \
  "redis.call('SET',seal,'ok') " \
  "local copied=redis.call('OBJECT','ENCODING',seal) " \
  "redis.call('SET',seal,'o') " \
  "redis.set_repl(redis.REPL_NONE) " \
  "redis.call('APPEND',seal,'k') " \
  "redis.set_repl(redis.REPL_ALL) " \
  "local own=redis.call('OBJECT','ENCODING',seal) " \
  "if copied~='embstr' or own~='raw' then " \
    "redis.call('DEL',seal) " \
    "return redis.error_reply('" RL_SCRIPT_NO_SEAL " '..copied..' after SET and '..own.." \
        "' after APPEND') " \
  "end "
#define RL_TEXT_TAKES_UNSEALED RL_TEXT_UNSEALED("KEYS[#KEYS]")
#define RL_TEXT_RECORD_UNSEALED RL_TEXT_UNSEALED(RL_TEXT_SEAL)
#define RL_TEXT_HERE_UNSEALED RL_TEXT_UNSEALED(RL_TEXT_SEAL_OF("ARGV[5]"))

/*
 * "Delete" |key| and the waiters flag of |k|, in one command. |n| becomes 1 if there is no flag, 2
 * if there is one, 3 if the user lacks the right to delete it.
 */
#define RL_TEXT_DELETE(key) \
  "n=redis.pcall('DEL'," key ",k..':redlock-wait') " \
  "if n~=1 and n~=2 then " \
    "redis.call('DEL'," key ") " \
    "n=3 " \
  "end "

/*
 * Lets the key |l| and the counter of its fencing tokens live until the end of hold_at_least. The
 * counter lives for a week more: 604800000 ms.
 */
#define RL_TEXT_PROLONG \
  "redis.call('PEXPIRE',l,ARGV[2]) " \
  "local f=KEYS[n+i] " \
  "if f then " \
    "local p=redis.call('PTTL',f) " \
    "if p>=0 and p<604800000+t then " \
      "redis.call('PEXPIRE',f,string.format('%.0f',604800000+t)) " \
    "end " \
  "end "

/*
 * PROLONG and CONFIRM: all keys must have the token. Their counters become at least the fencing
 * token |f|, and live for a week longer than the keys: 604800000 ms.
 */
#define RL_TEXT_CONFIRM_KEYS \
  "local n,f=tonumber(ARGV[3]),tonumber(ARGV[4]) " \
  "local t=redis.call('TIME') " \
  "local function say(word) " \
    "return string.format('%s %.0f 0',word,t[1]*1000000+t[2]) " \
  "end " \
  "for i=1,n do " \
    "if redis.call('GET',KEYS[i])~=ARGV[1] then return say('no') end " \
  "end "
#define RL_TEXT_RAISE_COUNTERS \
  "if f>0 then " \
    "local life=string.format('%.0f',604800000+ARGV[2]) " \
    "for i=n+1,2*n do " \
      "local c=redis.pcall('GET',KEYS[i]) " \
      "c=type(c)=='string' and tonumber(c) or 0 " \
      "if c<f then " \
        "redis.call('SET',KEYS[i],string.format('%.0f',f),'PX',life) " \
      "else " \
        "redis.call('PEXPIRE',KEYS[i],life) " \
      "end " \
    "end " \
  "end " \
  "return say('OK')"

static_assert(RL_LABELLED_MAX == 105, "the number in ENQUEUE_LABEL and SLOTS");

static const struct rl_script_source {
  const char *text, *sha1;
} rl_script_sources[] = {
    [RL_SCRIPT_RELEASE] = {
        "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end "
        "return 0",
        "5c714dd8ed5b943a1f472132e06290c53ab22693"},
    [RL_SCRIPT_EXTEND] = {
        "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
        "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then "
          "redis.call('PEXPIRE',KEYS[1],ARGV[2]) "
        "end "
        "return 1",
        "c1230f830fe0653f1187d6f298581b35d996fb43"},
    [RL_SCRIPT_RELEASE_ALL] = {
        "local n,e=0 "
        "for i=1,#KEYS do "
          "local v=redis.pcall('GET',KEYS[i]) "
          "if v==ARGV[1] then "
            "n=n+redis.call('DEL',KEYS[i]) "
          "elseif type(v)=='table' then "
            "e=v "
          "end "
        "end "
        "if e then return e end "
        "if n==#KEYS then return 1 end "
        "return 0",
        "cde6755350dccf507d228890316057017a7a6eee"},
    [RL_SCRIPT_EXTEND_ALL] = {
        "for i=1,#KEYS do if redis.call('GET',KEYS[i])~=ARGV[1] then return 0 end end "
        "for i=1,#KEYS do "
          "if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
            "redis.call('PEXPIRE',KEYS[i],ARGV[2]) "
          "end "
        "end "
        "return 1",
        "26aa5ee44c58fc3c5b666da61ed95d42ceb30811"},
    [RL_SCRIPT_ACQUIRE_ALL] = {
        "for i=1,#KEYS do if redis.call('EXISTS',KEYS[i])==1 then return i end end "
        "for i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end "
        "return redis.status_reply('OK')",
        "cb58520638d93388c18ec29787ed71d8eb118760"},
    [RL_SCRIPT_HEAL_ALL] = {
        "for i=1,#KEYS do "
          "local v=redis.call('GET',KEYS[i]) "
          "if v and v~=ARGV[1] then return i end "
        "end "
        "for i=1,#KEYS do "
          "if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
            "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) "
          "end "
        "end "
        "return redis.status_reply('OK')",
        "1dfc9c1b6dae0dea7df0b4853893ec25cff5f575"},
    /* A counter lives for a week longer than its keys, 604800000 ms. */
    [RL_SCRIPT_TAKE] = {
        "local n,p,own=tonumber(ARGV[3]),tonumber(ARGV[5]),ARGV[4]=='1' "
        "local t=redis.call('TIME') "
        "local now=t[1]..string.sub('00000'..t[2],-6) "
        /* Is this the server of the guard's record? */
        "if ARGV[6]~='' then "
          "if " RL_TEXT_TAKES_UNSEALED "then return 'other '..now..' 0' end "
          "if ARGV[7]~='' then " RL_TEXT_TAKES_SERVER "then return 'other '..now..' 0' end end "
        "end "
        /* Are all keys free? */
        "for i=1,n do "
          "local v=redis.call('GET',KEYS[i]) "
          "if v and not (own and v==ARGV[1]) then return i..' '..now..' 0' end "
        "end "
        /* The fencing token |value| exceeds all counters, and is near the node's clock. */
        "local value='0' "
        "if p>0 then "
          "local most,f=0,p "
          "for i=n+1,2*n do "
            "local v=redis.pcall('GET',KEYS[i]) "
            "local c=tonumber(v or '0') "
            "if not c or c<0 or c~=math.floor(c) then "
              "return redis.error_reply('ERR no counter of fencing tokens: '..KEYS[i]) "
            "end "
            "if c>most then most=c end "
          "end "
          "if not own then "
            "local tick=t[1]*10000+math.floor(t[2]/100) "
            "if f<tick-10000 then "
              "f=tick-10000 "
            "elseif f>tick+10000 then "
              "f=tick+10000 "
            "end "
            "most=most+1 "
          "end "
          "if f>most then most=f end "
          "if most>9007199254740991 then "
            "return redis.error_reply('ERR no fencing token is left') "
          "end "
          "value=most==p and ARGV[5] or string.format('%.0f',most) "
        "end "
        /* Nothing can fail now: set the keys and their counters. */
        "for i=1,n do "
          "if not own or redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
            "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) "
          "end "
        "end "
        "if p>0 then "
          "local life=#ARGV[2]<9 and '704800000' or string.format('%.0f',604800000+ARGV[2]) "
          "for i=n+1,2*n do redis.call('SET',KEYS[i],value,'PX',life) end "
        "end "
        "return 'OK '..now..' '..value",
        "209ddb0ebcb64c0a2f6731e3d18cbea6e0330061"},
    [RL_SCRIPT_PROLONG] = {
        RL_TEXT_CONFIRM_KEYS
        "for i=1,n do "
          "if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
            "redis.call('PEXPIRE',KEYS[i],ARGV[2]) "
          "end "
        "end "
        RL_TEXT_RAISE_COUNTERS,
        "8486380d7de95e28264425710fa8a70db7f75d38"},
    [RL_SCRIPT_CONFIRM] = {
        RL_TEXT_CONFIRM_KEYS
        RL_TEXT_RAISE_COUNTERS,
        "71917c0049fe3c5151500c46a88beb94775adfd2"},
    /* A former waiter leaves the queue. Others read it only if DEL deleted the flag. */
    [RL_SCRIPT_RELEASE_NOTIFY] = {
        "local l,e=KEYS[1],ARGV[2] "
        "local k,v,s,r,n=ARGV[3] or l "
        "if e=='' then e=nil end "
        "if not e then "
          "v=redis.call('GET',l) "
          "if v==ARGV[1] then "
            RL_TEXT_DELETE("l")
            "if n~=2 then return n end "
          "elseif v then "
            "return 0 "
          "end "
        "end "
        "local q,c=k..':redlock-queue',1 "
        "if e then "
          "r=redis.pcall('MGET',l,q) "
          "v,s=r[1],r[2] "
          "if r.err then "
            "v=redis.call('GET',l) "
            "c=3 "
          "end "
          "if v==ARGV[1] then redis.call('DEL',l) end "
        "else "
          "r=redis.pcall('MGET',q) "
          "s=r[1] "
          "if r.err then c=3 end "
        "end "
        RL_TEXT_READ
        RL_TEXT_WITHOUT("e")
        "if not v or v==ARGV[1] then " RL_TEXT_NOTIFY("l") "end "
        RL_TEXT_STORE
        "if s~='' and (n==2 or e and string.byte(e,20)==48) then "
          "redis.pcall(" RL_TEXT_FLAG ") "
        "end "
        "if v==ARGV[1] then return c end "
        "return 0",
        "375ef235c7e47ac4dd8ce61b0adac32448bc9832"},
    [RL_SCRIPT_RELEASE_ALL_NOTIFY] = {
        "local d,e,c,x=0,nil,1,ARGV[2] "
        "for i=1,#KEYS do "
          "local k,n=KEYS[i],nil "
          "local v=redis.pcall('GET',k) "
          "local ours=v==ARGV[1] "
          "if type(v)=='table' then "
            "e=v "
            "n=3 "
          "elseif ours then "
            RL_TEXT_DELETE("k")
            "d=d+1 "
            "if n==3 then c=3 end "
          "end "
          "if n==2 or x and n~=3 then "
            "local q=k..':redlock-queue' "
            "local r=redis.pcall('MGET',q) "
            "if r.err then c=3 end "
            "local s=r[1] "
            RL_TEXT_READ
            RL_TEXT_WITHOUT("x")
            "if ours or not v then " RL_TEXT_NOTIFY("k") "end "
            RL_TEXT_STORE
            "if s~='' then redis.pcall(" RL_TEXT_FLAG ") end "
          "end "
        "end "
        "if e then return e end "
        "if d==#KEYS then return c end "
        "return 0",
        "79d2e3ee0f0823b6f0b2206315d0a8005adff006"},
    [RL_SCRIPT_ENQUEUE] = {RL_TEXT_ENQUEUES_KEY, "c7897af587150a4ed5e8811ec67a5357c80d5192"},
    [RL_SCRIPT_HOLD] = {
        "local n,t,d,e=tonumber(ARGV[3]),tonumber(ARGV[2]),0,nil "
        "for i=1,n do "
          "local l=KEYS[i] "
          "local v=redis.pcall('GET',l) "
          "if type(v)=='table' then "
            "e=v "
          "elseif v==ARGV[1] then "
            RL_TEXT_PROLONG
            "d=d+1 "
          "end "
        "end "
        "if e then return e end "
        "if d==n then return 1 end "
        "return 0",
        "d180ec907c4820720a8da770f7fd194165c7e567"},
    [RL_SCRIPT_HOLD_NOTIFY] = {
        "local n,t,o,d,e,c=tonumber(ARGV[3]),tonumber(ARGV[2]),ARGV[4],0,nil,1 "
        "if o=='' then o=nil end "
        "for i=1,n do "
          "local l=KEYS[i] "
          "local k=ARGV[5] or l "
          "local v=redis.pcall('GET',l) "
          "local ours=v==ARGV[1] "
          "if type(v)=='table' then "
            "e=v "
          "else "
            "if ours then "
              RL_TEXT_PROLONG
              "d=d+1 "
            "end "
            "if ours or o then "
              "local q=k..':redlock-queue' "
              "local r=redis.pcall('MGET',q) "
              "if r.err then c=3 end "
              "local s=r[1] "
              RL_TEXT_READ
              RL_TEXT_WITHOUT("o")
              "if ours or not v then " RL_TEXT_NOTIFY("l") "end "
              RL_TEXT_STORE
            "end "
          "end "
        "end "
        "if e then return e end "
        "if d==n then return c end "
        "return 0",
        "c7a0145bae95496f445cd1b2b08aa00ad2ae485a"},
    [RL_SCRIPT_ENQUEUE_LABEL] = {RL_TEXT_ENQUEUES_LABEL,
        "d69dd865484cf79c3950683c61087401bc1c48d1"},
    [RL_SCRIPT_ENQUEUE_ALL] = {RL_TEXT_ENQUEUES_ALL, "da6b8aa480bfac291ba382bf73f4bcb122a3481a"},
    [RL_SCRIPT_DEQUEUE] = {
        "local k,c=KEYS[1],1 "
        "local q=k..':redlock-queue' "
        "local r=redis.call('MGET',k,q) "
        "local s=r[2] "
        RL_TEXT_READ
        RL_TEXT_WITHOUT("ARGV[1]")
        "local n=(w-#s)/24 "
        "if not r[1] then " RL_TEXT_NOTIFY("k") "end "
        RL_TEXT_STORE
        "return n",
        "38eb648fa12e6f064b8bb7073dd750a0e720fa3d"},
    [RL_SCRIPT_ENQUEUE_SLOTS] = {RL_TEXT_ENQUEUES_SLOTS,
        "b1b58794ac4f63b396791ccbf39d9ab83a728704"},
    [RL_SCRIPT_DEQUEUE_SLOTS] = {
        "local k,c=KEYS[1],1 "
        "local q=k..':redlock-queue' "
        "local s=redis.call('GET',q) "
        RL_TEXT_READ
        RL_TEXT_WITHOUT("ARGV[1]")
        "local n=(w-#s)/24 "
        "if s~='' then "
          RL_TEXT_FREE("ARGV[2]")
          "if f then " RL_TEXT_NOTIFY("f") "end "
        "end "
        RL_TEXT_STORE
        "return n",
        "844d33acc69b2183dbd97dee43e49f738a88f19e"},
    [RL_SCRIPT_SLOTS] = {
        "local k,n,t,o,b,x=KEYS[1],tonumber(ARGV[1]),{},{},0,'' "
        "for i=1,n do t[i]=k..'/'..i end "
        "local v=redis.call('MGET',(unpack or table.unpack)(t)) "
        "for i=1,n do "
          "b=b*2 "
          "if v[i] then "
            "b=b+1 "
            "local p=string.match(v[i],'^%x+/(%d+)') "
            "if p and #v[i]-#p<=105 and p~=ARGV[1] then x=' '..p end "
          "end "
          "if i%4==0 or i==n then "
            "for _=1,-i%4 do b=b*2 end "
            "o[#o+1]=string.format('%x',b) "
            "b=0 "
          "end "
        "end "
        "return table.concat(o)..x",
        "3afb380fcbfea9e48ba794531ce395579b2d03a2"},
};

/*
 * The guard's script (docs/safety.md). A record is "of the future" if it is a second ahead of the
 * node's clock. The script never replaces a record with another fingerprint, or one in another
 * database, even if the server was restarted: it answers that record. It starts with SELECT so that
 * a missing right is found early. A record without its seal counts as that of another server.
 */
static const char rl_script_guarding[] =
    "redis.call('SELECT',ARGV[5]) "
    "local run=string.match(redis.call('INFO','server'),'run_id:(%w+)') or '?' "
    RL_TEXT_HISTORY
    "run=run..'-'..was "
    "local t=redis.call('TIME') "
    "local now=t[1]*1000000+t[2] "
    "local born,why=now,nil "
    "local r=redis.call('GET',KEYS[1]) "
    "local spoil=ARGV[1]=='spoil' "
    "if spoil and r==ARGV[4] then "
      "redis.call('DEL',KEYS[1]," RL_TEXT_SEAL ") "
      "r=false "
    "end "
    "local of=r and string.match(r,'^%S+')==run and not(" RL_TEXT_RECORD_UNSEALED ") "
    "local old=r and " RL_TEXT_SEAL " "
    "local whose=r and string.match(r,'^%S+ %d+ %S+ (.*)$') "
    "if ARGV[1]=='ready' then "
      "why='ready' "
      "born=now-ARGV[3] "
    "elseif not r then "
      "why='empty' "
    "elseif not of and whose and whose~=ARGV[2] then "
      "r=run..string.match(r,' .*') "
    "elseif not of then "
      "why='restart' "
    "elseif tonumber(string.match(r,'^%S+ (%d+) ') or 0)>now+1000000 or "
        "(ARGV[1]=='clock' and r==ARGV[4]) then "
      "why='clock' "
    "end "
    "if why and ARGV[1]~='look' and not spoil then "
      "r=string.format('%s %.0f %s %s',run,born,why,ARGV[2]) "
      "local free=true "
      "for db in string.gmatch(redis.call('INFO','keyspace'),'db(%d+):') do "
        "if db~=ARGV[5] then "
          "redis.call('SELECT',db) "
          "local o=redis.pcall('GET',KEYS[1]) "
          "redis.call('SELECT',ARGV[5]) "
          "if type(o)=='string' then "
            "r=run..(string.match(o,' .*') or '')..' database='..db "
            "free=false "
            "break "
          "end "
        "end "
      "end "
      "if free then "
        "if old then redis.call('DEL',old) end "
        RL_TEXT_SEALS
        "redis.call('SET',KEYS[1],r) "
      "end "
      "why=nil "
    "end "
    "return string.format('%.0f %s %s %s',now,run,why or '-',why and '' or r)";

/*
 * Replaces the detached token of all keys, unless the lease ends too early. Answers "OK" and the
 * longest life that a key had left, in ms.
 */
#define RL_TEXT_ATTACHMENT(count) \
  "local left=0 " \
  "for i=1," count " do " \
    "local p=redis.call('PTTL',KEYS[i]) " \
    "if redis.call('GET',KEYS[i])~=ARGV[1] or p<=tonumber(ARGV[4]) then return 0 end " \
    "left=math.max(left,p) " \
  "end " \
  "for i=1," count " do redis.call('SET',KEYS[i],ARGV[2],'PX',ARGV[3]) end " \
  "return redis.status_reply(string.format('OK %.0f',left))"
static const char rl_script_attachment[] = RL_TEXT_ATTACHMENT("#KEYS");
static const char rl_script_attachment_here[] =
    "if redis.call('GET',KEYS[#KEYS])~=ARGV[5] or " RL_TEXT_HERE_UNSEALED "then return -1 end "
    RL_TEXT_SERVER("ARGV[6]") "then return -1 end "
    RL_TEXT_ATTACHMENT("#KEYS-1");

/* clang-format on */

static const struct rl_script_source *rl_script_source_of(rl_script script) {
  return &rl_script_sources[rl_script_takes(script) ? RL_SCRIPT_TAKE : script];
}

const char *rl_script_text(rl_script script) {
  return rl_script_source_of(script)->text;
}

const char *rl_script_sha1(rl_script script) {
  return rl_script_source_of(script)->sha1;
}

const char *rl_script_guard_text(void) {
  return rl_script_guarding;
}

const char *rl_script_attach_text(bool here) {
  return here ? rl_script_attachment_here : rl_script_attachment;
}
