-- Texts with words that are separated by spaces.

local function words_in(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do words[word] = true end
  return words
end

-- The text with one more word, unless it has that.
local function with_word(text, word)
  if words_in(text)[word] then return text end
  return text == '' and word or text .. ' ' .. word
end
