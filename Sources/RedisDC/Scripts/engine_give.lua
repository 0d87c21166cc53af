-- Lets waiters have what is free: those that a script has left for later, and where overtaking is allowed.
-- Reply: {'ok', 1 if there may be more to give}, or a refusal.
rems[#rems + 1] = 't' .. name
gives = 'now'
reply = {'ok'}
