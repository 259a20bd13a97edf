-- Leaves out of a forwarded save the attributes that a sign-in on the way did not keep: `seals` has the rules. It neither
-- writes nor removes nor compares them.
-- paste: kept
for _, seal in ipairs(seals) do
  local is_kept = kept_by(seal)
  local removed, written = first_removed - 1, first_attribute - 1
  for i = first_removed, last_removed do
    if is_kept(ARGV[i]) then
      removed = removed + 1
      ARGV[removed] = ARGV[i]
    end
  end
  for i = first_attribute, last, 2 do
    if is_kept(ARGV[i]) then
      ARGV[written + 1], ARGV[written + 2] = ARGV[i], ARGV[i + 1]
      written = written + 2
    end
  end
  last_removed, last = removed, written
  if condition ~= 'any' and not is_kept(ARGV[11]) then condition = 'any' end
end
