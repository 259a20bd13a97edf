-- What the names of keys begin with that only a script can know, spelled as in keys/session-keys.ts. The prefix contains
-- the partition's hash tag.
local prefix = ARGV[1]
local bucket_prefix = prefix .. 'expirations:'
