-- The reply to a batch: {'ok', the results}, {'late'}: a later batch has been carried out, {'lost'}: the session has
-- ended, {'rolled back'}: Redis has lost an earlier batch.
return {'ok', results}
