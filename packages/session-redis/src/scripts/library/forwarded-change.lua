-- include: kept-attributes
-- What a change for a former id may still do: see `SessionChange` of session-core.

-- Leaves out the attributes that a sign-in on the way did not keep. `seals`: the rules of the sign-ins.
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

-- Leaves out all that belongs to who has signed in since then. Returns the reply to a change that may not be forwarded.
local function restrict_forwarded(change, seals)
  if change.indexes[1] or change.timeout or (change.interval or 0) ~= 0 then return { 'gone' } end
  change.signs_out = false
  leave_out_sealed(change, seals or {})
  return nil
end
