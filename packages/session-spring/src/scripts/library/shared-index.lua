-- include: keys
-- Spring's index of principals: a set of ids for each name. Spring also lists a user whom nothing but a context of
-- Spring Security names, so the caller tells such a name.
local function principals_of(place, name)
  return place.prefix .. 'index:org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME:' .. name
end

local function unlist(place, id, name)
  if name and name ~= '' then read('SREM', principals_of(place, name), '"' .. id .. '"') end
end

local function list(place, id, name)
  if name and name ~= '' then read('SADD', principals_of(place, name), '"' .. id .. '"') end
end
