-- Reads the messages of a mailbox in pages.

-- The maximum numbers of messages and of bytes that one script returns, because it blocks the server meanwhile.
local MAX_PAGE, MAX_PAGE_BYTES = 1000, 1048576
-- The maximum number of messages that one script reads to delete them.
local MAX_LOOKS = 1024

-- Appends to `reply`, which has HEADER_SIZE elements, the elements of the messages from position `at` of the list up to
-- `stop`, exclusive. Reads in pieces whose size is estimated from the average, because one message may be large. Only
-- the first message may exceed `max_bytes`.
local function append_messages(reply, mail, state, at, stop, max_messages, max_bytes)
  if at < stop and max_messages > 0 then
    max_messages, max_bytes = math.min(max_messages, MAX_PAGE), math.min(max_bytes, MAX_PAGE_BYTES)
    local average = math.max(1, (state.sum - state.from_sum - state.hollow) / (state.last - state.from))
    local size = 0
    while at < stop and max_messages > 0 and size < max_bytes do
      local n = math.max(1, math.min(max_messages, math.floor((max_bytes - size) / average), stop - at))
      local elements = redis.call('LRANGE', mail, string.format('%d', 2 * at), string.format('%d', 2 * (at + n) - 1))
      if #elements == 0 then break end
      for i = 1, #elements, 2 do
        size = size + #elements[i] + #elements[i + 1]
        if size > max_bytes and #reply > HEADER_SIZE then break end
        reply[#reply + 1], reply[#reply + 2] = elements[i], elements[i + 1]
        at, max_messages = at + 1, max_messages - 1
      end
    end
  end
end

-- Reads messages without acknowledging anything. Changes nothing.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target  [2] index after which to read, or empty: from the first message  [3] maximum number of messages
--        [4] maximum number of bytes, but always one message
-- Reply  {'ok', Position, elements…}
-- Refuses as described at LAYOUT
function entry.peek(keys, arguments)
  local meta, box, mail = keys[1], keys[2], keys[3]
  local after, max_messages, max_bytes = tonumber(arguments[2]), tonumber(arguments[3]), tonumber(arguments[4])
  local target = Target.read(arguments[1])
  local now = read_time()
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  local position = Position.new({epoch = state.epoch, now = now})
  position.index = math.max(after or state.from, state.from)
  position.tag = position.index == state.from and state.from_tag or NO_TAG
  local reply = {'ok', Position.write(position)}
  append_messages(reply, mail, state, position.index - state.from, state.last - state.from, max_messages, max_bytes)
  return reply
end
