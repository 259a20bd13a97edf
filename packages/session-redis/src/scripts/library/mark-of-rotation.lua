-- The forwarding mark of a rotation. It leads nowhere where the session was cleared or has another principal since then,
-- or its former token was shut out: `closed:`, or `left:` where nobody is signed in any more. `was`, `is`: the principal.
local function mark_of_rotation(new_id, change, was, is)
  if change.clears or change.closes or was ~= is then return ((is or not was and not change.signs_out) and 'closed:' or 'left:') .. new_id end
  return change.sign_in and new_id .. ' ' .. change.sign_in or new_id
end
