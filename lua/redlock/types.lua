---@meta redlock.types
--- Types for editors and checkers that read LuaCATS annotations. Nothing loads this file.

---@alias redlock.Code
---| "taken" # others hold it on so many nodes that no majority is left
---| "unavailable" # too many nodes did not answer, or answered an error
---| "expired" # the lease has expired
---| "lost" # so many nodes no longer have its token that no majority is left: the lease is over
---| "held" # acquire of a lock that is held already
---| "not_held" # extend or release of a lock that is not held
---| "closed" # the client is closed
---| "cancelled" # the operation was cancelled
---| "max_hold" # max_hold has ended the automatic extends, and the lease has run out
---| "clock" # not lost yet: the clocks of too many nodes that have the lock were stepped

---@alias redlock.VoteKind
---| "granted" # the node did what it was asked
---| "taken" # the key is somebody else's, or is not ours
---| "error" # the node refused, or something went wrong: `error` says what
---| "quarantined" # the guard: it may have forgotten locks, and was not asked; `error` says why, and for how long
---| "unknown" # the node did not answer

---@alias redlock.Milliseconds integer

---@class redlock.AutoExtend
---@field every? redlock.Milliseconds as extend_every
---@field max_hold? redlock.Milliseconds as max_hold

---@class redlock.LockOptions
---@field ttl? redlock.Milliseconds the lease, at least 4; default 10000
---@field retry_count? integer further attempts after the first, at most; default 3, or no limit beside a `wait`
---@field retry_delay? redlock.Milliseconds pause between two attempts; default 200
---@field retry_jitter? redlock.Milliseconds each pause is longer or shorter by up to this; default 100
---@field wait? redlock.Milliseconds time limit of the whole call; 0 = try once; default none
---@field node_timeout? redlock.Milliseconds budget of one attempt; default 100, at most ttl/10
---@field drift_factor? number clock drift allowed for is ttl * this + 2 ms; default 0.01
---@field lock_delay? redlock.Milliseconds added to the key's life on the nodes; default 0
---@field auto_extend? boolean|redlock.AutoExtend the lease keeps itself until it is released; default false
---@field extend_every? redlock.Milliseconds with auto_extend: between two extends, at least 10; 0, the default: ttl/3
---@field max_hold? redlock.Milliseconds with auto_extend: it ends then at the latest; 0, the default: never
---@field notify_lost? boolean its loss is told though it does not keep itself; on_lost implies it; default false
---@field fence? boolean each grant has a fencing token, lock:fence(); default false
---@field notify? boolean nodes notify a waiter when the lock is free; false: poll instead; default true
---@field fair? boolean an acquire waits for its turn even when the lock is free, if others wait; default false
---@field poll_interval? redlock.Milliseconds between polls of a waiter that expects a notification; default 2000
---@field on_lost? fun(lock: redlock.Lock, reason: redlock.Code) the lease is lost; "unavailable" and "clock" only warn
---@field reentrant? boolean|string an acquire of what its owner holds counts; or the owner's name; default false
---@field owner? "request"|"worker" nginx only: with whose end the lock is released; default "request"

---@class redlock.ReleaseOptions
---@field wait? boolean false: go on without waiting for the nodes; default true

---@class redlock.AcquireOptions: redlock.LockOptions
---@field token? string DANGER: any 1 to 256 bytes in place of a fresh token; never use one twice

---@class redlock.SectionOptions: redlock.AcquireOptions
---@field release_wait? boolean false: with() does not wait for its release; default true

---@class redlock.ClientOptions: redlock.LockOptions
---@field prefix? string put before every resource; default ""
---@field username? string for the nodes that name none
---@field password? string for the nodes that name none
---@field credentials? fun(node: string, index: integer): string, string? [user,] password of each connection
---@field guard? boolean|redlock.Guard nodes that may have forgotten locks do not vote; default false
---@field quorum? integer nodes that acquire and extend need, the same for all clients; default N/2 + 1
---@field db? integer for the nodes that name none; default 0
---@field tls? boolean|redlock.Tls for the nodes that do not say, and are no Unix sockets; default false

