-- Lists in `stale` the attributes that the session has and that ARGV does not set from `first_attribute` on.
local is_set = {}
for i = first_attribute, last, 2 do is_set[ARGV[i]] = true end
local found = redis.call('HGETALL', key)
for i = 1, #found, 2 do
  if string.sub(found[i], 1, 12) == 'sessionAttr:' and not is_set[found[i]] then table.insert(stale, found[i]) end
end
