-- For operations that make the thing if it is not there.
-- ARGV[6] kind  [7] permits that it is made with, or empty if it must be there  [8] fairness
-- Refusals: {'missing'}, {'gone'} (being destroyed), {'conflict', kind, permits, fairness that it has}.
local refusal
local is_new = false
if not answer then
  if not kind then
    if ARGV[7] == '' then
      refusal = {'missing'}
    else
      tick = math.max(tick + 1, now)
      kind, fair, permits = ARGV[6], ARGV[8], tonumber(ARGV[7])
      limit, free, waiting, created, signalled, consumed = permits, permits, 0, tick, 0, 0
      is_new = true
    end
  elseif kind == 'x' then
    refusal = {'gone'}
  elseif kind ~= ARGV[6] then
    refusal = {'conflict', kind, format('%.0f', limit), fair}
  elseif ARGV[7] ~= '' then
    local wanted = tonumber(ARGV[7])
    if fair ~= ARGV[8] or (permits ~= wanted and limit ~= wanted) then
      refusal = {'conflict', kind, format('%.0f', limit), fair}
    end
  end
end
