-- Ends the lease of an item that is not consumed: the item returns to its place in the buffer, and is granted again.
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {HOLDER_LINE .. name .. '\0' .. claim_id}
local grants_wanted = false
local item_key = name .. string.sub(slot, name_at + #resource_field)
if resource and claim_tick >= created and kind == ITEMS then
  free, grants_wanted = free + count, true
  if mode == ITEM then
    zadd[1], zadd[2] = '0', ITEM_LINE .. item_key
  end
elseif mode == ITEM then
  vdel[1] = ITEM_FIELD .. item_key
end
