/*
 * The parts of scripts that read and write the queues of waiters. rl_script.c composes them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Copies of the queue: csrc/test/lib/wait_queue.c, for the simulator, the fake nodes and
 * bench/load_queue.c.
 */
#ifndef RL_SCRIPT_QUEUE_H
#define RL_SCRIPT_QUEUE_H

/* One Lua statement a line, indented as in Lua. */
/* clang-format off */

/*
 * The queue |q| of the base key |k| (rl_command_key) is a string of entries, 24 bytes each, so that
 * one command reads it with the key, and one writes the rest and its expiry. It is not among the
 * KEYS of a script, and scripts that release use pcall() for it: a client without the right still
 * releases.
 *
 * "Notify the first ticket" in |s|: |c| becomes 2 if there is one, 3 if that is denied. A message
 * without a receiver evicts a disconnected waiter. All such waiters are evicted at once, at 4 us
 * each: a host that dies with a hundred clients would otherwise delay the next waiter by as many
 * polls.
 */
#define RL_TEXT_PUBLISH(name) \
  "'PUBLISH','redlock:call:'..string.sub(s,at,at+15),string.sub(s,at+16,at+23).." name
#define RL_TEXT_WAITS "at<=#s and at<24576" /* a waiter at |at|; a queue has at most 1,024 */
#define RL_TEXT_NOTIFY(name) \
  "local at=1 " \
  "while " RL_TEXT_WAITS " do " \
    "local h=redis.pcall(" RL_TEXT_PUBLISH(name) ") " \
    "if h~=0 then " \
      "c=type(h)=='number' and 2 or 3 " \
      "break " \
    "end " \
    "at=at+24 " \
  "end " \
  "s=string.sub(s,at) "

/* A string that is no list of entries is left alone. */
#define RL_TEXT_READ \
  "if not s or #s%24~=0 then s='' end " \
  "local w=#s "

/* "Remove" |entry|, unless that is nil. */
#define RL_TEXT_WITHOUT(entry) \
  "local p=" entry " and string.find(s," entry ",1,true) " \
  "if p then s=string.sub(s,1,p-1)..string.sub(s,p+24) end "

/* "Set the waiters flag", which lives as long as the queue. */
#define RL_TEXT_FLAG "'SET',k..':redlock-wait','1','PX',60000"

/*
 * "Store" the rest |s| of a queue of |w| bytes. It lives for a minute after the last change or
 * poll. A node without memory for it deletes it: then the key is free.
 */
#define RL_TEXT_STORE \
  "if s=='' then " \
    "if w>0 then redis.pcall('DEL',q,k..':redlock-wait') end " \
  "elseif #s~=w and redis.pcall('SET',q,s,'PX',60000).err and " \
      "type(redis.pcall('DEL',q))=='table' then " \
    "c=3 " \
  "end "

/*
 * ENQUEUE. It is the body of a function in ENQUEUE_LABEL, which adds the label of the holder.
 */
