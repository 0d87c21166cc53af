-- Acknowledges messages, deletes those that all devices have acknowledged, and reads on. If there is nothing to read,
-- it registers the process to be notified. Preceded by mail_open and mail_rewind, followed by mail_page and
-- mail_listen_end.
-- KEYS as in mail_open
-- ARGV[1] as in mail_open, with REQUEST  [2] device
-- Reply: {status, POSITION, elements…}. Statuses: ok; superseded: a newer poll of this device has begun; and, about the
--     cursor: reset (another epoch), forked (the mailbox does not have what the cursor has seen), truncated (messages
--     after it are gone). With these three, the position is where reading can restart. {'devices'}: there are too many
--     devices. Or a refusal.

-- REQUEST:
--   phase          BEGINS: the poll begins, or may have begun; CONTINUES: it reads again; ACKNOWLEDGES: there is no
--                  poll, only an acknowledgement; REGISTERS: neither, the device becomes known, or is seen again. Plus
--                  READS_AHEAD: the cursor is only the position after which to read, and acknowledges nothing
--   process        16 characters
--   poll           the poll's number, which grows with each poll of the process: us since 1970
--   registration   ms for which the process is registered, 0: not at all
--   cursor_index, cursor_epoch, cursor_tag  the cursor; index -1: the position that this device has acknowledged, or
--                  reset, if the device has acknowledged nothing since its last gap
--   max_messages   maximum number of messages
--   max_bytes      maximum number of bytes, but always one message
--   and LIMITS from the time to live on
local REQUEST = '<Bc16dddc8c8dddddd'
local CONTINUES, BEGINS, ACKNOWLEDGES, REGISTERS, READS_AHEAD = 0, 1, 2, 3, 4
-- epoch, index and tag of the message before the first one, ms now
local POSITION, HEADER_SIZE = '<c8dc8d', 2
local MAX_DEVICES, MAX_POLLS = 64, 4
-- The maximum number of messages that one script deletes; fewer if each must be looked at. The rest is deleted by later
-- scripts.
local MAX_DROP, MAX_LOOKS = 65536, 1024
-- The number of deleted messages whose tags are kept, for senders that compare the last message confirmed to them.
local MAX_HISTORY = 32
local phase, process, poll, registration, cursor_index, cursor_epoch, cursor_tag, max_messages,
  max_bytes, ttl, backlog_count, backlog_age, device_ttl = unpacked(REQUEST, ARGV[1], request_at)
local device, reads_ahead = ARGV[2], phase >= READS_AHEAD
if reads_ahead then phase = phase - READS_AHEAD end

if own_size > 0 then
  local own_max_messages, own_max_bytes, own_when_full, own_max_age
  own_max_messages, own_max_bytes, own_when_full, own_max_age, ttl, backlog_count, backlog_age, device_ttl =
    unpacked(LIMITS, rest)
end

-- The devices, without those that have not been seen for too long.
local mine_index, mine_tag, mine_seen, polls, least = nil, nil, 0, '', nil
local others, number, at = '', 0, 1
while at <= #devices do
  local start, name, index, tag, seen, its_polls = at, nil, nil, nil, nil, nil
  name, index, tag, seen, its_polls, at = unpacked(DEVICE, devices, at)
  if name == device then
    mine_index, mine_tag, mine_seen, polls = index, tag, seen, its_polls
  elseif device_ttl == 0 or seen + device_ttl > now then
    others, number = others .. sub(devices, start, at - 1), number + 1
    if not least or index < least then least = index end
  end
