local function words_in(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do words[word] = true end
  return words
end

local function with_word(text, word)
  if words_in(text)[word] then return text end
  return text == '' and word or text .. ' ' .. word
end
