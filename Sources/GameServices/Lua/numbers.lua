-- The time, and the format of numbers, for the scripts of all services.

-- Returns the time by the clock of Redis, in ms since 1970.
local function read_milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns the time by the clock of Redis, in microseconds since 1970.
local function read_microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Returns a whole number as text with all of its digits: `..` writes large ones with an exponent.
local function format_integer(number)
  return string.format('%.0f', number)
end
