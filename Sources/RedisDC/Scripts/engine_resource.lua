-- For operations that make the resource if it is not there.
-- ARGV[6] kind  [7] permits that it is made with, or empty if it must be there  [8] policy
-- Refusals: {'missing'}, {'gone'} (being destroyed), {'broken'}, {'conflict', kind, permits, policy that it has}.
local refusal
local is_new = false
if not answer then
  if not kind then
    if ARGV[7] == '' then
      refusal = {'missing'}
    else
      tick = math.max(tick + 1, now)
      kind, policy, permits = ARGV[6], ARGV[8], tonumber(ARGV[7])
      limit, free, waiting, created, signalled, consumed = permits, permits, 0, tick, 0, 0
      -- What their numbers count is not to be had by asking for it.
      if kind == 'b' or kind == 'e' or kind == 'p' or kind == 'l' and permits > 0 then free = 0 elseif kind == 'l' then free = OPEN end
      is_new = true
    end
  elseif kind == 'x' then
    refusal = {'gone'}
  elseif kind == 'z' then
    refusal = {'broken'}
  elseif kind ~= ARGV[6] then
    refusal = {'conflict', kind, format('%.0f', limit), policy}
  elseif ARGV[7] ~= '' then
    local wanted = tonumber(ARGV[7])
    if policy ~= ARGV[8] or (permits ~= wanted and limit ~= wanted) then
      refusal = {'conflict', kind, format('%.0f', limit), policy}
    end
  end
end
