-- Grants permits to waiters and to groups in the order of the queue, but when a member gets the permit of its group,
-- all other waiting members enter with it.
--
-- A member waits in two lines: in the queue of the resource, and in that of its group. Members whose group has entered
-- need no permit.

-- The work of a script that grants to groups.
local Admission = record {
  also = {
    'group',        -- the group that has entered, and whose waiters enter now without a permit; nil if there is none
    'group_offset', -- the number of the group's lines that have been read
    'queue_offset', -- the number of the queue's lines that have been read
    'claim_at',     -- the position of the claim in a line of the queue
    'is_blocked',   -- whether the first waiter of the queue wants more than is free
    'budget',       -- the number of waiters that this script may still remove
    'members',      -- the numbers of members that have entered, by the note of their group
    'removed',      -- the lines that the script removes, and that are still in the index
  },
}

-- Reads the next group that has entered while some of its waiters were still queued. Returns whether there are more.
local function read_entering_group(partition, resource, writes, admission)
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(ENTERING_LINE, resource.name),
    after_last_line(ENTERING_LINE, resource.name), 'LIMIT', '0', '2')
  if #lines > 0 then
    -- The group's name follows ENTERING_LINE, the resource's name and a zero byte.
    local group_name = string.sub(lines[1], #resource.name + 3)
    local stored = redis.call('HGET', partition.state, GROUP_FIELD .. resource.name .. '\0' .. group_name)
    local group = Group.new({members = 0})
    if stored then Group.read_into(group, stored) end
    if group.created == resource.created then admission.group = group_name end
    remove_line(writes, lines[1])
  end
  if #lines == 2 then add_recheck(writes, resource.name) end
  return #lines == 2
end

-- Reads the next lines of the entering group. Returns them, and the position of the claim in them. After the last one
-- it returns none, and no group is entering any more.
local function read_group_lines(partition, resource, admission)
  local prefix = MEMBER_LINE .. resource.name .. '\0' .. admission.group
  local lines = redis.call('ZRANGEBYLEX', partition.index, '[' .. prefix .. '\0', '(' .. prefix .. '\1', 'LIMIT',
    admission.group_offset, '32')
  admission.group_offset = admission.group_offset + #lines
  if #lines == 0 then admission.group, admission.group_offset = nil, 0 end
  return lines, #prefix + 2
end

-- Reads the next lines of the queue.
local function read_queue_lines(partition, resource, admission)
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, resource.name),
    after_last_line(QUEUE_LINE, resource.name), 'LIMIT', admission.queue_offset,
    admission.queue_offset == 0 and '1' or '32')
  admission.queue_offset = admission.queue_offset + #lines
  -- The index lacks waiters that the record counts: someone has changed it.
  if #lines == 0 then resource.waiting = 0 end
  return lines
end

