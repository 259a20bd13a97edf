-- The forwarding mark of a rotation. Nothing is forwarded to a session that was cleared, that has another principal
-- since then, or whose former token was shut out, so this mark leads nowhere: `closed:`, or `left:` where nobody is
-- signed in any more. `was`, `is`: the principal before and after; nil: nobody.
local function mark_of_rotation(new_id, change, was, is)
  if change.clears or change.closes or was ~= is then return ((is or not was and not change.signs_out) and 'closed:' or 'left:') .. new_id end
  return change.sign_in and new_id .. ' ' .. change.sign_in or new_id
end
