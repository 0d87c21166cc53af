-- Grants permits to waiters in the order of the queue, as long as there are enough for the first waiter.

-- The queue of a resource, while a script grants to its waiters.
local Queue = record {
  also = {
    'from', 'to', -- the bounds of its lines
    'claim_at',   -- the position of the claim in a line
    'offset',     -- the number of lines that have been read
    'removed',    -- a line that the script removes, and that is still in the index
    'budget',     -- the number of waiters that this script may still remove from the queue
    'is_blocked', -- whether the first waiter wants more than is free
  },
}

-- Reads the slot of a waiter and, once in a script, its session: both in one command. Returns the record of the slot or
-- false, and the session.
local function read_slot_and_session(partition, writes, waiter)
  local session, stored = writes.sessions[waiter.sid], nil
  if session then
    stored = redis.call('HGET', partition.state, waiter.slot_field)
  else
    local records = redis.call('HMGET', partition.state, waiter.slot_field, SESSION_FIELD .. waiter.sid)
    stored = records[1]
    session = {expires = 0}
    if records[2] and #records[2] == Session.size then
      session.expires, session.notices, session.slots = struct.unpack(Session.format, records[2])
    end
    writes.sessions[waiter.sid] = session
  end
  return stored, session
end

-- Reads the claim of a waiter from the record of its slot. It is DONE if the slot no longer waits with this claim.
local function read_waiting_claim(stored, number)
  local claim = Claim.new({state = DONE, number = 0})
  if stored then claim.state, claim.number = struct.unpack(Slot.format, stored) end
  if claim.state == WAITING and claim.number == tonumber(number) then
    Claim.read_into(claim, stored)
  else
    claim.state = DONE
  end
  return claim
end

-- Removes a waiter whose claim has ended or whose session has expired from the queue. Deletes its slot if it still
-- waits, so that the sweep of its session does not end the claim again.
local function pass_over_waiter(resource, writes, now, waiter, claim, session)
  note_expiry(session, now)
  remove_line(writes, waiter.line)
  if claim.state == WAITING then delete_field(writes, waiter.slot_field) end
  resource.waiting = resource.waiting - 1
end

-- Makes a waiter the holder of a lease. Returns the fence as a text for the message.
local function make_holder(partition, resource, clock, writes, waiter, claim)
  take_next_tick(partition, clock)
  local fence = string.format('%d', clock.tick)
  claim.state, claim.tick = HELD, clock.tick
  if claim.mode == SOLE then
    resource.tail = waiter.id
  elseif claim.mode == COHORT then
    resource.tail, resource.signalled = waiter.id, clock.tick + FENCES - 1
    -- After the fence: 2 if there are waiters behind the cohort, else 1.
    fence = fence .. (resource.waiting > 0 and '/2' or '/1')
  else
    add_line(writes, holder_line(resource.name, waiter.id))
  end
  return fence
end

-- Grants a waiter its permits, which are free.
local function grant_to_waiter(partition, resource, clock, writes, waiter, claim, session)
  remove_line(writes, waiter.line)
  resource.free, resource.waiting = resource.free - claim.count, resource.waiting - 1
  local fence = '1'
  if claim.mode == CONSUME then
    resource.consumed = resource.consumed + claim.count
    claim.state, claim.tick = GRANTED, resource.created
  else
    fence = make_holder(partition, resource, clock, writes, waiter, claim)
  end
  set_field(writes, waiter.slot_field, Claim.write(claim) .. resource.field)
  add_notice(session)
  add_wakeup(writes, waiter.sid, waiter.number, fence)
end

-- Grants to one waiter, removes it if it no longer waits, or notes that the queue is blocked.
local function handle_waiter(partition, resource, clock, writes, queue, line)
  local waiter = read_waiter(line, queue.claim_at)
  local stored, session = read_slot_and_session(partition, writes, waiter)
  local claim = read_waiting_claim(stored, waiter.number)
  if claim.state == DONE or session.expires <= clock.now then
    pass_over_waiter(resource, writes, clock.now, waiter, claim, session)
  elseif resource.free < claim.count then
    queue.is_blocked = true
  else
    grant_to_waiter(partition, resource, clock, writes, waiter, claim, session)
  end
end

-- Grants to the waiters of some lines, in their order.
local function grant_to_lines(partition, resource, clock, writes, queue, lines)
  for i = 1, #lines do
    if queue.budget == 0 or resource.free <= 0 then break end
    if lines[i] ~= queue.removed then
      handle_waiter(partition, resource, clock, writes, queue, lines[i])
      if queue.is_blocked then break end
      queue.budget = queue.budget - 1
    end
  end
end

-- Grants to the waiters in the order of the queue. Returns whether waiters are left over for the next script.
local function grant_in_order(partition, resource, clock, writes)
  ensure_time(clock)
  local name = resource.name
  local queue = Queue.new({from = first_line(QUEUE_LINE, name), to = after_last_line(QUEUE_LINE, name),
    claim_at = queue_claim_at(name), offset = 0, removed = writes.zrem[1], budget = 128, is_blocked = false})
  while resource.waiting > 0 and resource.free > 0 and queue.budget > 0 and not queue.is_blocked do
    -- One line first, because most often one waiter is granted.
    local lines = redis.call('ZRANGEBYLEX', partition.index, queue.from, queue.to, 'LIMIT', queue.offset,
      queue.offset == 0 and '1' or '32')
    queue.offset = queue.offset + #lines
    -- The index lacks waiters that the record counts: someone has changed it.
    if #lines == 0 then resource.waiting = 0 end
    grant_to_lines(partition, resource, clock, writes, queue, lines)
  end
  local is_left_over = queue.budget == 0 and resource.waiting > 0
  if is_left_over then add_recheck(writes, resource.name) end
  return is_left_over
end

-- Wakes the first waiter of a semaphore that allows overtaking. The waiter must try again, and may be overtaken. If it
-- never tries, a later heartbeat hands out the resource to be rechecked.
local function wake_to_try(partition, resource, writes)
  local name = resource.name
  local lines = redis.call('ZRANGEBYLEX', partition.index, first_line(QUEUE_LINE, name),
    after_last_line(QUEUE_LINE, name), 'LIMIT', '0', '2')
  local line = lines[1] ~= writes.zrem[1] and lines[1] or lines[2]
  if line then
    local waiter = read_waiter(line, queue_claim_at(name))
    add_wakeup(writes, waiter.sid, waiter.number, 'try')
    add_recheck(writes, name)
  end
end

-- Grants free permits to waiters. is_recheck: also where overtaking is allowed (entry recheck). Returns whether waiters
-- are left over for the next script.
local function grant_permits(partition, resource, clock, writes, is_recheck)
  local is_left_over = false
  if resource.kind and resource.waiting > 0 and resource.free > 0 and resource.kind ~= DESTROYED
    and resource.kind ~= BROKEN then
    writes.wakeups = writes.wakeups or {}
    if not is_recheck and resource.kind == OVERTAKING_SEMAPHORE then
      wake_to_try(partition, resource, writes)
    else
      is_left_over = grant_in_order(partition, resource, clock, writes)
    end
  end
  return is_left_over
end
