-- Acquires permits, or queues for them.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] mode: c consume, l lease, m lease of a mutex, k lease of a mutex for a cohort
--   [7] wanted: number of permits, 1 by default
--   [8] if_free: 1 replies -1 when the permits cannot be granted now; 0 or nothing queues then
--   [9] priority: 0 precedes all waiters with 1 and does not queue behind them; 1 or nothing by default
--   [10] for a place of a buffer, the id of the put: see known_put.lua
-- The first request that finds the mutex with a cohort recalls it: a message asks the cohort's process to release it
-- soon.
-- Reply: the fence, or 1 for permits to consume; 0: queued; -1: see [8]; {fence, 1} for a cohort; {fence, count} if the
--   request is repeated after the grant; {'over', word} if its claim was ended by another (see DONE), or a refusal.
local mode, wanted, priority = ARGV[6], ARGV[7] and tonumber(ARGV[7]) or 1, ARGV[9] or ORDINARY
local passes = free >= wanted and (waiting == 0 or kind == OVERTAKING_SEMAPHORE)
if not passes and free >= wanted and priority == PREFERRED then
  local name = string.sub(resource_field, 3)
  local from, to = '[' .. QUEUE_LINE .. name .. '\0' .. PREFERRED, '(' .. QUEUE_LINE .. name .. '\0' .. ORDINARY
  passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0
end
if passes and mode == CONSUME and resource then
  call('HSET', state,
    slot_field, encode(CLAIM, GRANTED, number, wanted, created, CONSUME, priority) .. resource_field,
    resource_field, encode(RESOURCE, kind, family, waiting, free - wanted, consumed + wanted, permits, limit, created,
      signalled))
  if session_record then call('HSET', state, session_field, session_record) end
  return 1
end
if not passes then
  if kind == MUTEX and signalled > 0 and waiting == 0 then
    local holder_sid, holder_number = string.match(string.sub(resource, TAIL), '^(%w+):%d+:(%d+)$')
    -- The key of the state without its ending, `book`.
    if holder_sid then
      call('PUBLISH', string.sub(state, 1, -5) .. 'wake:' .. holder_sid, '0 ' .. holder_number .. ' recall')
    end
  end
  if ARGV[8] == '1' then return -1 end
end

if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1
if not (tick >= now and tick < MAX_TICK) then tick = now end
created = created or tick
local claim_id = string.sub(slot_field, 3) .. ':' .. ARGV[2]
local claim_state, reply = WAITING, 0
-- The first write of each case is one that Redis refuses at maxmemory, so that nothing is written then.
if not passes then
  local place = '\0' .. priority .. encode(TICK, tick) .. claim_id
  call('ZADD', index, '0', QUEUE_LINE .. string.sub(resource_field, 3) .. place)
  waiting = waiting + 1
  if resource then tail = string.sub(resource, TAIL) end
elseif mode == CONSUME then
  free, consumed, claim_state, reply = free - wanted, consumed + wanted, GRANTED, 1
else
  free, claim_state, reply = free - wanted, HELD, tick
  if mode == SOLE then
    tail = claim_id
  elseif mode == COHORT then
    -- 1: nobody waits behind the cohort, as in grant.lua.
    tail, signalled, reply = claim_id, tick + FENCES - 1, {tick, 1}
  else
    call('ZADD', index, '0', HOLDER_LINE .. string.sub(resource_field, 3) .. '\0' .. claim_id)
  end
end
call('HSET', state,
  slot_field, encode(CLAIM, claim_state, number, wanted, tick, mode, priority) .. resource_field,
  resource_field, encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled) .. tail,
  'clock', encode(NUMBER, tick))
if session_record then call('HSET', state, session_field, session_record) end
return reply
