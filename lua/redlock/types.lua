---@meta redlock.types
--- Types for editors and checkers that read LuaCATS annotations. No program loads this file.
---
--- All durations are whole milliseconds unless a comment names another unit. Misuse (a wrong type,
--- an unknown option, an operation in flight) raises an error at the caller's line. Every failure
--- is nil, message, code.

---@alias redlock.Code
---| "taken" # another client holds the lock
---| "unavailable" # too many nodes did not answer, or answered an error
---| "expired" # the lease has expired
---| "lost" # so many nodes no longer have the token that no majority is left: the lease is over
---| "held" # acquire of a lock that is held already
---| "not_held" # extend or release of a lock that is not held
---| "closed" # the client is closed
---| "cancelled" # the operation was cancelled
---| "max_hold" # max_hold has ended the automatic extension, and the lease has expired
---| "clock" # not lost yet: the clocks of too many nodes that have the lock were stepped

---@alias redlock.VoteKind
---| "granted" # the node executed the command
---| "taken" # the key has another token, or does not exist
---| "error" # the node refused, or the command failed; `error` is the reason
---| "quarantined" # the guard excludes the node; `error` has the reason and the time left
---| "unknown" # the node did not answer

---@alias redlock.Milliseconds integer

---@class redlock.AutoExtend
---@field every? redlock.Milliseconds like extend_every
---@field max_hold? redlock.Milliseconds like max_hold

--- Locks on up to 8 resources, re-entrant ones and those with a caller-supplied token wait in the
--- same queues. A lock on more resources polls.
---@class redlock.LockOptions
---@field ttl? redlock.Milliseconds length of the lease, at least 4 with the default drift_factor; default 10000
---@field retry_count? integer largest number of attempts after the first; default 3, or no limit if `wait` is set
---@field retry_delay? redlock.Milliseconds pause between two attempts; default 200
---@field retry_jitter? redlock.Milliseconds each pause is longer or shorter by up to this; default 100
---@field wait? redlock.Milliseconds time limit of the whole call; 0 = one attempt; default none
---@field node_timeout? redlock.Milliseconds time limit of one attempt; default 100, at most ttl/10
---@field drift_factor? number allowance for clock drift: ttl * this + 2 ms; default 0.01
---@field lock_delay? redlock.Milliseconds added to the life of the key on the nodes; default 0
---@field auto_extend? boolean|redlock.AutoExtend extend the lease until its release; default false
---@field extend_every? redlock.Milliseconds with auto_extend: interval of extends, at least 10; 0, the default: ttl/3
---@field max_hold? redlock.Milliseconds with auto_extend: longest time that the lock is held; 0, the default: no limit
---@field hold_at_least? redlock.Milliseconds an earlier release keeps the lock until then; 0, the default: it frees it
---@field notify_lost? boolean report a loss also without auto_extend; on_lost implies it; default false
---@field fence? boolean each grant has a fencing token, lock:fence(); default false
---@field permits? integer up to so many holders at once, 1 to 1024: a semaphore; 0: a lock; default none
---@field label? string text in each token that inspect() shows: at most 64 bytes of UTF-8; "" for none; default none
---@field notify? boolean nodes notify a waiter when the lock is free; false: poll instead; default true
---@field fair? boolean queue behind other waiters even if the lock is free; default false
---@field poll_interval? redlock.Milliseconds interval of polls of a waiter that expects a notification; default 2000
---@field on_lost? fun(lock: redlock.Lock, reason: redlock.Code) called on a loss; "unavailable" and "clock" only warn
---@field reentrant? boolean|string nested acquires of one owner succeed; or the name of the owner; default false
---@field owner? "request"|"worker" nginx only: the lock is released at the end of it; default "request"

---@class redlock.ReleaseOptions
---@field wait? boolean false: do not wait for the nodes; default true

