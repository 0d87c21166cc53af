-- Returns the time by the clock of a partition's server.
-- KEYS[1] meta
-- Reply: {'ok', ms since 1970}
local time = redis.call('TIME')
return {'ok', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))}