end
-- A poll that has begun before and is not the current one has been superseded, also when its first reply was lost.
local begins, is_current, is_known, has_begun, rival, oldest = phase == BEGINS, false, false, false, nil, nil
if polls ~= '' then
  at = 1
  while at <= #polls do
    local its_process, its_poll
    its_process, its_poll, at = unpacked(POLL, polls, at)
    if its_process == process then
      if at == POLL_SIZE + 1 then is_current = its_poll == poll end
      is_known, has_begun = true, its_poll >= poll
    elseif at == POLL_SIZE + 1 then
      rival = its_process
    end
    oldest = its_poll
  end
  -- Redis has lost the beginning of a poll that it should know, unless others have begun since so that it is forgotten.
  if phase == CONTINUES and not has_begun and (is_known or #polls < MAX_POLLS * POLL_SIZE or oldest < poll) then
    begins = true
  end
  if not is_current and (phase == CONTINUES and not begins or begins and has_begun) then
    return {'superseded', pack(POSITION, epoch, from, from_tag, now)}
  end
end
if not mine_index and number >= MAX_DEVICES then return {'devices'} end

-- Check the cursor.
local index, tag, status, sum = cursor_index, cursor_tag, 'ok', nil
if index < 0 then
  index, tag = mine_index or from, mine_tag or from_tag
  if mine_index == UNAWARE then status = 'reset' end
elseif cursor_epoch ~= epoch then
  status = 'reset'
end
if status == 'ok' then
  if index > last then
    status = 'forked'
  elseif index < from then
    status = 'truncated'
  else
    local found, kind, its_index = nil, nil, nil
    if index == last then
      found, sum = last_tag, last_sum
    elseif index == from then
      found = from_tag
    else
      local sent
      kind, its_index, sum, sent, found = unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * (index - from - 1))))
    end
    if found ~= tag then status = 'forked' end
  end
end
local is_mine_new, has_moved = not mine_index, false
if is_mine_new then mine_index, mine_tag = from, from_tag end
if status == 'ok' then
  -- Monotonic: an older cursor reads again what is still there, and revokes no acknowledgement.
  if index > mine_index and not reads_ahead then mine_index, mine_tag, has_moved = index, tag, true end
else
  -- The reply may be lost, and the process may end: until the device acknowledges a position after the gap, each process
  -- that begins without a cursor is notified. A truncated device is behind the first message in any case. An invalid
  -- acknowledgement changes nothing, nor does a registration.
  if status ~= 'truncated' and phase < ACKNOWLEDGES and mine_index ~= UNAWARE then
    mine_index, has_moved = UNAWARE, true
  end
  index, tag = from, from_tag
end

-- Delete what every device has acknowledged, except the backlog for devices that come later.
local cut = mine_index
if least and least < cut then cut = least end
cut = math.min(cut, last - backlog_count, from + MAX_DROP)
if backlog_age > 0 and cut > from then
  -- The first message that is young enough to be kept.
  local low, high = 0, cut - from
  while low < high do
    local middle = math.floor((low + high) / 2)
    local kind, its_index, its_sum, sent = unpacked(HEAD_TO_SENT, call('LINDEX', mail, format('%d', 2 * middle)))
    if sent < now - backlog_age then low = middle + 1 else high = middle end
  end
  cut = from + low
end
local drop, dead_keys, history = 0, nil, nil
if cut > from then
  if keyed > 0 or hollow > 0 then
    cut = math.min(cut, from + MAX_LOOKS)
    local before = from_sum
    for first = 0, cut - from - 1, 128 do
      local elements = call('LRANGE', mail, format('%d', 2 * first),
        format('%d', 2 * math.min(cut - from, first + 128) - 1))
      for i = 1, #elements, 2 do
        local kind, dead_index, its_sum = unpacked(HEAD_TO_SUM, elements[i])
        local life, key = unpacked(BODY, elements[i + 1])
        hollow = hollow - (its_sum - before - HEAD_SIZE - #elements[i + 1])
        before = its_sum
        if key ~= '' then
          dead_keys = dead_keys or {}
          dead_keys[#dead_keys + 1] = key
          dead_keys[#dead_keys + 1] = dead_index
        end
      end
    end
  end
  drop = cut - from
  history = call('HGET', box, 'h') or ''
  if sub(history, -8) ~= from_tag then history = from_tag end
  for number = math.max(1, drop - MAX_HISTORY + 1), drop - 1 do
    local kind, its_index, its_sum, sent, its_tag =
      unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * number - 2)))
    history = history .. its_tag
  end
  if cut == index and sum then
    from, from_tag, from_sum = cut, tag, sum
  else
    local kind, sent
    kind, from, from_sum, sent, from_tag = unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * drop - 2)))
  end
  history = sub(history .. from_tag, -8 * MAX_HISTORY)
end
if index < from then index, tag = from, from_tag end

local reply = {status, pack(POSITION, epoch, index, tag, now)}
local stop = last - from + drop
at = status == 'ok' and index - from + drop or stop
