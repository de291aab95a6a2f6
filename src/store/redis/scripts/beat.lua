-- SPDX-License-Identifier: Apache-2.0
-- The daemon lives: the places of its waiters count.
-- KEYS: state
-- ARGV: incarnation, this life of the daemon
-- Answers 1, now, how many daemons are known; or 8, now, grace ms.
local state, call = KEYS[1], redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if call('HGET', state, 'inc') ~= ARGV[1] then
-- #include common_newinc
end
local alive = state == '#holdfast:state' and '#holdfast:alive' or string.sub(state, 1, -7) .. '#alive'
redis.pcall('HSET', alive, ARGV[2], string.format('INT', now))
call('PEXPIRE', alive, LINE_EXPIRY)
local known = call('HLEN', alive)
if known > 32 then
  local all = call('HGETALL', alive)
  for i = 1, #all, 2 do
    if math.abs(tonumber(all[i + 1]) or 0) + LINE_EXPIRY <= now then call('HDEL', alive, all[i]) end
  end
end
return {1, now, known}