-- Reads the note and the other line of a waiting member. Its claim needs no permit if its group has entered.
local function read_member(partition, resource, admission, waiter, claim, stored, group)
  waiter.note = string.sub(stored, claim.name_at + #resource.field)
  if group then
    waiter.other_line = queue_line(resource.name, claim.priority, claim.tick, waiter.id)
  else
    waiter.other_line = MEMBER_LINE .. resource.name .. waiter.note .. '\0' .. waiter.id
  end
  admission.removed[waiter.other_line] = true
  if not admission.members[waiter.note] then
    local members = read_members(partition, resource, waiter.note)
    admission.members[waiter.note] = members
  end
  if admission.members[waiter.note] > 0 then claim.count = 0 end
end

-- Counts a member that enters. The group has the permit, the claim has none. After the first member, the other waiting
-- members enter.
local function enter_group(admission, waiter, claim)
  claim.count, admission.members[waiter.note] = 0, admission.members[waiter.note] + 1
  if admission.members[waiter.note] == 1 then admission.group = string.sub(waiter.note, 2) end
end

-- Grants a waiter its permits, which are free.
local function grant_in_group(partition, resource, clock, writes, admission, waiter, claim, session)
  take_next_tick(partition, clock)
  resource.free, resource.waiting = resource.free - claim.count, resource.waiting - 1
  remove_line(writes, waiter.line)
  remove_line(writes, waiter.other_line)
  claim.state, claim.tick = HELD, clock.tick
  if claim.mode == CONSUME then
    claim.state, resource.consumed = GRANTED, resource.consumed + claim.count
  else
    add_line(writes, holder_line(resource.name, waiter.id))
  end
  if claim.mode == MEMBER then enter_group(admission, waiter, claim) end
  set_field(writes, waiter.slot_field, Claim.write(claim) .. resource.field .. waiter.note)
  add_notice(session)
  add_wakeup(writes, waiter.sid, waiter.number, string.format('%d', clock.tick))
end

-- Grants to one waiter, or removes it if it no longer waits. group: the entering group whose line it is; nil for a line
-- of the queue. Returns whether the waiter wants more than is free.
local function handle_group_waiter(partition, resource, clock, writes, admission, line, claim_at, group)
  local waiter = read_waiter(line, claim_at)
  waiter.is_waiting, waiter.note = false, ''
  local session = read_session(partition, writes, waiter.sid)
  local stored = redis.call('HGET', partition.state, waiter.slot_field)
  local claim = Claim.new()
  if stored and slot_state(stored) == WAITING then
    Claim.read_into(claim, stored)
    waiter.is_waiting = claim.number == tonumber(waiter.number)
  end
  if waiter.is_waiting and claim.mode == MEMBER then
    read_member(partition, resource, admission, waiter, claim, stored, group)
  end
  local is_blocked = false
  if not waiter.is_waiting or session.expires <= clock.now then
    note_expiry(session, clock.now)
    remove_line(writes, line)
    remove_line(writes, waiter.other_line)
    if waiter.is_waiting then delete_field(writes, waiter.slot_field) end
    resource.waiting = resource.waiting - 1
  elseif resource.free < claim.count then
    is_blocked = true
    if waiter.other_line then admission.removed[waiter.other_line] = nil end
  else
    grant_in_group(partition, resource, clock, writes, admission, waiter, claim, session)
  end
  return is_blocked
end

-- Grants to the waiters of some lines, in their order, until a group enters.
local function grant_to_group_lines(partition, resource, clock, writes, admission, lines, claim_at, group)
  for i = 1, #lines do
    if admission.budget == 0 or resource.free <= 0 and not group then break end
    if admission.group ~= group then
      -- A group has entered with the grant before this line. Afterwards the queue continues at this line.
      admission.queue_offset = admission.queue_offset - #lines + i - 1
      break
    end
    if not admission.removed[lines[i]] then
      local is_blocked = handle_group_waiter(partition, resource, clock, writes, admission, lines[i], claim_at, group)
      if is_blocked then
        admission.is_blocked = true
        break
      end
      admission.budget = admission.budget - 1
    end
  end
end

-- Collects the records of the groups that have members, and the line of a group whose waiters are left over.
local function collect_groups(resource, writes, admission)
  for note, count in pairs(admission.members) do
    if count > 0 then
      set_field(writes, GROUP_FIELD .. resource.name .. note, struct.pack(Group.format, count, resource.created))
    end
  end
  if admission.group and resource.waiting > 0 then
    add_line(writes, ENTERING_LINE .. resource.name .. '\0' .. admission.group)
  end
end

-- Grants to the waiters of the entering group and of the queue. Returns whether waiters are left over for the next
-- script.
local function admit_waiters(partition, resource, clock, writes, admission)
  admission.members, admission.removed = {}, {}
  for i = 1, #writes.zrem do admission.removed[writes.zrem[i]] = true end
  while resource.waiting > 0 and admission.budget > 0
    and (admission.group or not admission.is_blocked and resource.free > 0) do
    local group, lines, claim_at = admission.group, nil, admission.claim_at
    if group then
      lines, claim_at = read_group_lines(partition, resource, admission)
    else
      lines = read_queue_lines(partition, resource, admission)
    end
    grant_to_group_lines(partition, resource, clock, writes, admission, lines, claim_at, group)
  end
  collect_groups(resource, writes, admission)
  local is_left_over = admission.budget == 0 and resource.waiting > 0
  if is_left_over then add_recheck(writes, resource.name) end
  return is_left_over
end

-- Grants free permits to waiters, and admits members. is_recheck: also where overtaking is allowed, and to the
-- members of groups that have entered in earlier scripts. Returns whether there is work left over for the next script.
local function grant_to_groups(partition, resource, clock, writes, is_recheck)
  -- A member of a group waits in two lines, so fewer are granted at a time than in grant.lua.
  local admission = Admission.new({group = nil, group_offset = 0, queue_offset = 0, is_blocked = false, budget = 96})
  local has_more_groups, is_left_over = false, false
  if is_recheck and resource.kind then
    has_more_groups = read_entering_group(partition, resource, writes, admission)
  end
  if resource.kind and resource.kind ~= DESTROYED and resource.kind ~= BROKEN and resource.waiting > 0
    and (resource.free > 0 or admission.group) then
    admission.claim_at = queue_claim_at(resource.name)
    writes.wakeups = writes.wakeups or {}
    ensure_time(clock)
    if not is_recheck and resource.kind == OVERTAKING_SEMAPHORE then
      wake_to_try(partition, resource, writes)
    else
      is_left_over = admit_waiters(partition, resource, clock, writes, admission)
    end
  end
  return is_left_over or has_more_groups
end
