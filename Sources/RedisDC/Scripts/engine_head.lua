-- The beginning of every composed script: checks the session, loads its records, deletes kept answers that have
-- arrived, and handles confirmations. A kept answer is the stored reply to a request, for the case that the request is
-- repeated.
--
-- A composed script is engine_head, engine_resource if the operation may create the resource, one operation and
-- engine_tail, joined into one text. There are no functions: creating them on every call costs more than all the rest
-- of a script (docs/decisions.md). Local constants cost next to nothing. An operation collects its changes in locals,
-- and the tail writes them. An error before the tail leaves the data unchanged, except for two kinds of writes: those
-- of this head for confirmed permits of another resource, and those that an operation makes before the tail.
--
-- KEYS
--   [1] state: hash of all records. The key ends in `book`.
--   [2] index: sorted set in lexical order, all scores 0. Finds the records by session and by resource.
--   [3] sessions: sorted set of SIDs by expiry in microseconds. Only heartbeat, join, leave, inspect and list have it.
-- ARGV
--   [1] SID: session
--   [2] REQ: number of the request, grows with each request of the session. SID:REQ also names the claim it creates.
--   [3] settled: the answers to all requests up to this number have arrived; or empty
--   [4] confirmed: numbers of requests whose consumed permits have arrived, separated by commas, at most 4,000 bytes;
--       or empty
--   [5] NAME: resource
--   [6] and the following: see each operation
-- Reply: see each operation, or a refusal:
--   {'lost'}: the session does not exist, for example because the data was lost
--   {'lost', 'ended'}: the session has expired
--   {'stale'}: the client has reported the answer to this request as arrived, and it is no longer kept
--
-- Fields of the state. Numbers are little-endian doubles.
--   epoch           random, chosen when the state is created; a different epoch means that the data was lost
--   clock           last tick. Every grant, waiter, new resource, item and meeting takes the next one: the last tick
--                   + 1, or Redis's TIME in microseconds if that is later. Between two ticks the clock may be behind
--                   TIME.
--   partitions      number of partitions of the namespace
--   s:SID           session: expires, settled, last_answer (highest request with a kept answer), grants (so far)
--   i:SID           session: how it describes itself
--   c:SID:REQ       claim: claim_state, mode, priority (letters), count, tick, NAME, in some modes \0 and a note;
--                   or `d` and the kept answer of a request that has no claim, or whose claim has ended
--   t:NAME          resource: kind, policy (letters), permits (at creation), limit (total now, after resizing), free
--                   (available now), waiting (number of waiters), created (tick), signalled (permits added), consumed
--                   (permits used up)
--   g:NAME\0GROUP   group that has entered: number of its members, `created` of the resource
--   v:NAME\0TICK    item of a buffer
--   e:NAME\0TICK    meeting at an exchanger: what its parties brought (MessagePack)
--   n:NAME\0TICK    meeting: how many of its parties may still read it
-- Lines of the index, without the spaces. TICK is a big-endian integer of 8 bytes, in fields and notes as well.
--   s SID:REQ                          claim of a session
--   q NAME \0 PRIORITY TICK SID:REQ    waiter of a resource, in queue order
--   h NAME \0 SID:REQ                  holder of a resource
--   d NAME \0 ID                       ID that has counted down a latch
--   t NAME                             resource with waiters that a later script must look at (engine_give)
--   g NAME \0 GROUP \0 SID:REQ         waiter that enters together with its group
--   u NAME \0 GROUP                    group that has entered while some of its waiters are still queued
--   v NAME \0 TICK                     item that no claim has taken
-- Kinds of resources, with the letters of their policies.
--   s semaphore        f first come, first served; b waiters may be overtaken
--   m mutex            f
--   r read-write lock  f; r readers first; w writers first. A reader takes 1 of the permits, a writer all.
--   c condition        f. Permits without a waiter are deleted.
--   t turnstile        f. An open one has OPEN permits.
--   l latch            d the death of a participant counts down; f the death of one breaks the latch. signalled:
--                      counted down so far
--   b barrier          o a party that leaves or dies is removed; b a party that leaves or dies breaks the barrier.
--                      limit: parties; signalled: generations; count of a granted claim: generation * 1024 + arrival
--   p phaser           f. A barrier; its parties are the holders of its leases, and limit is their number.
--   e exchanger        o. A barrier whose parties bring values and receive the values of all.
--   k buffer           f. Its permits are the free places.
--   i items            f. The items of a buffer; its permits are the items that no claim has taken.
--   x destroyed        a resource whose waiters are being refused; z broken: likewise
local SEMAPHORE, MUTEX, READ_WRITE_LOCK, CONDITION, LATCH = 's', 'm', 'r', 'c', 'l'
local BARRIER, PHASER, EXCHANGER, ITEMS, DESTROYED, BROKEN = 'b', 'p', 'e', 'i', 'x', 'z'
local OVERTAKING, BREAKS_BARRIER, BREAKS_LATCH = 'b', 'b', 'f'
-- States of a claim. GRANTED: permits to consume, not confirmed yet. HELD: a lease.
local WAITING, GRANTED, HELD, ENDED = 'w', 'g', 'h', 'd'
-- Modes of a claim. The last three have a note. The note of a MEMBER is its group, and that of an ITEM is the item's
-- tick. The note of a MEETING is what the party brings, and after the grant the tick of the meeting.
local CONSUME, LEASE, MEMBER, ITEM, MEETING = 'c', 'l', 't', 'i', 'e'
-- Priorities: PREFERRED waiters come before all ORDINARY ones.
local PREFERRED, ORDINARY = '0', '1'
-- Formats of the records. The NAME of a claim begins at byte CLAIM_NAME.
local CLAIM, RESOURCE, SESSION, GROUP, NUMBER, TICK = '<c1c1c1dd', '<c1c1ddddddd', '<dddd', '<dd', '<d', '>I8'
local CLAIM_NAME = 20
-- First letters of the fields and of the lines.
local SESSION_FIELD, ABOUT_FIELD, CLAIM_FIELD, RESOURCE_FIELD = 's:', 'i:', 'c:', 't:'
local GROUP_FIELD, ITEM_FIELD, MEETING_FIELD, UNREAD_FIELD = 'g:', 'v:', 'e:', 'n:'
local CLAIM_LINE, QUEUE_LINE, HOLDER_LINE, COUNTED_LINE = 's', 'q', 'h', 'd'
local RECHECK_LINE, MEMBER_LINE, ENTERING_LINE, ITEM_LINE = 't', 'g', 'u', 'v'
-- More permits than all requests together can ask for.
local OPEN = 2 ^ 50
-- Values of grants_wanted. ON_CHANGE: permits may have become free; where overtaking is allowed, the tail grants
-- nothing and only wakes the first waiter, which then tries. CATCH_UP: the tail grants even where overtaking is
-- allowed, and continues with waiters that earlier scripts have left over.
local ON_CHANGE, CATCH_UP = 'on change', 'catch up'

