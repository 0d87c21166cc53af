-- Time and ticks.
--
-- Every lease, waiter, new resource, item and meeting of a partition takes the next tick: the last tick + 1, or Redis's
-- TIME in microseconds if that is later. Between two ticks the clock may be behind TIME. The field `clock` of the state
-- holds the last one.

-- Ticks are below 2^53: a greater one, or one that is not a number, was not written by these scripts.
local MAX_TICK = 9007199254740992

-- The time and the tick of a script.
local Clock = record {
  also = {
    'now',  -- Redis's TIME in microseconds, or nil as long as the script has not asked for it
    'tick', -- the last tick that the script has taken, which it must write; nil if it has taken none
  },
}

-- Asks Redis for the time. Returns microseconds.
local function read_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Asks for the time, if the script does not know it yet.
local function ensure_time(clock)
  if not clock.now then
    local time = redis.call('TIME')
    clock.now = time[1] * 1000000 + time[2]
  end
end

-- Reads the last tick of the partition.
local function read_last_tick(state)
  return struct.unpack(NUMBER_FORMAT, redis.call('HGET', state, 'clock') or NEVER)
end

-- Replaces a tick that is behind the time, or is no valid tick, by the time. The time must be known.
local function bound_tick(clock)
  if not (clock.tick >= clock.now and clock.tick < MAX_TICK) then clock.tick = clock.now end
end

-- Takes the first tick of a script.
local function take_tick(partition, clock)
  ensure_time(clock)
  clock.tick = read_last_tick(partition.state) + 1
  bound_tick(clock)
end

-- Takes the first tick of a script, or a further one. The time must be known.
local function take_next_tick(partition, clock)
  clock.tick = (clock.tick or read_last_tick(partition.state)) + 1
  bound_tick(clock)
end

-- Takes the first tick of a script, after the last one and after `fence`.
local function take_tick_after(partition, clock, fence)
  ensure_time(clock)
  local last = read_last_tick(partition.state)
  clock.tick = math.max(fence, last) + 1
  bound_tick(clock)
end
