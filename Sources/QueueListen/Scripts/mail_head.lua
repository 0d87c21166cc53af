-- The beginning of every script that opens a mailbox: how one is read, checked, and repaired after tampering.
--
-- A script is mail_head, for some mail_trim, then one operation. Nothing is written before all has been checked: Redis
-- does not roll back. One function is made at each call, because making them takes time (docs/decisions.md).
--
-- KEYS[1] meta  hash  partitions: how many the namespace has
-- A mailbox is a pair of keys:
-- box   hash  m  the mailbox: epoch (8 bytes), last (index of the last message), tag (8 bytes: of that message), from
--                (index of the last message that is gone), from's tag, sum (bytes of all messages ever), from's sum,
--                hollow (bytes taken out of messages that are still there), keyed (collapse keys), due (ms: when the time
--                to live is to be renewed): '<c8dc8dc8ddddd'
--             l  limits of its own, words in the order of mail_limits.lua
--             d  devices, each '<Bc0dc8dBc0': name, index and tag that it has proven to have, ms when last seen, polls: the
--                one whose it is, then the last ones of up to three other processes, separated by spaces
--             w  processes to be woken, each '<c16d': id, ms until when
--             k:KEY  index of the last message with this collapse key
-- mail  list  messages, each '<c1I6c8I6I6I6Bc0' and its envelope: M or X (emptied), index, tag, ms when sent, ms when it
--             expires or 0, sum of bytes up to and with it, collapse key. The element at position i has the index
--             from + 1 + i: indices are contiguous by construction.
--
-- Hints are published on wake:PROCESS of those to be woken, and on wake:all when a mailbox was made anew: for each mailbox
-- '<Hc0Hc0', its name and how it has grown: nothing (it is to be read, whatever is known of it), or '<c8I6c8I6c8', the
-- epoch, index and tag of what was the last message and of what is, then the messages in between if they are small, '<Hc0'.
--
-- ARGV[1] partitions  [2] epoch for a new mailbox, 8 random bytes
-- Refusals: {'partitions', how many there are}, {'foreign', KEY}: the key holds someone else's data.
local call, try, pack, unpacked, format = redis.call, redis.pcall, struct.pack, struct.unpack, string.format
local partitions = try('HGET', KEYS[1], 'partitions')
if type(partitions) == 'table' then return {'foreign', KEYS[1]} end
if partitions and partitions ~= ARGV[1] then return {'partitions', partitions} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unknown = '\0\0\0\0\0\0\0\0'

-- A mailbox as a table, or nothing and the key that holds someone else's data.
local function open(box, mail)
  local found = try('HMGET', box, 'm', 'l', 'd', 'w')
  if found.err then return nil, box end
  local count, tail = try('LLEN', mail), nil
  if type(count) == 'table' then return nil, mail end
  local index, tag, sum, letter, _
  if count > 0 then
    tail = call('LINDEX', mail, -1)
    letter = string.sub(tail, 1, 1)
    if #tail < 34 or letter ~= 'M' and letter ~= 'X' then return nil, mail end
    _, index, tag, _, _, sum = unpacked('<c1I6c8I6I6I6', tail)
  end
  local b = {box = box, mail = mail, limits = found[2], devices = found[3] or '', waiters = found[4] or ''}
  if found[1] then
    b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow, b.keyed, b.due =
      unpacked('<c8dc8dc8ddddd', found[1])
    if count == b.last - b.from and (count == 0 or index == b.last and tag == b.tag) then return b end
    if count == 0 then
      -- The messages have been deleted, and nothing else: who has not read them is told so.
      b.from, b.from_tag, b.from_sum, b.hollow = b.last, b.tag, b.sum, 0
      return b
    end
  elseif count == 0 then
    b.epoch, b.last, b.tag, b.from, b.from_tag = ARGV[2], 0, unknown, 0, unknown
    b.sum, b.from_sum, b.hollow, b.keyed, b.due, b.is_new = 0, 0, 0, 0, 0, true
    return b
  end
  -- The messages are not those that the mailbox remembers. They are kept, under a new epoch: every reader is told.
  local head = call('LINDEX', mail, 0)
  local _, _, _, _, _, head_sum = unpacked('<c1I6c8I6I6I6', head)
  b.epoch, b.last, b.tag, b.sum, b.is_new = ARGV[2], index, tag, sum, true
  b.from, b.from_tag, b.from_sum = index - count, unknown, head_sum - #head
  b.hollow, b.keyed, b.due, b.devices = 0, b.keyed or 0, 0, ''
  return b
end
