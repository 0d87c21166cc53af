-- For operations that create the resource if it does not exist: stands between engine_head and the operation.
-- ARGV
--   [6] kind
--   [7] permits: with which a missing resource is created; empty: the resource must exist
--   [8] policy
-- Refusals: {'missing'}, {'gone'} (being destroyed), {'broken'}, {'conflict', kind, limit, policy} (of the existing
--     resource)
local requested_kind, requested_permits, requested_policy = ARGV[6], ARGV[7], ARGV[8]
local refusal
local is_new = false
if not previous then
  if not kind then
    if requested_permits == '' then
      refusal = {'missing'}
    else
      tick = math.max(tick + 1, now)
      kind, policy, permits = requested_kind, requested_policy, tonumber(requested_permits)
      limit, free, waiting, created, signalled, consumed = permits, permits, 0, tick, 0, 0
      -- The permits of these kinds are the number that they count up to; none can be acquired.
      if kind == BARRIER or kind == EXCHANGER or kind == PHASER or kind == LATCH and permits > 0 then
        free = 0
      elseif kind == LATCH then
        free = OPEN
      end
      is_new = true
    end
  elseif kind == DESTROYED then
    refusal = {'gone'}
  elseif kind == BROKEN then
    refusal = {'broken'}
  elseif kind ~= requested_kind then
    refusal = {'conflict', kind, format('%.0f', limit), policy}
  elseif requested_permits ~= '' then
    local wanted = tonumber(requested_permits)
    if policy ~= requested_policy or (permits ~= wanted and limit ~= wanted) then
      refusal = {'conflict', kind, format('%.0f', limit), policy}
    end
  end
end