---@class redlock.AcquireOptions: redlock.LockOptions
---@field token? string DANGER: 1 to 256 bytes instead of a fresh token; never use one twice

---@class redlock.SectionOptions: redlock.AcquireOptions
---@field release_wait? boolean false: with() does not wait for its release; default true

--- Options of client:lead(), which sets auto_extend, fence and reentrant itself and takes no
--- retry_count. Here `wait` limits a campaign; without it a campaign has no end.
---@class redlock.LeadOptions: redlock.LockOptions
---@field on_error? fun(message: string, code: redlock.Code): "resign"? called while too few nodes answer

---@class redlock.ClientOptions: redlock.LockOptions
---@field on_event? fun(event: redlock.Event) called when a node goes down or up, a lease is lost, a wait was long
---@field prefix? string text before every resource; default ""
---@field username? string for nodes without their own
---@field password? string for nodes without their own
---@field credentials? fun(node: string, index: integer): string, string? returns [user,] password of each connection
---@field guard? boolean|redlock.Guard exclude nodes that may have forgotten locks; default false
---@field quorum? integer votes that acquire and extend need, equal for all clients; default N/2 + 1
---@field db? integer database of nodes without their own; default 0
---@field tls? boolean|redlock.Tls for nodes without their own that are no Unix sockets; default false

--- TLS. A node inherits the fields that it does not set from its client. Inside nginx, fields that
--- nginx.conf sets are refused, and the message names the directive.
---@class redlock.Tls
---@field ca? string file of CA certificates, PEM; default the system's
---@field ca_path? string directory of CA certificates, as openssl-rehash makes it; default the system's
---@field crl? string file with the revocation lists of all CAs of a chain; default: no check
---@field cert? string file with the client certificate and its chain, PEM
---@field key? string file with the key of the client certificate, PEM
---@field key_password? string password of that file
---@field server_name? string name or address that the node's certificate must have; default the host
---@field ciphers? string OpenSSL names separated by ":"; default OpenSSL's
---@field min_version? "1.2"|"1.3" default "1.2"
---@field dangerously_unverified? boolean DANGER: accept any certificate, and send the password; default false

--- The guard against nodes that have forgotten their locks.
---@class redlock.Guard
---@field max_ttl? redlock.Milliseconds longest life of a key, including lock_delay; default 30000
---@field cluster? string name of the list of nodes, printable, without spaces; default: a hash of the list

--- Parts of a node's address: either `host` or `path` is set.
---@class redlock.Node
---@field host? string
---@field port? integer default 6379
---@field path? string of a Unix socket
---@field username? string
---@field password? string
---@field db? integer
---@field tls? boolean|redlock.Tls

---@class redlock.NodeState
---@field node string "10.0.0.1:6379"
---@field state "up"|"connecting"|"down"
---@field error? string reason why it is not up, or that it runs no scripts
---@field latency? number milliseconds to the last reply, fractional
---@field notifies boolean the node can notify waiters; false before the first wait
---@field notify_error? string reason why it cannot
---@field quarantined? number with a guard: milliseconds until it votes; math.huge = until an event
---@field quarantine? string reason why it does not vote

---@class redlock.Vote
---@field node string
---@field vote redlock.VoteKind
---@field error? string
---@field latency? number milliseconds from the command to its reply, fractional

---@class redlock.Key
---@field node string "10.0.0.1:6379"
---@field state "free"|"held"|"other"|"unknown" other: no token; unknown: no answer, or an error
---@field token? string token of the holder, any bytes
---@field label? string label in that token
---@field fence? integer counter of fencing tokens beside the key
---@field ttl? redlock.Milliseconds rest of the key's life; nil if it does not expire
---@field error? string reason of "unknown", or type of "other"

---@class redlock.Inspection
---@field holder? string token that a majority of the nodes has
---@field label? string label in that token
---@field fence? integer fencing token of the holder; of a holder without one, that of an earlier holder
---@field ttl? redlock.Milliseconds time until it loses its majority, unless it is extended
---@field nodes redlock.Key[]

