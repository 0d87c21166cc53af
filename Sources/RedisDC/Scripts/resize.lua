-- Changes the number of permits of a resource. Permits that are held stay held: free may become negative.
-- ARGV
--   [4] and [5]: see resource.lua
--   [6] limit: the new number of permits
-- Reply: 1; {'more', 1} if waiters are left over for the next script; or a refusal.
local new_limit = tonumber(ARGV[6])
free, limit = free + new_limit - limit, new_limit
local grants_wanted, reply = true, '1'
