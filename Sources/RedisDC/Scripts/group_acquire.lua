-- Acquires a permit of a resource that groups use, for a member of a group or for itself.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] mode: c consume, l lease, m lease of a mutex, t lease as a member of a group
--   [7] wanted: number of permits, 1 by default
--   [8] if_free: 1 replies -1 when the permits cannot be granted now; 0 or nothing queues then
--   [9] priority: see acquire.lua
--   [10] group: in mode t. A member whose group has entered needs no permit.
-- Reply: see acquire.lua
local mode, wanted, priority = ARGV[6], ARGV[7] and tonumber(ARGV[7]) or 1, ARGV[9] or ORDINARY
local name, claim_id = string.sub(resource_field, 3), string.sub(slot_field, 3) .. ':' .. ARGV[2]
local hset, hdel, zadd, zrem = {}, {}, {}, {}
local fences_used, recall = 0, nil
if family == PERMITS then
  family = GROUPS
  -- Holders have lines in this family.
  local holder = string.sub(resource, TAIL)
  if holder ~= '' then zadd[1], zadd[2] = '0', HOLDER_LINE .. name .. '\0' .. holder end
  if kind == MUTEX and signalled > 0 then
    -- A cohort holds it, and may use what it has reserved. In this family there are no cohorts.
    fences_used, signalled = signalled, 0
    local holder_sid, holder_number = string.match(holder, '^(%w+):%d+:(%d+)$')
    if holder_sid then recall = {[holder_sid] = holder_number .. ' recall'} end
  end
end
local passes = free >= wanted and (waiting == 0 or kind == OVERTAKING_SEMAPHORE and mode ~= MEMBER)
local note, members = '', 0
if mode == MEMBER then
  note = '\0' .. ARGV[10]
  local group = call('HGET', state, GROUP_FIELD .. name .. note)
  if group then
    local count, group_created = decode(GROUP, group)
    -- Not the members that hold a destroyed resource of the same name.
    if group_created == created then members = count end
  end
  passes = members > 0 or free >= wanted and waiting == 0
end
if free >= wanted and not passes and priority == PREFERRED then
  local from, to = '[' .. QUEUE_LINE .. name .. '\0' .. PREFERRED, '(' .. QUEUE_LINE .. name .. '\0' .. ORDINARY
  passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0
end
if not passes and ARGV[8] == '1' then return -1 end
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
tick = math.max(fences_used, decode(NUMBER, call('HGET', state, 'clock') or NEVER)) + 1
if not (tick >= now and tick < MAX_TICK) then tick = now end
created = created or tick
local claim_state, reply = WAITING, 0
-- The first write of each case is one that Redis refuses at maxmemory, so that nothing is written then.
if not passes then
  call('ZADD', index, '0', QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, tick) .. claim_id)
  waiting = waiting + 1
  if mode == MEMBER then
    zadd[#zadd + 1] = '0'
    zadd[#zadd + 1] = MEMBER_LINE .. name .. note .. '\0' .. claim_id
  end
elseif mode == CONSUME then
  call('HSET', state, 'clock', encode(NUMBER, tick))
  free, consumed, claim_state, reply = free - wanted, consumed + wanted, GRANTED, 1
else
  call('ZADD', index, '0', HOLDER_LINE .. name .. '\0' .. claim_id)
  claim_state, reply = HELD, tick
  if mode == MEMBER then
    -- The group has the permit, the claim has none.
    hset[1], hset[2] = GROUP_FIELD .. name .. note, encode(GROUP, members + 1, created)
    if members == 0 then free = free - wanted end
    wanted = 0
  else
    free = free - wanted
  end
end
hset[#hset + 1] = slot_field
hset[#hset + 1] = encode(CLAIM, claim_state, number, wanted, tick, mode, priority) .. resource_field .. note
local sessions_read = {}
local wakeups = recall