---@class redlock.SlotsInspection
---@field permits integer
---@field held integer slots with a holder
---@field slots redlock.Inspection[]

---@class redlock.Leader
---@field label? string label of the leader
---@field fence? integer fencing token of its term; nil while it is being confirmed
---@field ttl? redlock.Milliseconds time until another client can lead, unless the leader extends its lease

---@alias redlock.FindingName
---| "down" # it does not answer
---| "quarantined" # the guard keeps it from voting
---| "same_server" # two nodes are one server
---| "replica" # it is a replica
---| "writable_replica" # it is a writable replica
---| "cluster" # it is in cluster mode
---| "eviction" # it evicts keys when its memory is full
---| "rights" # an ACL forbids a command or a key
---| "refuses" # it refuses a command of a lock
---| "notifications" # it does not notify waiters, which poll
---| "scripts" # it runs no scripts
---| "clock" # its clock differs from those of other nodes
---| "certificate" # its TLS certificate ends soon
---| "persistence" # it forgets its locks when it restarts
---| "persistence_failing" # it cannot write its files
---| "slow" # it takes longer than half of node_timeout
---| "old_version" # its version is no longer maintained
---| "endless_keys" # it has locks without an expiry
---| "options" # the ttl is too short for node_timeout
---| "replicas" # it has replicas
---| "min_replicas" # the only node grants locks without its replicas
---| "mixed_versions" # nodes have different versions
---| "node_count" # fewer than three nodes, or an even number

---@class redlock.Finding
---@field severity "error"|"warning"|"note" error: locks fail because of it, or are not safe
---@field name redlock.FindingName
---@field node? string "10.0.0.1:6379"; nil if it concerns all nodes
---@field message string the problem, and what to do

---@class redlock.DoctorOptions
---@field keys? boolean scan up to 10,000 keys of each node for locks without an expiry
---@field resource? string resource whose keys are tried, if an ACL allows only some

---@class redlock.Bucket
---@field le number upper bound, inclusive, in seconds; math.huge in the last bucket
---@field count integer number of durations up to it

--- Durations since the client was made. `buckets` has the same bounds in every histogram.
---@class redlock.Histogram
---@field count integer number of durations
---@field sum number their sum in seconds
---@field buckets redlock.Bucket[] cumulative, in ascending order

--- Numbers of operations that ended with each result. Every field is present.
---@class redlock.Outcomes
---@field ok integer
---@field taken integer
---@field unavailable integer
---@field expired integer
---@field lost integer
---@field held integer
---@field not_held integer
---@field closed integer
---@field cancelled integer
---@field error integer other results, for example out of memory

---@class redlock.Operations
---@field acquire redlock.Outcomes
---@field extend redlock.Outcomes
---@field auto_extend redlock.Outcomes
---@field release redlock.Outcomes

---@class redlock.NodeVotes
---@field granted integer
---@field taken integer
---@field error integer
---@field quarantined integer
---@field unknown integer
---@field late integer replies that came after the result was decided, and counted for nothing

---@class redlock.NodeStats
---@field node string "10.0.0.1:6379"
---@field up boolean it is connected and no replica: `state` of client:nodes() is "up"
---@field quarantined boolean the guard excludes it
---@field votes redlock.NodeVotes
---@field latency redlock.Histogram from each command to its reply, if that was read at once
---@field connections integer connections that were made: the first one and reconnections
---@field failures integer connections that ended or could not be made
---@field heals integer keys that the node had lost and got again
---@field quarantines integer times that the guard began to exclude it
---@field outstanding integer commands whose reply is outstanding

