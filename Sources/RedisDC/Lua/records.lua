-- The records of the engine: what is stored in a partition, the letters that stand for states, modes and kinds, and the
-- lines of the index.
--
-- Numbers in records are little-endian doubles. A tick is a time in microseconds (clock.lua). Ticks in fields and in
-- lines of the index are big-endian integers of 8 bytes.
--
-- A claim is what a request for permits creates: SID:SLOT:NUMBER names it, with the session, its slot (slots.lua), and
-- the number of the request.

-- The keys of a partition.
local Partition = record {
  also = {
    'state',    -- hash of all records. The name of this key ends in `book`.
    'index',    -- sorted set in lexical order, all scores 0. Finds records by resource.
    'sessions', -- sorted set of SIDs by expiry in microseconds. The score of an expired session is negative: the time
                -- until which its sweep is reserved for one process. Only scripts about sessions have this key.
    'values',   -- hash of the values of applications, up to 1 MiB each. Apart from the records, because a script that
                -- reads records in pages would copy every value among them. Its field '' is always there, for the
                -- reason of GUARD_LINE. Only scripts about sessions and values have this key.
    'put_ids',  -- sorted set of the ids of a buffer's puts, by the tick of the put. A key for each buffer, which ends
                -- in `put:NAME`, and expires. Only scripts of puts with an id have this key.
  },
}

-- Returns what precedes the SID in the name of a session's channel: the key of the state with `wake:` in place of its
-- ending `book`.
local function wake_channel(state)
  return string.sub(state, 1, -5) .. 'wake:'
end

-- Fields that the state has once:
--   epoch       random, chosen when the state is created; a different epoch means that the data was lost
--   partitions  number of partitions of the namespace, then ' layout 3', the version of this layout
--   clock       the last tick. Every lease, waiter, new resource, item and meeting takes the next one (clock.lua)
--   rechecked   the last name that a heartbeat has handed out to be rechecked
--   swept       the sessions that were swept last (session_sweep.lua)
--   watchers    sessions that send a heartbeat whenever the next session expires (session_watch.lua)
-- The other fields of the state and of the values begin with these letters:
--   i:SID           how the session describes itself
local ABOUT_FIELD = 'i:'
--   s:SID           session, see Session
local SESSION_FIELD = 's:'
--   c:SID:SLOT      slot: its state, the NUMBER of the last request that it has served, and a claim or a kept reply
local SLOT_FIELD = 'c:'
--   t:NAME          resource, see Resource
local RESOURCE_FIELD = 't:'
--   g:NAME\0GROUP   group that has entered, see Group
local GROUP_FIELD = 'g:'
--   e:NAME\0TICK    meeting at an exchanger: how many of its parties may still read it; then the CLAIMs of all parties,
--                   separated by spaces
local MEETING_FIELD = 'e:'
--   x:CLAIM         claim of an expired session that no script can end, set aside: the record of its slot
local ASIDE_FIELD = 'x:'
--   v:NAME\0TICK    of the values: item of a buffer
local ITEM_FIELD = 'v:'
--   b:CLAIM         of the values: what a party brings to an exchanger, until all parties of its meeting have read it
local BROUGHT_FIELD = 'b:'

-- Formats of single numbers, and of ticks in fields and lines.
local NUMBER_FORMAT, TICK_FORMAT = '<d', '>I8'
-- The number 0 as a record, in place of a clock or meeting that has been deleted.
local NEVER = '\0\0\0\0\0\0\0\0'
-- The number 1 as a record.
local ONE = '\0\0\0\0\0\0\240\63'

-- A session: what s:SID holds. A record of another size is corrupt, and counts as expired.
local Session = record {
  format = '<ddd',
  size = 24,
  'expires', -- microseconds. A script that acts on the expiry of a session, because TIME has passed `expires`, sets it
             -- to 0: then it has expired for every other script too, whatever TIME is.
  'notices', -- the number of the process's connection times CONNECTION, plus the number of the session's claims that
             -- others have granted or ended since the connection's first heartbeat
  'slots',   -- greater than the numbers of all its slots, which count from 0
  also = {'stored'}, -- the record as it is stored, or false
}
-- The range of notices that belongs to one connection: 2^32.
local CONNECTION = 4294967296
-- The notices of a session whose record was corrupt, until its slots are counted (session_sweep.lua): below 0, also
-- after later notices have been added.
local UNCOUNTED = -4503599627370496

-- Returns whether what is stored for a session exists and has the size of a session.
local function is_session(stored)
  return stored and #stored == Session.size
end

-- A slot: the beginning of what c:SID:SLOT holds. A shorter record is damaged.
local Slot = record {
  format = '<c1d',
  size = 9,
  'state',  -- DONE, WAITING, GRANTED or HELD
  'number', -- NUMBER of the last request that it has served
  also = {
    'stored', -- the record as it is stored, or false
    -- The field and the record of the slot's session, if the record must be written because the slot is new.
    'session_field',
    'session_record',
  },
}
-- States of a slot. A claim is WAITING, GRANTED (permits to consume, whose arrival is not confirmed yet), or HELD (a
-- lease), and the record is a Claim. DONE: there is no claim, and the number is followed by the kept reply of the last
-- request, by -1 if it was refused (settle_claim), or by the word for how others have ended its claim: gone, broken or
-- lost.
local DONE, WAITING, GRANTED, HELD = 'd', 'w', 'g', 'h'

