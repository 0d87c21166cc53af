-- The records of the engine, and the names that its scripts have for them.
--
-- Every line without an indentation is a declaration of its own. A script consists of the declarations whose names it
-- uses, and of the parts that Scripts.swift lists for it, joined into one text. So a script contains what it needs and
-- nothing else. There are no functions: creating them in every call costs more than all the rest of a script
-- (docs/decisions/0018).
--
-- KEYS of a partition:
--   [1] state: hash of all records. The key ends in `book`.
--   [2] index: sorted set in lexical order, all scores 0. Finds records by resource.
--   [3] sessions: sorted set of SIDs by expiry in microseconds. The score of an expired session is negative: the
--       time until which its sweep is reserved for one process.
--   [4] values: hash of the values of applications, up to 1 MiB each. Apart from the records, because a script that
--       reads records in pages would copy every value among them. Its field '' is always there: see GUARD_LINE.
--   [5] put ids: sorted set of the ids of a buffer's puts, by the tick of the put. A key for each buffer, which ends in
--       `put:NAME`, and expires.
--   Only scripts about sessions and values have the third and the fourth, and only those of puts with an id the fifth.
-- Numbers in records are little-endian doubles. A tick is a time in microseconds, see `clock`. Ticks in fields and in
-- lines of the index are big-endian integers of 8 bytes.
--
-- A claim is what a request for permits creates: SID:SLOT:NUMBER names it, with the session, its slot (slot.lua), and
-- the number of the request.
local state = KEYS[1]
local index = KEYS[2]
local sessions = KEYS[3]
local values = KEYS[4]
local put_ids = KEYS[5]
local call = redis.call
local protected = redis.pcall
local encode = struct.pack
local decode = struct.unpack
local format = string.format

-- Fields of the state, and their values:
--   epoch       random, chosen when the state is created; a different epoch means that the data was lost
--   partitions  number of partitions of the namespace, then ' layout 3', the version of this layout
--   clock       the last tick. Every lease, waiter, new resource, item and meeting takes the next one: the last tick
--               + 1, or Redis's TIME in microseconds if that is later. Between two ticks the clock may be behind TIME.
--   rechecked   the last name that a heartbeat has handed out to be rechecked
--   watchers    sessions that look when others expire: see session_watch.lua
--   i:SID       how the session describes itself
--   s:SID       session: expires; notices; slots, a number that all its slots are below. A record of another size is
--               corrupt, and counts as expired. A script that acts on the expiry of a session, because TIME has passed
--               `expires`, sets that to 0: then it has expired for every other script too, whatever TIME is. notices: the
--               number of the process's connection times CONNECTION, plus the number of the session's claims that others
--               have granted or ended since the connection's first heartbeat.
--   c:SID:SLOT  slot: its state, the NUMBER of the last request that it has served, and a claim or a kept reply
--   t:NAME      resource: kind (two letters), family, waiting (number of waiters), free (permits available now),
--               consumed (permits used up), permits (at creation), limit (total now, after resizing), created (tick),
--               signalled (permits added; for a mutex the last fence that its cohort may use, or 0); then TAIL: for a
--               mutex of the family PERMITS the claim that holds it, for a kind of MEETINGS the tick in
--               the queue of the last party of the open generation, and their number
--   g:NAME\0GROUP   group that has entered: number of its members, `created` of the resource
--   e:NAME\0TICK    meeting at an exchanger: how many of its parties may still read it; then the CLAIMs of all parties,
--               separated by spaces
--   x:CLAIM     claim of an expired session that no script can end, set aside: the record of its slot
-- Fields of the values:
--   v:NAME\0TICK    item of a buffer
--   b:CLAIM     what a party brings to an exchanger, until all parties of its meeting have read it
local ABOUT_FIELD = 'i:'
local SESSION_FIELD = 's:'
local SLOT_FIELD = 'c:'
local RESOURCE_FIELD = 't:'
local GROUP_FIELD = 'g:'
local ITEM_FIELD = 'v:'
local MEETING_FIELD = 'e:'
local BROUGHT_FIELD = 'b:'
local ASIDE_FIELD = 'x:'
local SESSION = '<ddd'
local SESSION_SIZE = 24
local CONNECTION = 4294967296
-- Notices below 0: the slots of a corrupt record are still being counted (session_sweep.lua). Later notices are added.
local UNCOUNTED = -4503599627370496
local SLOT = '<c1d'
local SLOT_SIZE = 9
local CLAIM = '<c1dddc1c1'
local CLAIM_SIZE = 27
local RESOURCE = '<c2c1ddddddd'
local TAIL = 60
-- A shorter record is damaged.
local RESOURCE_SIZE = 59
-- The beginning of such a record: a mutex, family PERMITS, no waiters.
local MUTEX_WITHOUT_WAITERS = 'mfp\0\0\0\0\0\0\0\0'
local GROUP = '<dd'
local NUMBER = '<d'
local TICK = '>I8'
-- The number 0, for a clock that somebody has deleted. A tick that is not a number below 2^53 is somebody's garbage.
local NEVER = '\0\0\0\0\0\0\0\0'
local MAX_TICK = 9007199254740992