--- Counters since the client was made, and the values of this moment: `up`, `quarantined`,
--- `outstanding`, `held`, `waiting`.
---@class redlock.Stats
---@field operations redlock.Operations
---@field attempts integer attempts of all acquires
---@field nodes redlock.NodeStats[] in the order of redlock.new()
---@field quorum integer votes that an acquire needs
---@field acquire_time redlock.Histogram of the acquires that succeeded, waiting included
---@field wait_time redlock.Histogram of the acquires that had to wait, with any result: the whole time
---@field held integer leases that last
---@field waiting integer acquires that wait for another client or lock
---@field lost { expired: integer, lost: integer, max_hold: integer } leases that ended without a release
---@field warnings { unavailable: integer, clock: integer } warnings to on_lost, by reason

--- Event of a client, for logs and traces: the argument of on_event.
---@class redlock.Event
---@field event "up"|"down"|"quarantined"|"lost"|"warned"|"waited"
---@field ago number seconds since the event
---@field node? string of "up", "down" and "quarantined"
---@field reason? string why it is down or quarantined: a sentence; of "lost" and "warned": a redlock.Code
---@field resource? string of "lost", "warned" and "waited": the first one, without the prefix
---@field waited? number of "waited": seconds of the whole acquire, at least 1
---@field result? "ok"|redlock.Code of "waited": result of the acquire
---@field missed? integer number of events before this one that were dropped

---@class redlock.Client
local client = {}

--- Makes a lock object. Sends nothing.
---@param resource string|string[] any bytes; a list of up to 64 is acquired all or nothing
---@param options? redlock.LockOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code "closed"
---@nodiscard
function client:new_lock(resource, options) end

--- Makes a lock object and acquires it.
---@param resource string|string[] any bytes; a list of up to 64 is acquired all or nothing
---@param options? redlock.AcquireOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code "taken", "unavailable", "expired", "held", "cancelled", "closed"
---@nodiscard
function client:acquire(resource, options) end

--- Acquires, calls fn(lock, ...) and releases. Returns true and the results of fn. Raises an error
--- of fn again after the release. If the lease ended before fn did, returns nil, message, "expired"
--- or "lost", and the results.
---@param resource string|string[] any bytes; a list of up to 64 is acquired all or nothing
---@param options redlock.SectionOptions|nil
---@param fn fun(lock: redlock.Lock, ...): ...
---@param ... any arguments of fn
---@return true? ok
---@return any ... results of fn; or message, code (those of acquire, without calling fn)
---@overload fun(self: redlock.Client, resource: string|string[], fn: fun(lock: redlock.Lock, ...), ...): true?, ...
function client:with(resource, options, fn, ...) end

--- Waits until this client leads, and calls fn(term): the lock, which extends itself and has a
--- fencing token. The term ends when fn has returned. If fn returned "resign", lead() returns true
--- and the other results of fn; otherwise it campaigns again. Raises an error of fn again after the
--- release. If the lease of the last term ended before fn resigned, returns nil, message, "expired"
--- or "lost", and the other results.
---@param name string any bytes
---@param options redlock.LeadOptions|nil
---@param fn fun(term: redlock.Lock): "resign"?, ...
---@return true? ok
---@return any ... results of fn; or message, code ("closed", "cancelled"; "unavailable": too few nodes
--- accept the password; with `wait` those of acquire)
---@overload fun(self: redlock.Client, name: string, fn: fun(term: redlock.Lock): "resign"?, ...): true?, ...
function client:lead(name, options, fn) end

--- Returns the client that leads, or holds the lock of this name, as a majority of the nodes knows
--- it. Does not wait for the leader.
---@param name string
---@return redlock.Leader?
---@return string? message
---@return redlock.Code? code "not_held": no client leads; "unavailable" (a client may lead), "cancelled", "closed"
---@nodiscard
function client:leader(name) end

--- Returns the states of all nodes, in the order of redlock.new().
---@return redlock.NodeState[]
---@nodiscard
function client:nodes() end

--- Returns counters, histograms and current values of this client. Sends nothing.
---@return redlock.Stats
---@nodiscard
function client:stats() end

