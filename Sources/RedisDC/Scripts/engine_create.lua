-- Makes a resource, once.
-- Reply: {'ok', 1 if this request has made it}, or a refusal.
if answer then
  reply = {'ok', 1}
elseif refusal then
  reply = refusal
else
  if is_new then
    resource_changed = true
    sets[#sets + 1] = 'c:' .. me
    sets[#sets + 1] = 'd'
    last, session_changed = math.max(last, req), true
  end
  reply = {'ok', is_new and 1 or 0}
end
