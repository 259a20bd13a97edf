-- Writes the fields and values that are the end of ARGV. Lua passes at most 8000 values to a command.
for i = first_attribute, last, 4000 do
  redis.call('HSET', key, unpack(ARGV, i, math.min(i + 3999, last)))
end
