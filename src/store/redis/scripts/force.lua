-- SPDX-License-Identifier: Apache-2.0
-- An operator ends holds, or fixes their end.
-- KEYS: state, lock
-- ARGV: incarnation, hold id (empty: all of the key), immediate ('1': they are over now)
-- Answers code, how many, ms until they are over (-1: never), holders.
local call = redis.call
local key, id, at_once = KEYS[2], ARGV[2], ARGV[3] == '1'
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if call('HGET', KEYS[1], 'inc') ~= ARGV[1] then
-- #include common_newinc
end
-- #include common_publish
local tell = publish
-- #include common_view
-- #include common_settle
-- #include common_holders
local all = call('HGETALL', key)
local v = view(key, all, now)
if not v then return {10} end

local meant, others, over = {}, {}, now
for _, h in ipairs(v.holds) do
  if id == '' or h.id == id then
    meant[#meant + 1] = h
    over = math.max(over, h.deadline, h.min_end)
  else
    others[#others + 1] = h
  end
end
local foreign = id == '' and v.foreign or 0
local rows = holders({owner = v.owner, holds = meant, notes = v.notes, foreign = foreign,
  foreign_until = v.foreign_until}, now)
local count = #meant

if at_once then
  over = now
  for _, h in ipairs(meant) do
    v.total = v.total - h.count
    for _, kind in ipairs({'#h', '#n', '#o'}) do v.dead[#v.dead + 1] = kind .. h.id end
  end
  if id == '' then
    count = count + (foreign > 0 and 1 or 0)
    v.total, v.foreign, v.kept = 0, 0, 0
  end
  v.holds = others
  v.latest = v.kept
  for _, h in ipairs(others) do v.latest = math.max(v.latest, h.deadline, h.min_end) end
  if v.foreign > 0 then v.latest = math.max(v.latest, v.foreign_until) end
  if #all > 0 then settle(key, v, now) end
else
  if foreign > 0 then over = math.max(over, v.foreign_until) end
  for _, h in ipairs(meant) do
    h.max_end = h.deadline
    call('HSET', key, '#h' .. h.id, record(h))
  end
end
over = math.max(over, v.kept)
return {15, count, over < math.huge and over - now or -1, rows}
