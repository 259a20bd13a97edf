-- Lists in `stale` the attributes that the session has and that ARGV does not set from `first_attribute` on.
local is_set = {}
for i = first_attribute, last, 2 do is_set[ARGV[i]] = true end
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 12) == 'sessionAttr:' and not is_set[field] then table.insert(stale, field) end
end
