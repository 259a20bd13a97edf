-- Lists in `stale` the attributes that the session loses: all when it is cleared, those that a sign-in does not keep. The
-- save removes them before it writes its own.
-- paste: kept
local is_kept = not clears and kept_by(kept_rule)
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 12) == 'sessionAttr:' and (clears or not is_kept(field)) then table.insert(stale, field) end
end
