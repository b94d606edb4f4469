/*
 * The scripts for queues, as the simulated nodes know them: a second copy of rl_script.c.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node does not run the text of a script. sim_calls.c has its effect.
 */
#include "sim_calls_script.h"

#include <string.h>

#include "base/rl_sha1.h"

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

sim_calls_script sim_calls_find(sim *s, const resp_request *command) {
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