--- How TLS is spoken. A node takes from its client what it does not say itself. Inside nginx the parts that its sockets
--- do not take are refused, and the message names the directive that does.
---@class redlock.Tls
---@field ca? string a file of CA certificates, PEM; default the system's
---@field ca_path? string a directory of them, as openssl-rehash makes it; default the system's
---@field crl? string a file with the revocation lists of all CAs of a chain; default: nobody asks
---@field cert? string a file with a certificate of ours, and those up to its CA, PEM
---@field key? string a file with its key, PEM
---@field key_password? string of that file
---@field server_name? string whom the node's certificate is to be for, a name or an address; default the host
---@field ciphers? string OpenSSL's names, with ":" between them; default OpenSSL's
---@field min_version? "1.2"|"1.3" default "1.2"
---@field dangerously_unverified? boolean DANGER: whoever answers is believed, and is sent the password; default false

--- The guard against nodes that have forgotten their locks.
---@class redlock.Guard
---@field max_ttl? redlock.Milliseconds the longest life of a key, lock_delay included; default 30000
---@field cluster? string a name for the list of nodes, printable, without spaces; default: a hash of the list

--- A node in parts: either `host` or `path` is given.
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
---@field error? string why it is not up
---@field latency? number of the last reply, in milliseconds
---@field notifies boolean it calls who waits for a lock; false before anybody has had to wait
---@field notify_error? string why it does not
---@field quarantined? number with a guard: milliseconds until it votes; math.huge = until something happens
---@field quarantine? string why it does not vote

---@class redlock.Vote
---@field node string
---@field vote redlock.VoteKind
---@field error? string
---@field latency? number from the command to its reply, in milliseconds

---@class redlock.Key
---@field node string "10.0.0.1:6379"
---@field state "free"|"held"|"other"|"unknown" other: what is no token; unknown: no answer, or an error
---@field token? string of the holder, any bytes
---@field ttl? redlock.Milliseconds what was left of the key; nil when it does not expire
---@field error? string why it is unknown, or what else it is

---@class redlock.Inspection
---@field holder? string the token that a majority of the nodes holds
---@field ttl? redlock.Milliseconds when it has no majority any more, if nobody prolongs it
---@field nodes redlock.Key[]

---@alias redlock.FindingName
---| "down" # it does not answer
---| "quarantined" # the guard keeps it from voting
---| "same_server" # two nodes are one server
---| "replica" # it is a replica
---| "writable_replica" # it is a replica that can be written to
---| "cluster" # it is in cluster mode
---| "eviction" # it evicts keys when its memory is full
---| "rights" # an ACL forbids a command or a key
---| "refuses" # it refuses what a lock needs
---| "clock" # its clock is apart from the others
---| "certificate" # its TLS certificate ends soon
---| "persistence" # it forgets its locks when it restarts
---| "persistence_failing" # it cannot write its files
---| "slow" # it takes longer than half of node_timeout
---| "old_version" # a server that nobody maintains
---| "endless_keys" # locks without an expiry
---| "options" # a ttl too short for node_timeout
---| "replicas" # it has replicas
---| "mixed_versions" # servers of different versions
---| "node_count" # fewer than three nodes, or an even number

---@class redlock.Finding
---@field severity "error"|"warning"|"note" error: locks fail because of it, or are not safe
---@field name redlock.FindingName
---@field node? string "10.0.0.1:6379"; nil when it is about all of them
---@field message string what is wrong, and what to do

---@class redlock.DoctorOptions
---@field keys? boolean look through keys for locks without an expiry, 10,000 of each node at most
---@field resource? string whose keys are tried, where an ACL allows only some

---@class redlock.Client
local client = {}

--- Makes a lock object; nothing is sent.
---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options? redlock.LockOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code "closed"
---@nodiscard
function client:new_lock(resource, options) end

--- Makes a lock object and acquires it.
---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options? redlock.AcquireOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function client:acquire(resource, options) end

--- Acquires, calls fn(lock, ...), releases, and returns true and what fn returned. An error of fn is
--- raised again after the release. If the lease ended before fn did: nil, message, "expired" or
--- "lost", results...
---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options redlock.SectionOptions|nil
---@param fn fun(lock: redlock.Lock, ...): ...
---@param ... any handed to fn
---@return true? ok
---@return any ... what fn returned; or message, code
---@overload fun(self: redlock.Client, resource: string|string[], fn: fun(lock: redlock.Lock, ...), ...): true?, ...
function client:with(resource, options, fn, ...) end

--- All nodes at a glance, in the order in which they were given.
---@return redlock.NodeState[]
---@nodiscard
function client:nodes() end

