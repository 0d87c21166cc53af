-- Counts what a matchmaker has. Composed of match_head and this file. Changes nothing.
--
-- Reply: {number of waiting tickets, number of nodes with a lease}
return {call('ZLEXCOUNT', index, '[o', '(p'), call('ZCOUNT', nodes, '(' .. integer(now), '+inf')}