-- Where the kept reply is in the record of a slot.
local KEPT_REPLY_AT = 10

-- Returns the record of a slot without a claim; a kept reply may be appended.
local function done_slot(number)
  return struct.pack(Slot.format, DONE, number)
end

-- Returns what follows the number in the record of a slot without a claim.
local function kept_reply(stored)
  return string.sub(stored, KEPT_REPLY_AT)
end

-- Returns the state of a slot from its record.
local function slot_state(stored)
  return string.sub(stored, 1, 1)
end

-- A claim: what c:SID:SLOT holds if the slot is WAITING, GRANTED or HELD. It is followed by t:NAME, and in some modes
-- by \0 and a note.
local Claim = record {
  format = '<c1dddc1c1',
  size = 27,
  'state',
  'number',
  'count',    -- number of permits; of a party that has been granted, generation * 1024 + index
  'tick',     -- WAITING: of the place in the queue; HELD: the fence; GRANTED: `created` of the resource, or later
  'mode',
  'priority', -- PREFERRED or ORDINARY
  next = 'name_at', -- where t:NAME begins
  also = {'name_at'},
}
-- Modes of a claim. SOLE is the lease of a mutex, whose record names the holder (release_mutex). COHORT is that of a
-- process that hands the mutex over among its own tasks: each gets a fence from its FENCES. The note of a MEMBER is its
-- group, that of an ITEM the item's tick, and that of a MEETING, after the grant, the tick of the meeting. PARTY is the
-- registration of a party of a phaser. Modes without a name here: a arrival at a barrier or phaser, p participant of a
-- latch.
local CONSUME, LEASE, SOLE, COHORT, MEMBER = 'c', 'l', 'm', 'k', 't'
local ITEM, PARTY, MEETING = 'i', 'r', 'e'
-- Priorities: PREFERRED waiters come before all ORDINARY ones.
local PREFERRED, ORDINARY = '0', '1'

-- The positions of the mode, t:NAME and NAME in the record of a claim.
local MODE_AT, CLAIMED_FIELD_AT, CLAIMED_NAME_AT = 26, 28, 30

-- Returns the mode of a claim from the record of its slot.
local function claim_mode(stored)
  return string.sub(stored, MODE_AT, MODE_AT)
end

-- Returns t:NAME of the resource of a claim without a note, from the record of its slot.
local function claimed_field(stored)
  return string.sub(stored, CLAIMED_FIELD_AT)
end

-- Returns NAME of the resource of a claim without a note, from the record of its slot.
local function claimed_name(stored)
  return string.sub(stored, CLAIMED_NAME_AT)
end

-- Returns NAME of the resource of a claim with or without a note, from the record of its slot; nil if it is damaged.
local function name_in_claim(stored)
  return string.match(stored, '^t:(%Z+)', CLAIMED_FIELD_AT)
end

-- Returns CLAIM, the name of a claim, from the field of its slot and its number.
local function id_of_claim(slot_field, number)
  return string.sub(slot_field, 3) .. ':' .. string.format('%d', number)
end

-- A resource: what t:NAME holds. A shorter record is damaged.
local Resource = record {
  format = '<c2c1ddddddd',
  size = 59,
  'kind',      -- two letters, see below
  'family',    -- PERMITS, GROUPS or MEETINGS
  'waiting',   -- number of waiters
  'free',      -- permits available now
  'consumed',  -- permits used up
  'permits',   -- at creation
  'limit',     -- total now, after resizing
  'created',   -- tick
  'signalled', -- permits added; for a mutex the last fence that its cohort may use, or 0
  also = {
    'field',  -- t:NAME
    'name',   -- NAME, where a script needs it
    'stored', -- the record as it is stored, or false
    'tail',   -- what follows the record: for a mutex of the family PERMITS the claim that holds it, for a kind of
              -- MEETINGS the tick in the queue of the last party of the open generation, and their number
  },
}
-- The position of the tail in the record of a resource.
local TAIL_AT = 60
-- The beginning of the record of a mutex of the family PERMITS without waiters.
local MUTEX_WITHOUT_WAITERS = 'mfp\0\0\0\0\0\0\0\0'
-- The beginning of the record of a mutex of the family PERMITS that is held and has no waiters, up to `created`.
local LOCKED_MUTEX = MUTEX_WITHOUT_WAITERS .. NEVER .. NEVER .. ONE .. ONE

-- Returns the tail of a resource from its record.
local function tail_of_resource(stored)
  return string.sub(stored, TAIL_AT)
end

-- Returns the family of a resource from its record.
local function family_of_resource(stored)
  return string.sub(stored, 3, 3)
end

-- Returns the record of a resource with its tail.
local function record_with_tail(resource)
  return Resource.write(resource) .. resource.tail
end

