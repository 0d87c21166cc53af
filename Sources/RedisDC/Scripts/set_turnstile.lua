-- Opens a turnstile, or locks it.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] is_open: 1 to open it, 0 to lock it
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal.
local passages = ARGV[6] == '1' and OPEN or 0
limit, free = limit + passages - free, passages
local grants_wanted, reply = true, '1'
