-- The beginning of every script that opens a mailbox: reads it, checks it, and repairs it after tampering.
--
-- A script consists of mail_head, for some operations mail_limits, and the file of the operation. Everything is
-- checked before anything is written, because Redis does not roll back. Only one function is created in each call,
-- because creating functions takes time (docs/decisions.md).
--
-- KEYS[1] meta  hash  partitions: the number of partitions of the namespace
-- A mailbox is a pair of keys:
-- box   hash  m  the mailbox's state (STATE)
--             l  the mailbox's own limits: words in the order of mail_limits.lua
--             d  the devices (DEVICE), one after the other
--             w  the processes that are registered to be notified (WAITER), one after the other
--             k:KEY  the index of the last message with this collapse key
-- mail  list  the messages (ELEMENT), each followed by its envelope. The element at position i has the index
--             from + 1 + i: indices have no gaps by construction.
--
-- Hints are published on wake:PROCESS of registered processes, and on wake:all when a mailbox has a new epoch. A
-- published text has one HINT for each mailbox: its name and its growth. An empty growth means that the mailbox must be
-- read, whatever is known about it. Otherwise the growth is a GROWTH, followed by the new messages if they are small,
-- each '<Hc0'.
--
-- ARGV[1] partitions  [2] an epoch in case a mailbox is created, 8 random bytes
-- Refusals: {'partitions', the actual number}, {'foreign', KEY}: the key holds data of another program.
local call, try, pack, unpacked, format = redis.call, redis.pcall, struct.pack, struct.unpack, string.format

-- Formats of struct.pack. The numbers are exact up to 2^53.
--
-- The mailbox's state:
--   epoch     8 bytes
--   last      index of the last message
--   tag       tag of that message, 8 bytes
--   from      index of the last message that is gone
--   from_tag  tag of that message, 8 bytes
--   sum       bytes of all messages ever
--   from_sum  bytes of the messages up to and including the one at `from`
--   hollow    bytes removed from messages that are still in the list
--   keyed     number of collapse keys
--   due       ms, when the time to live must be renewed; 0: not set
local STATE = '<c8dc8dc8ddddd'
-- kind, index, tag, ms when sent, ms when it expires or 0, sum of bytes up to and including it, collapse key
local ELEMENT = '<c1I6c8I6I6I6Bc0'
-- Prefixes of ELEMENT: one ends with the sum, one with the time when sent, and one with the tag.
local ELEMENT_TO_SUM, ELEMENT_TO_SENT, ELEMENT_TO_TAG = '<c1I6c8I6I6I6', '<c1I6c8I6', '<c1I6c8'
-- The kinds of elements: a message, and the empty place of a message that was replaced.
local MESSAGE, EMPTY = 'M', 'X'
-- The length of an element without its collapse key and its envelope.
local ELEMENT_SIZE = 34
-- name, index and tag of the last message that it has acknowledged, ms when last seen, polls. A poll is one call of
-- listen, 'PROCESS:NUMBER'. The polls are the current one, then the latest poll of each of up to three other processes,
-- separated by spaces.
local DEVICE = '<Bc0dc8dBc0'
-- process, ms until which it is registered
local WAITER = '<c16d'
-- name, growth
local HINT, HINT_TO_READ = '<Hc0Hc0', '<Hc0H'
-- epoch, index and tag of the previous last message, index and tag of the new last message
local GROWTH = '<c8I6c8I6c8'
local NO_TAG = '\0\0\0\0\0\0\0\0'

local partitions = try('HGET', KEYS[1], 'partitions')
if type(partitions) == 'table' then return {'foreign', KEYS[1]} end
if partitions and partitions ~= ARGV[1] then return {'partitions', partitions} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns a mailbox as a table; or nil and the key that holds data of another program.
local function open(box, mail)
  local fields = try('HMGET', box, 'm', 'l', 'd', 'w')
  if fields.err then return nil, box end
  local state, limits, devices, waiters = fields[1], fields[2], fields[3], fields[4]
  local count, tail = try('LLEN', mail), nil
  if type(count) == 'table' then return nil, mail end
  local kind, index, tag, sent, expires, sum
  if count > 0 then
    tail = call('LINDEX', mail, -1)
    kind = string.sub(tail, 1, 1)
    if #tail < ELEMENT_SIZE or kind ~= MESSAGE and kind ~= EMPTY then return nil, mail end
    kind, index, tag, sent, expires, sum = unpacked(ELEMENT_TO_SUM, tail)
  end
  local b = {box = box, mail = mail, limits = limits, devices = devices or '', waiters = waiters or ''}
  if state then
    b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow, b.keyed, b.due = unpacked(STATE, state)
    if count == b.last - b.from and (count == 0 or index == b.last and tag == b.tag) then return b end
    if count == 0 then
      -- Only the list was deleted: a cursor before its end is answered with 'truncated'.
      b.from, b.from_tag, b.from_sum, b.hollow = b.last, b.tag, b.sum, 0
      return b
    end
  elseif count == 0 then
    b.epoch, b.last, b.tag, b.from, b.from_tag = ARGV[2], 0, NO_TAG, 0, NO_TAG
    b.sum, b.from_sum, b.hollow, b.keyed, b.due, b.is_new = 0, 0, 0, 0, 0, true
    return b
  end
  -- The list does not match the state. Its messages are kept, under a new epoch: every cursor is answered with 'reset'.
  local head = call('LINDEX', mail, 0)
  local head_kind, head_index, head_tag, head_sent, head_expires, head_sum = unpacked(ELEMENT_TO_SUM, head)
  b.epoch, b.last, b.tag, b.sum, b.is_new = ARGV[2], index, tag, sum, true
  b.from, b.from_tag, b.from_sum = index - count, NO_TAG, head_sum - #head
  b.hollow, b.keyed, b.due, b.devices = 0, b.keyed or 0, 0, ''
  return b
end