-- Families of resources, by what is granted to waiters: permits in the order of the queue (grant.lua), permits to
-- groups (group_grant.lua), or a meeting to all at once (meeting_grant.lua). CLEARING stands for none of them, in
-- scripts that clear a destroyed or broken resource.
local PERMITS, GROUPS, MEETINGS, CLEARING = 'p', 'g', 'm', 'x'

-- Kinds of resources, with the letters of their policies. Kinds without a name here:
--   sf semaphore
--   rf read-write lock; rr readers first; rw writers first. A reader takes 1 of the permits, a writer all.
--   tf turnstile. An open one has OPEN permits.
--   ld latch: the death of a participant counts down. signalled: counted down so far
--   bo barrier: a party that leaves or dies is removed. limit: parties; signalled: generations; free: parties of the
--      open generation that have not been granted yet
--   kf buffer. Its permits are the free places.
--
-- A semaphore whose waiters may be overtaken.
local OVERTAKING_SEMAPHORE = 'sb'
-- A mutex has one permit. In the family PERMITS its record names the holder.
local MUTEX = 'mf'
-- Permits of a condition without a waiter are deleted.
local CONDITION = 'cf'
-- A latch that the death of a participant breaks.
local LATCH_BROKEN_BY_DEATH = 'lf'
-- A barrier that a party which leaves or dies breaks.
local BARRIER_BROKEN_BY_LEAVING = 'bb'
-- A phaser is a barrier; its parties are the holders of its leases, and limit is their number.
local PHASER = 'pf'
-- An exchanger is a barrier whose parties bring values and receive the values of all.
local EXCHANGER = 'eo'
-- The items of a buffer; its permits are the items that no claim has taken.
local ITEMS = 'if'
-- A resource that has been destroyed and is not cleared yet (clear.lua).
local DESTROYED = 'xf'
-- A broken resource: its waiters are refused.
local BROKEN = 'zf'
-- The first letters of the kinds of read-write locks, and of buffers.
local READ_WRITE_LOCK, BUFFER = 'r', 'k'
-- The end of the name of the items of a buffer, after the name of the buffer.
local ITEMS_SUFFIX = '#items'

-- More permits than all requests together can ask for: 2^50.
local OPEN = 1125899906842624
-- The number of fences that a cohort reserves at a time, beginning with that of its grant: 2^20.
local FENCES = 1048576
-- The number of ids that a buffer remembers, and the milliseconds after the last put with an id that it remembers them.
local MAX_PUT_IDS, PUT_ID_LIFETIME = 10000, 3600000
-- The greatest number of parties of a phaser, barrier or exchanger.
local MAX_PARTIES = 1024

-- A group that has entered: what g:NAME\0GROUP holds.
local Group = record {
  format = '<dd',
  'members', -- number of its members
  'created', -- of the resource. With another one, the members hold a destroyed resource of the same name.
}

-- Lines of the index begin with these letters. They contain no spaces, which separate their fields here:
--   a                               always there: an empty index would disappear, and could not be used again in the
--                                   same script while its slot is being moved to another server
local GUARD_LINE = 'a'
--   q NAME \0 PRIORITY TICK CLAIM   waiter of a resource, in queue order
local QUEUE_LINE = 'q'
--   h NAME \0 CLAIM                 holder of a resource that does not name its holder itself
local HOLDER_LINE = 'h'
--   d NAME \0 ID                    ID that has counted down a latch
local COUNTED_LINE = 'd'
--   t NAME                          resource that a later script must look at: it has waiters left over, or is to be
--                                   cleared
local RECHECK_LINE = 't'
--   g NAME \0 GROUP \0 CLAIM        waiter that enters together with its group
local MEMBER_LINE = 'g'
--   u NAME \0 GROUP                 group that has entered while some of its waiters are still queued
local ENTERING_LINE = 'u'
--   v NAME \0 TICK                  item that no claim has taken
local ITEM_LINE = 'v'

-- Returns the line of a waiter.
local function queue_line(name, priority, tick, claim_id)
  return QUEUE_LINE .. name .. '\0' .. priority .. struct.pack(TICK_FORMAT, tick) .. claim_id
end

-- Returns the position of the tick in the line of a waiter: after QUEUE_LINE, the name, a zero byte and a priority.
local function queue_tick_at(name)
  return #name + 4
end

-- Returns the position of the claim in the line of a waiter: after the tick of 8 bytes.
local function queue_claim_at(name)
  return #name + 12
end

-- Returns the position of the claim in the line of a holder: after HOLDER_LINE, the name and a zero byte.
local function holder_claim_at(name)
  return #name + 3
end

-- Returns the line of a holder.
local function holder_line(name, claim_id)
  return HOLDER_LINE .. name .. '\0' .. claim_id
end

-- Returns the lower bound, for ZRANGEBYLEX, of the lines that begin with a letter, the name of a resource and a zero
-- byte.
local function first_line(letter, name)
  return '[' .. letter .. name .. '\0'
end

-- Returns the upper bound of these lines.
local function after_last_line(letter, name)
  return '(' .. letter .. name .. '\1'
end
