-- include: keys
-- An index entry of a session, with the key of the index, a sorted set of ids by the time of the sign-in or the creation;
-- and the error for a stray key in its place.
local function index_entry(prefix, name, value)
  local set = prefix .. 'index:' .. name .. ':' .. value
  return { name = name, value = value, set = set }, read('ZCARD', set) == nil and wrong_type('zset', set, value) or nil
end

-- The entries in the field `index` of a session hash. A field that somebody else wrote must not prevent the end of the
-- session, nor a stray key in the place of an index: it is left out, and its error is the second result.
local function recorded_entries(prefix, field)
  local entries, problem = {}, nil
  local readable, decoded = pcall(cjson.decode, field)
  for _, each in ipairs(readable and type(decoded) == 'table' and decoded or {}) do
    if type(each) == 'table' and type(each[1]) == 'string' and type(each[2]) == 'string' then
      local entry, found = index_entry(prefix, each[1], each[2])
      if found then problem = found else table.insert(entries, entry) end
    end
  end
  return entries, problem
end

local function new_entries(prefix, list)
  local entries = {}
  for i = 1, #list, 2 do
    if list[i + 1] ~= '' then
      local entry, problem = index_entry(prefix, list[i], list[i + 1])
      if problem then error(problem) end
      table.insert(entries, entry)
    end
  end
  return entries
end

-- The name of the index of principals: PRINCIPAL_NAME_INDEX_NAME of session-core.
local PRINCIPAL = 'principal'

local function principal_in(entries)
  for _, entry in ipairs(entries) do
    if entry.name == PRINCIPAL then return entry end
  end
end

-- The field `index` for these entries. A principal alone takes 61 bytes: up to 64 in each field, Redis keeps the hash
-- in its compact form.
local function recorded_form(entries)
  local pairs_of = {}
  for i, entry in ipairs(entries) do pairs_of[i] = { entry.name, entry.value } end
  return cjson.encode(pairs_of)
end
