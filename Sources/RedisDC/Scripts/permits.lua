-- The family of mutexes, semaphores, read-write locks, conditions, turnstiles, latches and buffers: a resource has
-- permits, and its waiters get them in the order of the queue.
local FAMILY = PERMITS
