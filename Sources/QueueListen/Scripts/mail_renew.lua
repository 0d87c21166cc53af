-- The end of a script that may have given the mailbox a new epoch. Preceded by mail_rewind.
if is_new then
  if devices ~= '' then call('HSET', box, 'd', devices) end
  -- All processes read it: those that waited for its predecessor may not be registered, and no send will notice that it
  -- is new. ':box:' is as long as ':meta'.
  local name = sub(box, #meta + 1)
  try('PUBLISH', sub(meta, 1, -5) .. 'wake:all', pack(WAKE_UP_TO_READ, #name, name, 0))
end
return {'ok'}
