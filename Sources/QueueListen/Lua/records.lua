-- The records of mailboxes: what Redis stores, and what clients pass and receive in packed form. All numbers are exact
-- up to 2^53, times are ms since 1970, and epochs and tags are 8 random bytes.

-- The keys of a partition. meta is a hash with the field `partitions`: the number of partitions of the namespace, then
-- LAYOUT, the version of what is stored. A program of the first layout expects the number alone, and refuses this
-- value.
--
-- A mailbox is a pair of keys:
-- box   hash  m  the mailbox's state (State), its own limits (Limits) if it has any, and the processes that are
--                registered to be notified (Waiter), one after the other
--             d  the devices (Device), one after the other
--             h  the history: the tags of the last messages that were acknowledged and deleted, in order, 8 bytes each.
--                It is valid if the last tag is from_tag
--             k:KEY  the index of the last message with this collapse key
-- mail  list  the messages, each as two elements: Head, and Body with the envelope. The message whose elements are at
--             2i and 2i + 1 has the index from + 1 + i: indices have no gaps by construction.
--
-- Tables and long strings are created only where they are needed, because creating them takes time
-- (docs/decisions/0043).
--
-- Refusals of all entries: {'partitions', the actual number}, {'foreign', KEY}: the key holds data of another program.
local LAYOUT = ' layout 2'
-- The tag of no message.
local NO_TAG = '\0\0\0\0\0\0\0\0'

-- The state of a mailbox.
local State = record {
  format = '<Hc8dc8dc8dddddB',
  'partitions',  -- of the namespace
  'epoch',
  'last',        -- index of the last message
  'tag',         -- of that message
  'from',        -- index of the last message that was deleted
  'from_tag',    -- tag of that message
  'sum',         -- bytes of all messages ever
  'from_sum',    -- bytes of the messages up to and including the one at `from`
  'hollow',      -- bytes removed from messages that are still in the list
  'keyed',       -- number of collapse keys
  'due',         -- when the time to live must be renewed; 0: not set
  'own_size',    -- bytes of the mailbox's own limits, which follow; 0: none
  -- rest: what follows the state in its field. is_new: the mailbox has a new epoch. is_partition_new: this is the first
  -- use of the partition, and meta must be written.
  also = {'rest_at', 'rest', 'is_new', 'is_partition_new'},
  next = 'rest_at',
}

-- Limits, as the client passes them and as a mailbox's own limits are stored.
local Limits = record {
  format = '<ddBddddd',
  'max_messages',   -- maximum number of messages
  'max_bytes',      -- maximum number of bytes
  'when_full',      -- REJECT or DROP_OLDEST
  'max_age',        -- ms that a message is delivered; 0: always
  'ttl',            -- ms after which an unused mailbox is deleted; 0: never
  'backlog_count',  -- number of messages kept beyond acknowledgement
  'backlog_age',    -- ms that messages are kept beyond acknowledgement
  'device_ttl',     -- ms after which an unseen device is forgotten; 0: never
}
-- The two policies of a full mailbox for a new message: it refuses the message, or deletes the oldest ones.
local REJECT, DROP_OLDEST = 0, 1

-- The first element of a message, so that looking at a message does not copy its body.
local Head = record {
  format = '<BI6I6I6c8',
  size = 27,
  'kind',   -- MESSAGE, or EMPTY: the place of a message that was replaced
  'index',
  'sum',    -- bytes of all messages up to and including this one
  'sent',   -- when the message was sent
  'tag',
}
-- The kinds of messages: the bytes 'M' and 'X'.
local MESSAGE, EMPTY = 77, 88

-- The beginning of Head, up to the sum.
local HeadToSum = record { format = '<BI6I6', 'kind', 'index', 'sum' }

-- The beginning of Head, up to the time.
local HeadToSent = record { format = '<BI6I6I6', 'kind', 'index', 'sum', 'sent' }

-- The second element of a message, as the client passes it. The envelope follows.
local Body = record {
  format = '<I6Bc0',
  'life',  -- ms that it is delivered; 0: always
  'key',   -- collapse key, which may be empty
}
-- The beginning of Body: life.
local BODY_LIFE = '<I6'

-- A device of a mailbox.
local Device = record {
  format = '<Bc0dc8dBc0',
  'name',
  'index',  -- of the last message that it has acknowledged; UNAWARE: nothing since its last gap
  'tag',    -- of that message
  'seen',   -- when it was seen last
  'polls',  -- the current Poll, then the latest Poll of each of up to three other processes
  also = {'next_at'},
  next = 'next_at',
}
-- The index of a device that has not acknowledged anything since its last gap.
local UNAWARE = -1

-- A poll is one call of listen.
local Poll = record {
  format = '<c16d',
  size = 24,
  'process',
  'number',  -- grows with each poll of the process
  also = {'next_at'},
  next = 'next_at',
}

-- A process that is registered to be notified.
local Waiter = record {
  format = '<c16d',
  'process',
  'ends',  -- the time until which it is registered
  also = {'next_at'},
  next = 'next_at',
}

