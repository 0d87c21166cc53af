-- Lists the claims of the session, and those that others have ended, in pages.
-- ARGV
--   [1] SID
--   [2] from: the first slot of the page
-- Reply: {'ok', from of the next page or 0 after the last, {SLOT, NUMBER, state, tick, count, mode, NAME or, in state
--   d, the word of its end, …}}, {'lost'}, or {'lost', 'ended'} when it has expired. The state is that of the slot.
local sid, first = ARGV[1], tonumber(ARGV[2])
local session = call('HGET', state, SESSION_FIELD .. sid)
if not session or #session ~= SESSION_SIZE then return {'lost'} end
local expires, _, slots = decode(SESSION, session)
if expires == 0 then return {'lost', 'ended'} end
local stop = math.min(slots, first + 200)
local fields, page = {}, {}
for slot = first, stop - 1 do fields[#fields + 1] = SLOT_FIELD .. sid .. ':' .. format('%d', slot) end
local records = #fields > 0 and call('HMGET', state, unpack(fields)) or {}
for i = 1, #fields do
  local record = records[i]
  local slot_state, number, count, claim_tick, mode, name = DONE, 0, 0, 0, '', ''
  -- A damaged record has no claim.
  if record and #record >= (string.sub(record, 1, 1) == DONE and SLOT_SIZE or CLAIM_SIZE) then
    slot_state, number = decode(SLOT, record)
    if slot_state == DONE then
      name = string.sub(record, 10)
    else
      local priority
      _, _, count, claim_tick, mode, priority = decode(CLAIM, record)
      name = string.match(record, '^t:(%Z+)', 28) or ''
      if slot_state == WAITING then
        -- A waiter without its place in the queue is not waiting.
        local claim_id = string.sub(fields[i], 3) .. ':' .. format('%d', number)
        local line = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, claim_tick) .. claim_id
        if not call('ZSCORE', index, line) then slot_state, name = DONE, '' end
      end
      if (mode == SOLE or mode == COHORT) and slot_state == HELD then
        -- The record of a mutex names the holder, or the line in a family that does not name it.
        local resource = call('HGET', state, RESOURCE_FIELD .. name)
        local claim_id = string.sub(fields[i], 3) .. ':' .. format('%d', number)
        if not resource or string.sub(resource, TAIL) ~= claim_id
          and not call('ZSCORE', index, HOLDER_LINE .. name .. '\0' .. claim_id) then
          slot_state, name = DONE, ''
        end
        if mode == COHORT then count = 0 end
      end
    end
  end
  if slot_state ~= DONE or string.find(name, '^%l') then
    page[#page + 1] = first + i - 1
    page[#page + 1] = number
    page[#page + 1] = slot_state
    page[#page + 1] = claim_tick
    page[#page + 1] = count
    page[#page + 1] = mode
    page[#page + 1] = name
  end
end
return {'ok', stop < slots and stop or 0, page}
