-- The reply of a heartbeat: {status, the position, ms until something is due or -1, number of objects ended}. The
-- status is ok, lost, rolled back, or none without a bucket.
return {status, position, next_due and math.max(0, math.ceil(next_due - now)) or -1, ended}
