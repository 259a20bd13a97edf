-- include: digits
-- What the serializers of Spring write: a number as digits, as `["java.lang.Long",5]`, or as an object of Java whose
-- last bytes are the number; a text as JSON, or as Java does; true likewise.

-- `most`: beyond it, Lua cannot tell a long from its neighbours.
local LONG = { class = 'java.lang.Long', size = 8, most = 9007199254740991 }
local INTEGER = { class = 'java.lang.Integer', size = 4, most = 2147483647 }

local function is_java(stored)
  return string.sub(stored, 1, 2) == '\172\237'
end

-- The bytes of the number in an object of Java; nil when it is no such object.
local function java_number(stored, kind)
  -- The header of a stream, and an object of that class. The rest of it is always the same.
  local beginning = '\172\237\0\5sr\0' .. string.char(#kind.class) .. kind.class
  if #stored ~= 60 + #kind.class + kind.size then return nil end
  return string.sub(stored, 1, #beginning) == beginning and string.sub(stored, -kind.size) or nil
end

-- The number in a field; nil when it is not of the kind, or has another form.
local function spring_number(stored, kind)
  local number
  if is_java(stored) then
    local bytes = java_number(stored, kind)
    number = bytes and struct.unpack('>i' .. kind.size, bytes)
  else
    local class, json = string.match(stored, '^%["([%a.]+)",(.*)%]$')
    json = class == kind.class and json or stored
    number = string.match(json, '^%-?%d+$') and tonumber(json)
  end
  return number and math.abs(number) <= kind.most and number or nil
end

-- A long in the form of a field that has one.
local function as_spring_long(number, stored)
  if is_java(stored) then return string.sub(stored, 1, -1 - LONG.size) .. struct.pack('>i8', number) end
  return (string.gsub(stored, '%-?%d+', digits(number)))
end

-- A text, which needs no escapes, by the serializer that has written `stored`.
local function as_spring_text(text, stored)
  if is_java(stored) then return '\172\237\0\5t' .. struct.pack('>I2', #text) .. text end
  return '"' .. text .. '"'
end

-- Whether a field is true.
local function is_spring_true(stored)
  if not stored or not is_java(stored) then return stored == 'true' or stored == '["java.lang.Boolean",true]' end
  local beginning = '\172\237\0\5sr\0\17java.lang.Boolean'
  return string.sub(stored, 1, #beginning) == beginning and string.sub(stored, -1) == '\1'
end