--- Takes over what lock:detach() of another process has returned. Good for once.
---@param text string
---@param options? redlock.LockOptions
---@return redlock.Lock? lock
---@return string? message
---@return redlock.Code? code "lost": attached before, run out, or tampered with
---@nodiscard
function client:attach(text, options) end

--- What all nodes hold for the resource, and whether one token has a majority.
---@param resource string
---@return redlock.Inspection?
---@return string? message
---@return redlock.Code? code
---@nodiscard
function client:inspect(resource) end

--- With a guard: tells all nodes that they remember every lock there is. Only true when no client holds one.
---@return true? ok
---@return string? message
---@return redlock.Code? code
function client:bootstrap() end

--- Examines all nodes, changes nothing, and tells what is wrong, the gravest first; an empty list is a clean bill.
---@param options? redlock.DoctorOptions
---@return redlock.Finding[]?
---@return string? message
---@return redlock.Code? code
---@nodiscard
function client:doctor(options) end

--- DANGER: deletes somebody's key, who is not told. Returns on how many nodes.
---@param resource string
---@param token string as inspect() told it; "any" = whatever the key holds
---@return integer? nodes
---@return string? message
---@return redlock.Code? code "not_held": no node that answered holds it for that token
function client:force_release(resource, token) end

--- Releases what the client's locks hold, waits for it (node_timeout at most), closes. Idempotent.
---@return true? ok
---@return string? message
---@return redlock.Code? code "unavailable": what was not confirmed goes with its ttl
function client:close() end

--- One descriptor that is readable when process() is to be called, for whatever reason: a loop needs nothing
--- else. nil where there is none.
---@return integer?
---@nodiscard
function client:pollfd() end

--- What to poll the descriptor for.
---@return "r"
---@nodiscard
function client:events() end

--- In how many seconds process() must be called at the latest, 1 at most; nil = nothing is due.
---@return number? seconds
---@nodiscard
function client:timeout() end

--- Reads, decides and sends whatever can be without blocking. After close() the code is "closed".
---@return true? ok
---@return string? message
---@return redlock.Code? code
function client:process() end

--- The next lock whose started operation has ended; nil = none. For each process(), to be asked until it is nil.
---@return redlock.Lock?
---@nodiscard
function client:next_ended() end

---@class redlock.Lock
local lock = {}

--- Takes the lock, and returns how much of the lease is left.
---@param options? redlock.AcquireOptions for this call
---@return redlock.Milliseconds? validity
---@return string? message
---@return redlock.Code? code
function lock:acquire(options) end

--- Prolongs the lease. After a failure the old deadline stands.
---@param ttl? redlock.Milliseconds counted from now; default the ttl that it was acquired with
---@return redlock.Milliseconds? validity
---@return string? message
---@return redlock.Code? code
function lock:extend(ttl) end

--- Gives the lock back. With wait = false the bytes are sent and nothing is waited for; result() tells later.
---@param options? redlock.ReleaseOptions
---@return true? ok
---@return string? message
---@return redlock.Code? code "lost": a majority no longer had it before its time was over
function lock:release(options) end

--- The lock for client:attach() of another process, as text. It is not held any more, and not released.
---@return string? text
---@return string? message
---@return redlock.Code? code "not_held", "lost", "closed"
---@nodiscard
function lock:detach() end

--- What is left of the lease; 0 when none is held.
---@return redlock.Milliseconds
---@nodiscard
function lock:remaining() end

--- The same as remaining() > 0.
---@return boolean
---@nodiscard
function lock:is_held() end

--- How many of its keys may vanish before a second holder is possible; nil when it is not held. -1: one is possible.
---@return integer? margin known nodes + quorum - N - 1
---@nodiscard
function lock:margin() end

--- The fencing token of the lease, less than 2^53: greater than that of every earlier grant. nil when no lease is held,
--- or it was acquired without `fence`.
---@return integer? token
---@nodiscard
function lock:fence() end

--- For guards between steps: raises an error at the caller's line unless the lock is held.
---@return redlock.Milliseconds left
function lock:check() end

--- Why the last lease is lost; nil if it is not, or was given back. "unavailable": not yet, but its automatic
--- extends fail. "clock": not yet, but clocks of nodes were stepped.
---@return redlock.Code? reason
---@return redlock.Milliseconds? since how long ago that was
---@nodiscard
function lock:lost() end