--- Takes over a lock from lock:detach() of another process. A text works once.
---@param text string
---@param options? redlock.LockOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code "lost": attached before, expired, or changed; "unavailable", "closed"
---@nodiscard
function client:attach(text, options) end

--- Returns the keys of all nodes for the resource, and the token that a majority has.
--- With `permits` it inspects all slots of a semaphore, one after the other.
---@param resource string
---@param options? { permits: integer }
---@return redlock.Inspection|redlock.SlotsInspection|nil
---@return string? message
---@return redlock.Code? code "cancelled", "closed"; without a majority the keys are returned
---@nodiscard
function client:inspect(resource, options) end

--- With a guard: lets all new nodes vote at once. Call it only while no client holds a lock.
---@return true? ok
---@return string? message
---@return redlock.Code? code "unavailable", "cancelled", "closed"
function client:bootstrap() end

--- Examines all nodes and changes nothing. Returns the findings, the most severe first; an empty
--- list if there are none.
---@param options? redlock.DoctorOptions
---@return redlock.Finding[]?
---@return string? message
---@return redlock.Code? code "cancelled", "closed"
---@nodiscard
function client:doctor(options) end

--- DANGER: deletes the key of a holder, without a report to it. Returns the number of nodes that
--- deleted the key.
---@param resource string
---@param token string token from inspect(); "any" = every token
---@return integer? nodes
---@return string? message
---@return redlock.Code? code "not_held": no node that answered has the token; "unavailable", "cancelled", "closed"
function client:force_release(resource, token) end

--- Releases all locks of the client, waits for the replies for node_timeout at most, and closes.
--- Idempotent.
---@return true? ok
---@return string? message
---@return redlock.Code? code "unavailable": releases without confirmation are left to their ttl
function client:close() end

--- Returns a descriptor that is readable whenever process() must be called; nil if there is none. A
--- loop needs nothing else.
---@return integer?
---@nodiscard
function client:pollfd() end

--- Returns the events to poll the descriptor for.
---@return "r"
---@nodiscard
function client:events() end

--- Returns the seconds, 1 at most, after which process() must be called; nil if there is no
--- deadline.
---@return number? seconds
---@nodiscard
function client:timeout() end

--- Reads, decides and sends without blocking.
---@return true? ok
---@return string? message
---@return redlock.Code? code "closed"
function client:process() end

--- Returns the next lock whose started operation has ended, or nil. Call it after each process()
--- until it returns nil.
---@return redlock.Lock?
---@nodiscard
function client:next_ended() end

---@class redlock.Lock
local lock = {}

--- Acquires the lock. Returns the rest of the lease.
---@param options? redlock.AcquireOptions for this call
---@return redlock.Milliseconds? validity
---@return string? message
---@return redlock.Code? code "taken", "unavailable", "expired", "held", "cancelled", "closed"
function lock:acquire(options) end

--- Extends the lease. After a failure the old deadline stands.
---@param ttl? redlock.Milliseconds positive, counted from now; default the ttl of the acquire
---@return redlock.Milliseconds? validity
---@return string? message
---@return redlock.Code? code "unavailable", "lost", "expired", "not_held", "cancelled", "closed"
function lock:extend(ttl) end

--- Releases the lock. With wait = false sends the commands and does not wait; result() reports the
--- outcome later.
---@param options? redlock.ReleaseOptions
---@return true? ok
---@return string? message
---@return redlock.Code? code "lost": a majority lost it before its end; "expired", "unavailable", "not_held", "closed"
function lock:release(options) end

--- Returns the lock as a text for client:attach() of another process. It is then no longer held
--- here, and not released.
---@return string? text
---@return string? message
---@return redlock.Code? code "not_held", "lost", "held", "closed"
---@nodiscard
function lock:detach() end

