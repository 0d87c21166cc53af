-- Returns a permit to the end of the list that it was taken from, once for each ID however often this is called.
-- KEYS
--   [1] permits: list with an element for each permit
--   [2] marker: string that exists if the permit of this ID has been returned
-- ARGV
--   [1] permit: the element that was taken
--   [2] ttl: seconds until the marker expires
-- Reply: 1 if this call returned it, 0 if an earlier one did.
local type_found = redis.call('TYPE', KEYS[1]).ok
if type_found ~= 'none' and type_found ~= 'list' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. type_found .. ', not the permits of a semaphore')
end
if not redis.call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1
