-- Cancels a ticket if it waits, or looks at it. Composed of match_head and this file.
--
-- ARGV[7] ticket, [8] 1 to cancel it
-- Reply: {state of the ticket, '' or its outcome}. {'none'}: there is no such ticket.
local ticket = read(ARGV[7])
if not ticket then return {'none'} end
if ticket.state == WAITING and ARGV[8] == '1' then
  return {CANCELLED, finish({ticket}, CANCELLED, 'end-' .. ticket.id)}
end
return {ticket.state, ticket.outcome or ''}
