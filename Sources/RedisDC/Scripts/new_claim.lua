-- For requests that create a claim: answers a repeated one.
if number == slot_number then
  if slot_state == DONE then return {'over', string.sub(slot, 10)} end
  if slot_state == WAITING then return 0 end
  local _, _, count, fence, mode = decode(CLAIM, slot)
  -- It is not known whether others wait behind a cohort.
  return {fence, mode == COHORT and 0 or count}
end
