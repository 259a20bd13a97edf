-- The change that a script makes to a session. Its arguments:
--   maxInactiveInterval in s; empty: unchanged; 0: end the session
--   absolute timeout in s since the later of the creation and the sign-in; empty: unchanged; negative: none
--   1: keep the session idle: this is no access, and the idle timeout counts from the last access
--   1: nobody is signed in any more
--   which attributes a sign-in keeps: a KeptAttributes of session-core as JSON; empty: nobody signs in
--   a field that must have the expected text, and the SHA-1 of that, in hex; empty: there must be no such field. Without a
--     condition both are empty
--   most attributes and most bytes of the session; empty: any
--   limit of the sessions of the principal: '<number> end-oldest', '<number> refuse', or 'until <epoch ms> <name>' when
--     there is room for a session of this principal until then; empty: none
--   how many there are of each of these
--   index and value of each index that changes; empty value: leave the index
--   id and text of each data key: the text when the session has the id in the end
--   field and text of each field to set
--   field to remove

-- include: limit
-- The change in a list of arguments from one of them on.
local function change_in(list, first)
  local function text(n) return list[first + n] ~= '' and list[first + n] or nil end
  local change = {
    interval = tonumber(text(0)), timeout = tonumber(text(1)), keeps_idle = text(2) == '1', signs_out = text(3) == '1',
    sign_in = text(4), expected_field = text(5), expected_hash = list[first + 6],
    max_attributes = tonumber(text(7)), max_size = tonumber(text(8)), limit = limit_in(list[first + 9]),
    indexes = {}, data_keys = {}, set = {}, removed = {}, lost = {}, clears = false,
  }
  local at = first + 14
  for n, name in ipairs({ 'indexes', 'data_keys', 'set', 'removed' }) do
    local size = list[first + 9 + n] * (name == 'removed' and 1 or 2)
    for i = 1, size do change[name][i] = list[at + i - 1] end
    at = at + size
  end
  return change
end