local state, index = KEYS[1], KEYS[2]
local sid, request, name = ARGV[1], tonumber(ARGV[2]), ARGV[5]
local call, encode, decode, format = redis.call, struct.pack, struct.unpack, string.format
local request_id = sid .. ':' .. ARGV[2]

local stored = call('HMGET', state, 'clock', SESSION_FIELD .. sid, CLAIM_FIELD .. request_id, RESOURCE_FIELD .. name)
if not stored[2] then return {'lost'} end
local tick = decode(NUMBER, stored[1])
local expires, settled, last_answer, grants = decode(SESSION, stored[2])
-- The record that an earlier delivery of this request has written: its claim, or ENDED and the kept answer.
local previous = stored[3]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if expires <= now then return {'lost', 'ended'} end
if request <= settled then return {'stale'} end

-- The resource; `kind` is nil if it does not exist.
local kind, policy, permits, limit, free, waiting, created, signalled, consumed
if stored[4] then
  kind, policy, permits, limit, free, waiting, created, signalled, consumed = decode(RESOURCE, stored[4])
end

-- The work of the tail: whether it grants to waiters (nil: no), whether it writes the resource and the session, and the
-- arguments of HSET and HDEL on the state, and of ZADD and ZREM on the index.
local grants_wanted
local resource_changed, session_changed = false, false
local hset, hdel, zadd, zrem = {}, {}, {}, {}
-- The messages that the tail publishes, by SID. A message is a text of pairs, separated by spaces: REQ and a fence, or
-- REQ and a word, such as 'try'.
local wakeups
local reply

-- Deletes the kept answers that have arrived, at most 128 in one script.
if ARGV[3] ~= '' then
  local upto = math.min(tonumber(ARGV[3]), settled + 128)
  if upto > settled then
    local ENDED_BYTE = 100 -- string.byte(ENDED)
    local fields = {}
    for number = settled + 1, upto do fields[#fields + 1] = CLAIM_FIELD .. sid .. ':' .. format('%.0f', number) end
    for i, record in ipairs(call('HMGET', state, unpack(fields))) do
      if record and string.byte(record) == ENDED_BYTE then hdel[#hdel + 1] = fields[i] end
    end
    settled, session_changed = upto, true
  end
end

-- Ends the claims whose consumed permits are confirmed.
if ARGV[4] ~= '' then
  -- Lua cannot pass on thousands of arguments, and would fail in the middle of the writes.
  if #ARGV[4] > 4000 then return redis.error_reply('RDC more than 4000 bytes of confirmations in one request') end
  for number in string.gmatch(ARGV[4], '%d+') do
    local claim_id = sid .. ':' .. number
    local claim = call('HGET', state, CLAIM_FIELD .. claim_id)
    if claim and claim ~= ENDED then
      local claim_state, _, _, count, claim_tick, name_at = decode(CLAIM, claim)
      if claim_state == GRANTED then
        zrem[#zrem + 1] = CLAIM_LINE .. claim_id
        if tonumber(number) > settled then
          hset[#hset + 1] = CLAIM_FIELD .. claim_id
          hset[#hset + 1] = ENDED
          last_answer, session_changed = math.max(last_answer, tonumber(number)), true
        else
          hdel[#hdel + 1] = CLAIM_FIELD .. claim_id
        end
        local claim_name = string.sub(claim, name_at)
        if claim_name == name then
          if kind and claim_tick > created then consumed, resource_changed = consumed + count, true end
        else
          -- The claim is of another resource: only that resource's `consumed` changes, and it does so even if the
          -- operation itself is refused.
          local record = call('HGET', state, RESOURCE_FIELD .. claim_name)
          if record then
            local other_kind, other_policy, other_permits, other_limit, other_free, other_waiting, other_created,
              other_signalled, other_consumed = decode(RESOURCE, record)
            if claim_tick > other_created then
              -- ZREM first: Redis allows ZREM at maxmemory, and after it all other writes of the same script.
              call('ZREM', index, CLAIM_LINE .. claim_id)
              -- The claim ends in the same command, so that it counts once even if the operation is refused and
              -- repeated.
              call('HSET', state, RESOURCE_FIELD .. claim_name,
                encode(RESOURCE, other_kind, other_policy, other_permits, other_limit, other_free, other_waiting,
                  other_created, other_signalled, other_consumed + count),
                CLAIM_FIELD .. claim_id, ENDED)
              if tonumber(number) <= settled then call('HDEL', state, CLAIM_FIELD .. claim_id) end
            end
          end
        end
      end
    end
  end
end
