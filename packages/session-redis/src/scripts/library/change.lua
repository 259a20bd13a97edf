-- The change that a script makes to a session. Its arguments:
--   maxInactiveInterval in s; empty: unchanged; 0: end the session
--   absolute timeout in s since the later of the creation and the sign-in; empty: unchanged; negative: none
--   1: keep the session idle: this is no access, and the idle timeout counts from the last access
--   1: nobody is signed in any more
--   which attributes a sign-in keeps: a KeptAttributes of session-core as JSON; empty: nobody signs in
--   a field that must have the expected text, and the SHA-1 of that, in hex; empty: there must be no such field.
--     Without a condition both are empty
--   most attributes and most bytes of the session; empty: any
--   limit of the sessions of the principal: see library/limit-argument; empty: none
--   how many there are of each of the following lists
--   who signs in, for the event: fields of the session as JSON; empty: nobody does
--   how long ago the request began that makes the session one of a principal, in ms; empty: no matter when
--   index and value of each index that changes; empty value: leave the index
--   id and text of each data key: the text when the session has the id in the end
--   field and text of each field to set
--   field to remove

-- include: arguments, limit-argument
-- The change in a list of arguments from one of them on.
local function change_in(list, first)
  local first_key = first + 16 + 2 * list[first + 10]
  local first_set = first_key + 2 * list[first + 11]
  local first_removed, sign_in, field = first_set + 2 * list[first + 12], list[first + 4], list[first + 5]
  return {
    interval = tonumber(list[first]), timeout = tonumber(list[first + 1]), keeps_idle = list[first + 2] == '1', clears = false,
    signs_out = list[first + 3] == '1', sign_in = sign_in ~= '' and sign_in or nil, who = list[first + 14], age = tonumber(list[first + 15]),
    lost = {}, expected_field = field ~= '' and field or nil, expected_hash = list[first + 6], max_size = tonumber(list[first + 8]),
    limit = list[first + 9] ~= '' and limit_in(list[first + 9]) or nil, max_attributes = tonumber(list[first + 7]),
    indexes = part_of(list, first + 16, first_key - 1), removed = part_of(list, first_removed, #list),
    data_keys = part_of(list, first_key, first_set - 1), set = part_of(list, first_set, first_removed - 1),
  }
end
