-- For requests that create no claim: answers a repeated one with the kept reply.
if number == slot_number then return tonumber(string.sub(slot, 10)) or 1 end
