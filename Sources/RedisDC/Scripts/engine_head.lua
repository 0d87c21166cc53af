-- The beginning of every script of a session: what it asks about, whether it may, and what it confirms.
--
-- A script is engine_head, for some engine_resource, then one operation, then engine_tail. They are one straight text
-- without functions, because making those takes longer than everything else that a script does (docs/decisions.md).
-- Changes are gathered in locals and written by the tail, so that whatever fails before leaves all as it was.
--
-- KEYS[1] book      hash    epoch       random, made with the table: another one means that the data were lost
--                           clock       last tick (a double): grows with every grant and waiter, never behind TIME
--                           partitions  how many the namespace has
--                           s:SID       session: ends, settled, last, grants (doubles)
--                           i:SID       session: what it says of itself
--                           c:SID:REQ   claim: state, mode, priority (letters), n, tick (doubles), name, in some modes
--                                       \0 and a note; or "d" when it is over, and what was answered
--                           t:NAME      resource: kind, policy (letters), permits, limit, free, waiting, created,
--                                       signalled, consumed (doubles)
--                           g:NAME \0 GROUP  group: how many of it are in, tick of the resource that it is in (doubles)
--                           v:NAME \0 TICK   item of a buffer
--                           e:NAME \0 TICK   what was brought to a meeting (MessagePack); n:…: who may still ask for it
-- KEYS[2] index     sorted set in lexical order: s SID:REQ (claims of a session), q NAME \0 PRIORITY TICK SID:REQ (waiters
--                   of a resource, in their order), h NAME \0 SID:REQ (its holders), d NAME \0 ID (who has counted down),
--                   t NAME (waiters to be looked at again), g NAME \0 GROUP \0 SID:REQ (waiters that come in with their
--                   group), u NAME \0 GROUP (a group that has come in, with waiters left), v NAME \0 TICK (an item that
--                   nobody has)
-- KEYS[3] sessions  sorted set: SID by the time (microseconds) at which it ends; only where sessions begin, go on and end
-- ARGV[1] SID  [2] REQ, a number that grows with each request of the session
--     [3] SETTLED: the answers to all requests up to here have arrived, or empty
--     [4] requests whose consumed permits have arrived, separated by commas, at most 100
--     [5] NAME
--
-- States of a claim: w waits, h holds a lease, g has been given permits to consume that it has not confirmed, d over.
-- Modes: c consume, l lease; with a note: t lease as one of a group (its name), i lease of an item (its tick), e at a
-- meeting (what it brings, then the meeting's tick). Priorities: 0 before 1. Doubles are little-endian; a tick in a line or
-- note is a big-endian integer of 8 bytes.
-- Kinds, with the letters of their policies:
--   s semaphore  f first come first served, b overtaking allowed        m mutex  f
--   r read-write lock  f, r readers first, w writers first: a reader takes 1 of its permits, a writer all
--   c condition  f: permits that nobody waits for vanish                t turnstile  f: has more permits than are ever asked
--   l latch      d a dead participant counts as down, f it breaks the latch; signalled: how many are down
--   b barrier    o who gives up or dies is taken out, b breaks it; limit: parties, signalled: generations; a grant's n is
--                generation * 1024 + arrival                            p phaser  f: a barrier for as many as hold it
--   e exchanger  o: a barrier whose parties bring something and get what all have brought
--   k buffer     f: its permits are free places            i its items  f: free are those that nobody has
--   x being destroyed, z broken: whoever waits is told so
-- Refusals: {'lost'}: the session is not there, the data are lost. {'lost', 'ended'}: its time is over. {'stale'}: this request has been answered long ago.
local book, index = KEYS[1], KEYS[2]
local sid, req, name = ARGV[1], tonumber(ARGV[2]), ARGV[5]
local call, pack, unpacked, format = redis.call, struct.pack, struct.unpack, string.format
local me = sid .. ':' .. ARGV[2]
-- More permits than are ever asked for.
local OPEN = 2 ^ 50

local found = call('HMGET', book, 'clock', 's:' .. sid, 'c:' .. me, 't:' .. name)
if not found[2] then return {'lost'} end
local tick = unpacked('<d', found[1])
local ends, settled, last, grants = unpacked('<dddd', found[2])
local answer = found[3]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if ends <= now then return {'lost', 'ended'} end
if req <= settled then return {'stale'} end

-- The resource; `kind` is nil when there is none.
local kind, policy, permits, limit, free, waiting, created, signalled, consumed
if found[4] then
  kind, policy, permits, limit, free, waiting, created, signalled, consumed = unpacked('<c1c1ddddddd', found[4])
end

-- What the tail writes: the resource and the session if they have changed, fields of the book, lines of the index.
local resource_changed, session_changed, gives = false, false, nil
local sets, dels, adds, rems = {}, {}, {}, {}
-- News for sessions: SID to a text of pairs, REQ and fence or REQ and a word.
local news
local reply

-- Forgets the answers that have arrived, at most so many at a time.
if ARGV[3] ~= '' then
  local upto = math.min(tonumber(ARGV[3]), settled + 128)
  if upto > settled then
    local names = {}
    for number = settled + 1, upto do names[#names + 1] = 'c:' .. sid .. ':' .. format('%.0f', number) end
    for i, text in ipairs(call('HMGET', book, unpack(names))) do
      if text and string.byte(text) == 100 then dels[#dels + 1] = names[i] end
    end
    settled, session_changed = upto, true
  end
end

-- Takes confirmed permits off the books.
if ARGV[4] ~= '' then
  -- Lua cannot pass thousands of arguments on, and finds out in the middle of writing.
  if #ARGV[4] > 4000 then return redis.error_reply('RDC more than 100 confirmations in one request') end
  for number in string.gmatch(ARGV[4], '%d+') do
    local id = sid .. ':' .. number
    local text = call('HGET', book, 'c:' .. id)
    if text and text ~= 'd' then
      local state, _, _, n, at, from = unpacked('<c1c1c1dd', text)
      if state == 'g' then
        rems[#rems + 1] = 's' .. id
        if tonumber(number) > settled then
          sets[#sets + 1] = 'c:' .. id
          sets[#sets + 1] = 'd'
          last, session_changed = math.max(last, tonumber(number)), true
        else
          dels[#dels + 1] = 'c:' .. id
        end
        local other = string.sub(text, from)
        if other == name then
          if kind and at > created then consumed, resource_changed = consumed + n, true end
        else
          -- Of another resource only this number changes, whatever becomes of the operation. Taking something away first
          -- lets it pass at maxmemory.
          local record = call('HGET', book, 't:' .. other)
          if record then
            local k, f, p, l, fr, w, c, s, co = unpacked('<c1c1ddddddd', record)
            if at > c then
              call('ZREM', index, 's' .. id)
              -- With the claim's end, so that it counts once even if the operation is refused and this comes again.
              call('HSET', book, 't:' .. other, pack('<c1c1ddddddd', k, f, p, l, fr, w, c, s, co + n), 'c:' .. id, 'd')
              if tonumber(number) <= settled then call('HDEL', book, 'c:' .. id) end
            end
          end
        end
      end
    end
  end
end
