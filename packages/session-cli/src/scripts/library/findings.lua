-- What a verification finds: each thing that is wrong, and the word for it, in turn. `mends`: 1 where it is mended at once.
local function findings(mends) return { mends = mends == '1' } end

local function note(found, what, problem, mend)
  found[#found + 1], found[#found + 2] = what, problem
  if found.mends and mend then mend() end
end
