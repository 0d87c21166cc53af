-- The beginning of every script that uses a mailbox: the layout of the data.
--
-- A script is composed of mail_head and the files of its operation (Scripts.swift). Everything is checked before
-- anything is written, because Redis does not roll back. Functions, tables and long strings are created only where
-- they are needed, because creating them takes time (docs/decisions/0043).
--
-- KEYS[1] meta  hash  partitions: the number of partitions of the namespace, then LAYOUT
-- A mailbox is a pair of keys:
-- box   hash  m  the mailbox's state (STATE), its own limits (LIMITS) if it has any, and the processes that are
--                registered to be notified (WAITER), one after the other
--             d  the devices (DEVICE), one after the other
--             h  the tags of the last messages that were acknowledged and deleted, in order, 8 bytes each. Valid if the
--                last one is from_tag
--             k:KEY  the index of the last message with this collapse key
-- mail  list  the messages, each as two elements: HEAD, BODY with the envelope. The message whose elements are at 2i
--             and 2i + 1 has the index from + 1 + i: indices have no gaps by construction.
--
-- Wake-ups are published on wake:PROCESS of registered processes, and on wake:all when a mailbox has a new epoch. A
-- published text has one WAKE_UP for each mailbox: its name and its growth. An empty growth means that the mailbox must
-- be read, whatever is known about it. Otherwise the growth is a GROWTH, followed by the elements of the new messages if
-- they are small, each '<Hc0'.
--
-- Refusals: {'partitions', the actual number}, {'foreign', KEY}: the key holds data of another program.
-- The version of what is stored. A program that knows only the first layout expects the number alone, and refuses it.
local LAYOUT = ' layout 2'
local call, try, pack, unpacked = redis.call, redis.pcall, struct.pack, struct.unpack
local format, sub = string.format, string.sub

-- Formats of struct.pack. The numbers are exact up to 2^53.
--
-- The mailbox's state:
--   partitions  of the namespace
--   epoch       8 bytes
--   last        index of the last message
--   tag         tag of that message, 8 bytes
--   from        index of the last message that is gone
--   from_tag    tag of that message, 8 bytes
--   sum         bytes of all messages ever
--   from_sum    bytes of the messages up to and including the one at `from`
--   hollow      bytes removed from messages that are still in the list
--   keyed       number of collapse keys
--   due         ms, when the time to live must be renewed; 0: not set
--   own_size    bytes of the mailbox's own limits, which follow; 0: none
local STATE = '<Hc8dc8dc8dddddB'
-- Limits, as the client passes them and as a mailbox's own limits are stored:
--   max_messages   maximum number of messages
--   max_bytes      maximum number of bytes
--   when_full      REJECT or DROP_OLDEST
--   max_age        ms that a message is delivered; 0: always
--   ttl            ms after which an unused mailbox is deleted; 0: never
--   backlog_count  number of messages kept beyond acknowledgement
--   backlog_age    ms that messages are kept beyond acknowledgement
--   device_ttl     ms after which an unseen device is forgotten; 0: never
local LIMITS, LIMITS_SIZE = '<ddBddddd', 57
local REJECT, DROP_OLDEST = 0, 1
-- A message is two elements of the list. The first is HEAD, so that looking at a message does not copy its body:
--   kind   MESSAGE, or EMPTY: the place of a message that was replaced
--   index
--   sum    bytes of all messages up to and including this one
--   sent   ms
--   tag    8 bytes
local HEAD, HEAD_SIZE = '<BI6I6I6c8', 27
local HEAD_TO_SUM, HEAD_TO_SENT = '<BI6I6', '<BI6I6I6'
local MESSAGE, EMPTY = 77, 88
-- The second is as the client passes it, BODY and the envelope:
--   life   ms that it is delivered; 0: always
--   key    collapse key, which may be empty
local BODY, BODY_SIZE = '<I6Bc0', 7
-- name, index and tag of the last message that it has acknowledged (index -1: nothing since its last gap), ms when last
-- seen, polls. A poll is one call of listen. The polls (POLL) are the current one, then the latest poll of each of up to
-- three other processes.
local DEVICE = '<Bc0dc8dBc0'
-- process, number
local POLL, POLL_SIZE = '<c16d', 24
-- process, ms until which it is registered
local WAITER, WAITER_SIZE = '<c16d', 24
-- name, growth
local WAKE_UP, WAKE_UP_TO_READ = '<Hc0Hc0', '<Hc0H'
-- epoch, index and tag of the previous last message, index and tag of the new last message
local GROWTH = '<c8I6c8I6c8'
local NO_TAG = '\0\0\0\0\0\0\0\0'