--- Returns the rest of the lease; 0 if the lock is not held.
---@return redlock.Milliseconds
---@nodiscard
function lock:remaining() end

--- Returns true if remaining() > 0.
---@return boolean
---@nodiscard
function lock:is_held() end

--- Returns how many keys may vanish before a second holder is possible; -1 if it is possible; nil
--- if the lock is not held.
---@return integer? margin known nodes + quorum - N - 1
---@nodiscard
function lock:margin() end

--- Returns the fencing token of the lease, below 2^53 and greater than that of every earlier grant;
--- nil if the lock is not held, or was acquired without `fence`.
---@return integer? token
---@nodiscard
function lock:fence() end

--- Returns the rest of the lease. Raises an error at the caller's line if the lock is not held.
---@return redlock.Milliseconds left
function lock:check() end

--- Returns why the last lease was lost; nil if it was not lost, or was released. "unavailable" is a
--- warning that automatic extends fail, "clock" that clocks of nodes were stepped.
---@return redlock.Code? reason
---@return redlock.Milliseconds? since time since the loss
---@nodiscard
function lock:lost() end

---@return string resource without the prefix; the first of several
---@nodiscard
function lock:resource() end

---@return string[] resources all, without the prefix
---@nodiscard
function lock:resources() end

--- Returns 40 hexadecimal digits. With permits a slash and their number follow, with a label a
--- colon and the label.
---@return string? token nil if the lock is not held
---@nodiscard
function lock:token() end

---@return integer? slot of a held semaphore, 1 to permits; nil if it is not held, or has no permits
---@nodiscard
function lock:slot() end

---@return redlock.Milliseconds
---@nodiscard
function lock:ttl() end

--- Returns the votes of all nodes in the last round.
---@return redlock.Vote[]
---@nodiscard
function lock:votes() end

--- Starts an operation without waiting; client:process() carries it on.
---@param operation "acquire"|"extend"|"release"
---@param argument? redlock.LockOptions|redlock.Milliseconds argument of the blocking method
---@return true? ok
---@return string? message
---@return redlock.Code? code "not_held", "held", "lost", "expired", "closed"
---@overload fun(self: redlock.Lock, operation: "acquire", options?: redlock.LockOptions): true?, string?, redlock.Code?
---@overload fun(self: redlock.Lock, operation: "extend", ttl?: redlock.Milliseconds): true?, string?, redlock.Code?
function lock:start(operation, argument) end

--- Returns the results of the started operation, as the blocking method would; or nil, message,
--- "pending" while it is in flight. Raises an error if no operation was started.
---@return redlock.Milliseconds|true|nil result
---@return string? message
---@return redlock.Code|"pending"|nil code
---@nodiscard
function lock:result() end

--- Cancels the operation in flight, if any: it ends with "cancelled".
function lock:cancel() end

--- nginx only: makes the worker, or the calling request, the owner of the lock.
---@param owner "request"|"worker"
---@return true? ok
---@return string? message
---@return redlock.Code? code "not_held"; "unavailable" for "request" in a phase after which no request ends
function lock:hand_over(owner) end

--- Figures for Prometheus: require "redlock.prometheus".
---@class redlock.prometheus
---@field CONTENT_TYPE string value of the header Content-Type
local prometheus = {}

--- Returns the figures of clients in the text format 0.0.4. With several clients each sample has
--- the label `client`: the number of the client, or its name in a table.
---@param clients redlock.Client|table<string, redlock.Client>
---@param ... redlock.Client
---@return string text
---@nodiscard
function prometheus.render(clients, ...) end

--- Pages of nginx for monitoring: require "redlock.nginx_pages".
---@class redlock.nginx_pages
local nginx_pages = {}

---@class redlock.PagesOptions
---@field health_resource? string resource whose key health() reads; default "redlock-health"

