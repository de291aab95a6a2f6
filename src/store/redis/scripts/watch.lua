-- SPDX-License-Identifier: Apache-2.0
-- Somebody watches, and will for a while: the other scripts tell the news until then.
-- KEYS: state
-- ARGV: incarnation, for how many ms
-- Answers 1, now, whether that was so without a gap since the last time ('1'); or 8, now, grace ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local st = redis.call('HMGET', KEYS[1], 'inc', 'watch')
if st[1] ~= ARGV[1] then
-- #include common_newinc
end
-- All say the same span, so the last one is the longest.
redis.call('HSET', KEYS[1], 'watch', string.format('INT', now + ARGV[2]))
return {1, now, tonumber(st[2] or 0) > now and 1 or 0}
