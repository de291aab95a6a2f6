-- SPDX-License-Identifier: Apache-2.0
-- Tells who holds what. Changes nothing.
-- KEYS: lock...
-- Answers for each: code (0: free, 1: held, 2: kept back, 10: no lock), token, kept ms, holders.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_view
-- #include common_holders
local answers = {}
for i, key in ipairs(KEYS) do
  local all = redis.pcall('HGETALL', key)
  local v = not all.err and view(key, all, now)
  if not v then
    answers[i] = {10}
  elseif v.total > 0 then
    answers[i] = {1, tonumber(v.token or 0), 0, holders(v, now)}
  elseif v.kept > now then
    answers[i] = {2, 0, v.kept - now, {}}
  else
    answers[i] = {0, 0, 0, {}}
  end
end
return answers