---@return string resource without the prefix; of several, the first
---@nodiscard
function lock:resource() end

---@return string[] resources all of them, without the prefix
---@nodiscard
function lock:resources() end

---@return string? token 40 hexadecimal digits; nil when the lock is not held
---@nodiscard
function lock:token() end

---@return redlock.Milliseconds
---@nodiscard
function lock:ttl() end

--- What each node said in the last round.
---@return redlock.Vote[]
---@nodiscard
function lock:votes() end

--- Begins an operation without waiting for it; client:process() carries it on.
---@param operation "acquire"|"extend"|"release"
---@param argument? redlock.LockOptions|redlock.Milliseconds what the blocking call takes
---@return true? ok
---@return string? message
---@return redlock.Code? code
---@overload fun(self: redlock.Lock, operation: "acquire", options?: redlock.LockOptions): true?, string?, redlock.Code?
---@overload fun(self: redlock.Lock, operation: "extend", ttl?: redlock.Milliseconds): true?, string?, redlock.Code?
function lock:start(operation, argument) end

--- What the started operation ended with: what the blocking call would have returned, or
--- nil, message, "pending" while it is in flight.
---@return redlock.Milliseconds|true|nil result
---@return string? message
---@return redlock.Code|"pending"|nil code
---@nodiscard
function lock:result() end

--- Ends the operation in flight, if there is one, with the code "cancelled".
function lock:cancel() end

--- nginx only: the lock belongs to the worker, or to the request that calls, from now on.
---@param owner "request"|"worker"
---@return true? ok
---@return string? message
---@return redlock.Code? code "not_held"; "unavailable" for "request" in a phase after which no request ends
function lock:hand_over(owner) end

--- A client whose calls let other coroutines of cqueues go on. It has no pollfd, events, timeout,
--- process and next_ended: it polls itself.
---@class redlock.cqueues.Client
local cqueues_client = {}

---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options? redlock.LockOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:new_lock(resource, options) end

---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options? redlock.AcquireOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:acquire(resource, options) end

---@param resource string|string[] any bytes; a list is taken all or nothing, 64 at most
---@param options redlock.SectionOptions|nil
---@param fn fun(lock: redlock.cqueues.Lock, ...): ...
---@param ... any
---@return true? ok
---@return any ... what fn returned; or message, code
---@overload fun(self: redlock.cqueues.Client, resource: string|string[], fn: function, ...): true?, ...
function cqueues_client:with(resource, options, fn, ...) end

---@return redlock.NodeState[]
---@nodiscard
function cqueues_client:nodes() end

--- Takes over what lock:detach() of another process has returned. Good for once.
---@param text string
---@param options? redlock.LockOptions
---@return redlock.cqueues.Lock? lock
---@return string? message
---@return redlock.Code? code "lost": attached before, run out, or tampered with
---@nodiscard
function cqueues_client:attach(text, options) end

--- What all nodes hold for the resource, and whether one token has a majority.
---@param resource string
---@return redlock.Inspection?
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:inspect(resource) end

--- With a guard: tells all nodes that they remember every lock there is. Only true when no client holds one.
---@return true? ok
---@return string? message
---@return redlock.Code? code
function cqueues_client:bootstrap() end

--- Examines all nodes, changes nothing, and tells what is wrong, the gravest first; an empty list is a clean bill.
---@param options? redlock.DoctorOptions
---@return redlock.Finding[]?
---@return string? message
---@return redlock.Code? code
---@nodiscard
function cqueues_client:doctor(options) end

--- DANGER: deletes somebody's key, who is not told. Returns on how many nodes.
---@param resource string
---@param token string as inspect() told it; "any" = whatever the key holds
---@return integer? nodes
---@return string? message
---@return redlock.Code? code "not_held": no node that answered holds it for that token
function cqueues_client:force_release(resource, token) end

---@return true? ok
---@return string? message
---@return redlock.Code? code
function cqueues_client:close() end

--- As redlock.Lock, without start; result() is for a release that was not waited for.
---@class redlock.cqueues.Lock: redlock.Lock
---@field start nil

--- The same for coroutines that libuv runs.
---@class redlock.luv.Client: redlock.cqueues.Client

--- The same for threads of copas.
---@class redlock.copas.Client: redlock.cqueues.Client
