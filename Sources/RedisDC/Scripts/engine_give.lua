-- Grants free permits to waiters that earlier scripts have left over, and to those that may be overtaken.
-- With an empty NAME it only carries the request's confirmations.
-- Reply: {'ok', 1 if waiters are left over for the next engine_give}, or a refusal.
zrem[#zrem + 1] = RECHECK_LINE .. name
grants_wanted = CATCH_UP
reply = {'ok'}
