-- Begins a session. Follows presence_head.
-- ARGV[3] the session's identifier, 16 characters
-- ARGV[4] ms until it expires without a heartbeat
-- Reply: {'ok'}, or {'lost'}: the session has begun before and has ended, or has run a batch.
local sid = ARGV[3]
local session = call('HGET', state, 's' .. sid)
if session and unpacked(SESSION, session) ~= 0 then
  return {'lost'}
end
call('ZADD', due, now + ARGV[4], 's' .. sid)
call('HSET', state, 's' .. sid, pack(SESSION, 0, IN_USE))
for i = 1, 4 do call('PEXPIRE', KEYS[i], RETENTION) end
call('HSET', state, 'b', pack(BUCKET, epoch, version, tag, first, bytes, now))
return {'ok'}