-- States of a slot. A claim is WAITING, GRANTED (permits to consume, whose arrival is not confirmed yet), or HELD (a
-- lease). CLAIM continues with count, tick, mode and priority, then t:NAME, and in some modes \0 and a note. The tick
-- is that of the place in the queue, the fence of a lease, or, for consumed permits, `created` of the resource. DONE:
-- there is no claim. What follows is the kept reply, -1 for a refused request (settle.lua), or how another one has ended
-- the claim: gone, broken, lost.
local DONE = 'd'
local WAITING = 'w'
local GRANTED = 'g'
local HELD = 'h'

-- Modes of a claim. SOLE is the lease of a mutex, whose record names the holder (release_mutex.lua). COHORT is that of
-- a process that hands the mutex over among its own tasks: each gets a fence from its FENCES. The note of a MEMBER is
-- its group, that of an ITEM the item's tick, and that of a MEETING, after the grant, the tick of the meeting.
local CONSUME = 'c'
local LEASE = 'l'
local SOLE = 'm'
local COHORT = 'k'
local MEMBER = 't'
local ITEM = 'i'
local ARRIVAL = 'a'
local PARTY = 'r'
local PARTICIPANT = 'p'
local MEETING = 'e'
-- Priorities: PREFERRED waiters come before all ORDINARY ones.
local PREFERRED = '0'
local ORDINARY = '1'

-- Families of resources, by what is granted to waiters: permits in the order of the queue (grant.lua), permits to
-- groups (group_grant.lua), or a meeting to all at once (meeting_grant.lua).
local PERMITS = 'p'
local GROUPS = 'g'
local MEETINGS = 'm'

-- Kinds of resources, with the letters of their policies.
--   sf semaphore; sb one whose waiters may be overtaken
--   mf mutex
--   rf read-write lock; rr readers first; rw writers first. A reader takes 1 of the permits, a writer all.
--   cf condition. Permits without a waiter are deleted.
--   tf turnstile. An open one has OPEN permits.
--   ld latch: the death of a participant counts down; lf: it breaks the latch. signalled: counted down so far
--   bo barrier: a party that leaves or dies is removed; bb: it breaks the barrier. limit: parties; signalled:
--      generations; free: parties of the open generation that have not been granted yet; count of a granted claim:
--      generation * 1024 + index
--   pf phaser. A barrier; its parties are the holders of its leases, and limit is their number.
--   eo exchanger. A barrier whose parties bring values and receive the values of all.
--   kf buffer. Its permits are the free places.
--   if items: the items of a buffer; its permits are the items that no claim has taken.
--   xf destroyed: a resource that clear.lua has not deleted yet; zf broken: its waiters are refused
local OVERTAKING_SEMAPHORE = 'sb'
local MUTEX = 'mf'
local CONDITION = 'cf'
local LATCH_BROKEN_BY_DEATH = 'lf'
local BARRIER_BROKEN_BY_LEAVING = 'bb'
local PHASER = 'pf'
local EXCHANGER = 'eo'
local ITEMS = 'if'
local DESTROYED = 'xf'
local BROKEN = 'zf'
-- The first letters of the kinds of read-write locks, and of buffers.
local READ_WRITE_LOCK = 'r'
local BUFFER = 'k'
-- More permits than all requests together can ask for: 2^50.
local OPEN = 1125899906842624
-- The number of fences that a cohort reserves at a time, beginning with that of its grant: 2^20.
local FENCES = 1048576
-- The number of ids that a buffer remembers, and the milliseconds after the last put with an id that it remembers them.
local MAX_PUT_IDS = 10000
local PUT_ID_LIFETIME = 3600000

-- Lines of the index, without the spaces:
--   q NAME \0 PRIORITY TICK CLAIM   waiter of a resource, in queue order
--   h NAME \0 CLAIM                 holder of a resource that does not name its holder itself
--   d NAME \0 ID                    ID that has counted down a latch
--   t NAME                          resource that a later script must look at: it has waiters left over, or is to be
--                                   cleared
--   g NAME \0 GROUP \0 CLAIM        waiter that enters together with its group
--   u NAME \0 GROUP                 group that has entered while some of its waiters are still queued
--   v NAME \0 TICK                  item that no claim has taken
--   a                               always there: an empty index would disappear, and could not be used again in the
--                                   same script while its slot is being moved to another server
local GUARD_LINE = 'a'
local QUEUE_LINE = 'q'
local HOLDER_LINE = 'h'
local COUNTED_LINE = 'd'
local RECHECK_LINE = 't'
local MEMBER_LINE = 'g'
local ENTERING_LINE = 'u'
local ITEM_LINE = 'v'
