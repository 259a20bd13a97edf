-- include: keeps
-- Leaves out of a forwarded change the attributes that a sign-in on the way did not keep: it neither sets nor removes nor
-- compares them. `seals`: the rules of the sign-ins.
local function leave_out_sealed(change, seals)
  for _, seal in ipairs(seals) do
    local keeps, set, removed = keeps_by(seal), {}, {}
    for i = 1, #change.set, 2 do
      if keeps(change.set[i]) then
        table.insert(set, change.set[i])
        table.insert(set, change.set[i + 1])
      end
    end
    for _, field in ipairs(change.removed or {}) do
      if keeps(field) then table.insert(removed, field) end
    end
    change.set, change.removed = set, removed
    if change.expected_field and not keeps(change.expected_field) then change.expected_field = nil end
  end
end