#define RL_TEXT_ENQUEUES(set_left, name) \
  "local k,w,m=KEYS[1],ARGV[1],tonumber(ARGV[2]) " \
  "local q=k..':redlock-queue' " \
  /* APPEND: the shortest way into a queue in which another client waits. */ \
  "local joins=m==1025 " \
  "if joins then " \
    "local n=redis.call('APPEND',q,w)/24 " \
    "if n>1 and n<=1024 and n%1==0 then return 2000+n end " \
    "m=1 " \
  "end " \
  "local s=redis.call('GET',q) or '' " \
  "local was,at=#s,1 " \
  "if was%24~=0 then return redis.error_reply('WRONGTYPE this is no queue: '..q) end " \
  "local function put() " \
    "if s=='' then " \
      "redis.call('DEL',q,k..':redlock-wait') " \
    "else " \
      "redis.call('SET',q,s,'PX',60000) " \
      "redis.call(" RL_TEXT_FLAG ") " \
    "end " \
  "end " \
  /* |left|: -2 if the key is free. |p|: where the entry stands. */ \
  set_left \
  "local p=m>0 and string.find(s,w,1,true) " \
  "if left==-2 then " \
    /* Notify the first ticket, or a later one if that is unresponsive or disconnected. */ \
    "local evicts=m>1 and p and (p+23)/24==m and " \
        "redis.call('GET',k..':redlock-reserved')~=string.sub(s,1,24) " \
    "while " RL_TEXT_WAITS " and string.sub(s,at,at+23)~=w do " \
      "if not (evicts and at==1) and redis.call(" RL_TEXT_PUBLISH(name) ")>0 then break end " \
      "at=at+24 " \
    "end " \
    "local first=at>#s or string.sub(s,at,at+23)==w " \
    "s=string.sub(s,at) " \
    "p=p and p-at+1 " \
    "if first then " \
      "if at>1 or joins then put() end " \
      "return 0 " \
    "end " \
  "end " \
  "if not p then " \
    "s=s..w " \
    "p=#s-23 " \
  "end " \
  /* The place |n|. A full queue takes no entry. */ \
  "local n=(p+23)/24 " \
  "if n>1024 then " \
    "s=string.sub(s,1,p-1)..string.sub(s,p+24) " \
    "n=0 " \
    "left=math.max(left,-1) " \
  "end " \
  "if #s==was and not joins then " \
    "redis.call('PEXPIRE',q,60000) " \
    "redis.call(" RL_TEXT_FLAG ") " \
  "else " \
    "put() " \
  "end " \
  "return (math.min(left,1e11)+2)*2000+n"

#define RL_TEXT_ENQUEUES_KEY RL_TEXT_ENQUEUES("local left=redis.call('PTTL',k) ", "k")

/*
 * Of a semaphore |k| with so many slots as |argument|: |t| are its slots, |f| is the first free
 * one, or nil. A notification names that slot.
 */
#define RL_TEXT_FREE(argument) \
  "local z,t,f=tonumber(" argument "),{} " \
  "for i=1,z do t[i]=k..'/'..i end " \
  "if redis.call('EXISTS',(unpack or table.unpack)(t))<z then " \
    "for i=1,z do " \
      "if redis.call('EXISTS',t[i])==0 then " \
        "f=t[i] " \
        "break " \
      "end " \
    "end " \
  "end "

/* Of up to 64 slots, |left| is the time until the first one expires. */
#define RL_TEXT_LEFT_OF_SLOTS \
  RL_TEXT_FREE("ARGV[3]") \
  "local left=-1 " \
  "if f then " \
    "left=-2 " \
  "elseif z<=64 then " \
    "for i=1,z do " \
      "local x=redis.call('PTTL',t[i]) " \
      "if x>=0 and (left<0 or x<left) then left=x end " \
    "end " \
  "end "
#define RL_TEXT_ENQUEUES_SLOTS RL_TEXT_ENQUEUES(RL_TEXT_LEFT_OF_SLOTS, "f")

#define RL_TEXT_ENQUEUES_LABEL \
  "local function enqueue() " RL_TEXT_ENQUEUES_KEY " end " \
  "local n=enqueue() " \
  "if type(n)~='number' or n<4000 then return n end " \
  "local v=redis.pcall('GET',KEYS[1]) " \
  "local l=type(v)=='string' and #v<=105 and string.match(v,'^%x+(:.+)$') " \
  "if not l or #v-#l~=40 then return n end " \
  "return string.format('%.0f',n)..l"

/*
 * ENQUEUE_ALL. |s|, |p| and |f| are the queues, the place of the entry in them, and the lives of
 * the keys. Places that differ between queues would let waiters wait for each other, so an entry
 * that one queue lacks goes to the end of all. A waiter whose ticket is first in all queues
 * reserves its free keys, for 400 ms. Another waiter, and one that has reserved them for long
 * enough (|notified| is "-"), lets those behind it take the free keys that |notified| names.
 */