-- Wake-ups are published on wake:PROCESS of registered processes, and on wake:all when a mailbox has a new epoch. A
-- published text has one WAKE_UP for each mailbox: its name and its growth, each after its length. An empty growth
-- means that the mailbox must be read, whatever is known about it. Otherwise it is a Growth, followed by the elements
-- of the new messages if they are small, each after its length.
local WAKE_UP, WAKE_UP_TO_READ, WAKE_UP_ELEMENT = '<Hc0Hc0', '<Hc0H', '<Hc0'

-- By how much a mailbox has grown.
local Growth = record {
  format = '<c8I6c8I6c8',
  'epoch',
  'start_index', 'start_tag',  -- of the previous last message
  'end_index', 'end_tag',      -- of the new last message
}

-- The mailbox that an operation uses. The request of the operation follows.
local Target = record {
  format = '<Hc8',
  'partitions',  -- of the namespace
  'new_epoch',   -- in case the mailbox is created
  also = {'request_at'},
  next = 'request_at',
}

-- The position in a mailbox after which the messages of a reply begin.
local Position = record {
  format = '<c8dc8d',
  'epoch',
  'index', 'tag',  -- of the message before the first one
  'now',
}
-- The number of elements of a reply before its messages.
local HEADER_SIZE = 2

-- The request of listen.
local ListenRequest = record {
  format = '<Bc16dddc8c8dddddd',
  'phase',          -- BEGINS, CONTINUES, ACKNOWLEDGES or REGISTERS, plus READS_AHEAD and REQUIRES_DEVICE
  'process',        -- 16 characters
  'poll',           -- the poll's number, which grows with each poll of the process: us since 1970
  'registration',   -- ms for which the process is registered, 0: not at all
  'cursor_index',   -- -1: the position that this device has acknowledged, or reset, if the device has acknowledged
                    -- nothing since its last gap
  'cursor_epoch', 'cursor_tag',
  'max_messages',   -- maximum number of messages
  'max_bytes',      -- maximum number of bytes, but always one message
  'ttl',            -- as in Limits, like the following fields
  'backlog_count',
  'backlog_age',
  'device_ttl',
  -- reads_ahead: the cursor is only the position after which to read, and acknowledges nothing.
  -- requires_device: a device that the mailbox does not have is refused, instead of becoming known.
  also = {'reads_ahead', 'requires_device'},
}
-- CONTINUES: a poll reads again. BEGINS: a poll begins, or may have begun. ACKNOWLEDGES: there is no poll, only an
-- acknowledgement. REGISTERS: there is neither; the device becomes known, or is seen again. READS_AHEAD and
-- REQUIRES_DEVICE are added to the phase.
local CONTINUES, BEGINS, ACKNOWLEDGES, REGISTERS, READS_AHEAD, REQUIRES_DEVICE = 0, 1, 2, 3, 4, 8

-- A call that waits, for check. The device's name follows.
local Wait = record {
  format = '<c8dc8d',
  'epoch', 'index', 'tag',  -- the cursor
  'poll',                   -- number of the poll
  also = {'device_at'},
  next = 'device_at',
}

-- The request of send. The tags of the other messages follow.
local SendRequest = record {
  format = '<BHBHc2ddc8dddBddc8',
  'mode',          -- 0: sends; PROBE or PART
  'partitions',    -- of the namespace
  'has_keys',      -- 1 if any message has a collapse key
  'messages',      -- number of messages
  'place',         -- 2 bytes: the answer replaces that of the earlier request in this place, which the sender must have
                   -- received
  'number',        -- of the request, which grows
  'answer_ttl',    -- ms that the answer is kept; half of it if the sender has sent before
  'fingerprint',   -- of messages and recipients, 8 bytes
  'condition',     -- to send: the number of an earlier request in this place, which must not be missing, or 0. To PART:
                   -- the deadline
  'max_messages',  -- as in Limits, like the following fields
  'max_bytes',
  'when_full',
  'max_age',
  'ttl',
  'first_tag',     -- of the first message
  -- text: the argument that contains the request.
  also = {'more_tags_at', 'text'},
  next = 'more_tags_at',
}
-- PROBE: checks whether a part of a cross-partition send would be accepted. PART: delivers the part until the deadline,
-- regardless of limits; also a send that Redis has lost.
local PROBE, PART = 1, 2

-- The last message of a mailbox that was confirmed to a sender.
local Known = record {
  format = '<c8dc8',
  size = 24,
  'epoch',
  'index',  -- 0 for none: then the epoch, unless it is NO_TAG, is that of a mailbox that must be created
  'tag',
}

-- The answer to a request of a sender. The Result of each recipient follows.
local Answer = record {
  format = '<ddc8',
  'number',       -- of the request
  'expiry_set',   -- when the expiry was set last
  'fingerprint',
  also = {'results_at'},
  next = 'results_at',
}

-- The beginning of Answer.
local AnswerTimes = record { format = '<dd', 'number', 'expiry_set' }

-- The result of a send in one mailbox.
local Result = record {
  format = '<dc8',
  'index',  -- of the first message
  'epoch',  -- of the mailbox
}