--- Returns the pages of clients, whose figures all workers sum in a shared dictionary. Call it
--- once, after redlock.new(), in init_by_lua or init_worker_by_lua.
---@param dictionary string name of the lua_shared_dict
---@param clients redlock.Client|table<string, redlock.Client>
---@param options? redlock.PagesOptions
---@return redlock.Pages
---@nodiscard
function nginx_pages.new(dictionary, clients, options) end

---@class redlock.Pages
local pages = {}

--- Answers with the figures of all workers in the text format of Prometheus.
function pages:metrics() end

--- Answers 200 if a quorum of the nodes of each client answers, otherwise 503, with JSON. Asks the
--- nodes at most once a second in each worker, and waits for node_timeout at most.
function pages:health() end

--- Answers with a page in HTML: nodes, names of held locks and of waiters, outcomes.
function pages:status() end

--- Returns the figures of all workers, of each client by name if the clients have names. They also
--- have `workers`, the number of living workers; `up` is nil if none of them has used the node.
---@return redlock.Stats|table<string, redlock.Stats>
---@nodiscard
function pages:stats() end

--- Adds the figures to the page of an object of nginx-lua-prometheus. Returns the object.
---@generic T: table
---@param object T
---@return T
function pages:join(object) end

--- A client of redlock.cqueues: its calls let other coroutines run. It polls itself, so it has no
--- methods for loops.
---@class redlock.cqueues.Client: redlock.Client
---@field pollfd nil
---@field events nil
---@field timeout nil
---@field process nil
---@field next_ended nil
local cqueues_client = {}

--- Like redlock.Client.new_lock.
---@param resource string|string[]
---@param options? redlock.LockOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:new_lock(resource, options) end

--- Like redlock.Client.acquire.
---@param resource string|string[]
---@param options? redlock.AcquireOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:acquire(resource, options) end

--- Like redlock.Client.with.
---@param resource string|string[]
---@param options redlock.SectionOptions|nil
---@param fn fun(lock: redlock.cqueues.Lock, ...): ...
---@param ... any
---@return true? ok
---@return any ... results of fn; or message, code
---@overload fun(self: redlock.cqueues.Client, resource: string|string[], fn: function, ...): true?, ...
function cqueues_client:with(resource, options, fn, ...) end

--- Like redlock.Client.attach.
---@param text string
---@param options? redlock.LockOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:attach(text, options) end

--- Like redlock.Lock, without start(). result() is for releases without waiting.
---@class redlock.cqueues.Lock: redlock.Lock
---@field start nil

--- Likewise for coroutines that libuv runs.
---@class redlock.luv.Client: redlock.cqueues.Client

--- Likewise for threads of copas.
---@class redlock.copas.Client: redlock.cqueues.Client

--- The module redlock.fake: a world of its own, for tests. It replaces the module redlock.
---@class redlock.Fake: redlock
---@field new fun(nodes?: (string|redlock.Node)[], options?: redlock.ClientOptions): redlock.Client
local fake = {}

--- Lets time pass: leases expire, automatic extends and on_lost run, waits end. In a coroutine of
--- spawn() it yields for that time.
---@param milliseconds? number default 0: only what is due now
function fake:advance(milliseconds) end

--- Returns the milliseconds of the fake's clock.
---@return number
---@nodiscard
function fake:now() end

--- Sets how operations end.
---@param outcome "taken"|"unavailable"|nil nil = as usual
---@param resource? string only for locks on it
function fake:set(outcome, resource) end

--- Lets the nodes forget a lock, or all locks on a resource.
---@param of redlock.Lock|string
function fake:lose(of) end

--- Runs fn(...) in a coroutine until it waits. Later calls that move the clock let it go on.
---@param fn fun(...)
---@param ... any
---@return thread
function fake:spawn(fn, ...) end

--- Forgets all locks, coroutines and settings. Clients stay as they are.
function fake:reset() end

--- Returns another fake, with locks and a clock of its own.
---@return redlock.Fake
---@nodiscard
function fake:world() end