#define RL_TEXT_ENQUEUES_ALL \
  "local w,notified,was,n=ARGV[1],ARGV[3],{},#KEYS " \
  "local s,p,f,gone,full={},{},{} " \
  "local function hears(t,at,k) " \
    "return redis.call('PUBLISH','redlock:call:'.." \
        "string.sub(t,at,at+15),string.sub(t,at+16,at+23)..k)>0 " \
  "end " \
  /* Read the queues. */ \
  "for d in string.gmatch(ARGV[2],'%d+') do was[#was+1]=tonumber(d) end " \
  "for i=1,n do " \
    "local q=KEYS[i]..':redlock-queue' " \
    "s[i]=redis.call('GET',q) or '' " \
    "if #s[i]%24~=0 then return redis.error_reply('WRONGTYPE this is no queue: '..q) end " \
    "p[i]=string.find(s[i],w,1,true) " \
    "gone=gone or not p[i] " \
    "f[i]=redis.call('PTTL',KEYS[i]) " \
  "end " \
  /* A queue lacks the entry: append it to all. */ \
  "if gone then " \
    "for i=1,n do " \
      "if p[i] then s[i]=string.sub(s[i],1,p[i]-1)..string.sub(s[i],p[i]+24) end " \
      "p[i]=#s[i]+1 " \
      "full=full or p[i]>24553 " \
      "s[i]=s[i]..w " \
    "end " \
  "end " \
  /* A queue is full: enter none. */ \
  "if full then " \
    "for i=1,n do " \
      "local q=KEYS[i]..':redlock-queue' " \
      "s[i]=string.sub(s[i],1,-25) " \
      "if s[i]=='' then " \
        "redis.call('DEL',q) " \
      "else " \
        "redis.call('SET',q,s[i],'PX',60000) " \
      "end " \
    "end " \
    "return 2000 " \
  "end " \
  /* |mine|: free keys of this waiter. |ready|: all are. |first|: the ticket is first in all. */ \
  "local mine,ready,first,most,left={},true,notified~='-',1 " \
  "for i=1,n do " \
    "local k=KEYS[i] " \
    "if f[i]==-2 and notified=='' then " \
      "local at,evicts=1,p[i]>1 and (p[i]+23)/24==was[i+1] and " \
          "redis.call('GET',k..':redlock-reserved')~=string.sub(s[i],1,24) " \
      "while at<p[i] and at<24576 and ((evicts and at==1) or not hears(s[i],at,k)) do " \
        "at=at+24 " \
      "end " \
      "s[i]=string.sub(s[i],at) " \
      "p[i]=p[i]-at+1 " \
    "end " \
    "mine[i]=f[i]==-2 and (p[i]==1 or string.sub(notified,i,i)=='1') " \
    "ready=ready and mine[i] " \
    "first=first and p[i]==1 " \
    "most=math.max(most,(p[i]+23)/24) " \
    "if f[i]~=-2 then left=(f[i]==-1 or left==-1) and -1 or math.max(left or 0,f[i]) end " \
  "end " \
  /* Without all keys: reserve the free ones, or notify the next waiters of them. */ \
  "local reserved,places=0,'' " \
  "for i=1,n do " \
    "local k=KEYS[i] " \
    "if mine[i] and not ready then " \
      "if first then " \
        "redis.call('SET',k..':redlock-reserved',w,'PX',400) " \
        "reserved=reserved+2^(i-1) " \
      "else " \
        "local at=p[i]+24 " \
        "while at<=#s[i] and not hears(s[i],at,k) do " \
          "s[i]=string.sub(s[i],1,at-1)..string.sub(s[i],at+24) " \
        "end " \
      "end " \
    "end " \
    "places=places..','..(f[i]==-2 and p[i]>1 and (p[i]+23)/24 or 0) " \
    "redis.call('SET',k..':redlock-queue',s[i],'PX',60000) " \
    "redis.call(" RL_TEXT_FLAG ") " \
  "end " \
  "if ready then return 0 end " \
  "return string.format('%.0f:%d'," \
      "(left and math.min(left,1e11)+2 or 0)*2000+most,reserved)..places"

/* clang-format on */

#endif
