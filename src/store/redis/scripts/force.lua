-- SPDX-License-Identifier: Apache-2.0
-- An operator ends holds, or fixes their end.
-- KEYS: state, lock
-- ARGV: incarnation, hold id (empty: all of the key), immediate ('1': they are over now)
-- Answers code, how many, ms until they are over (-1: never), holders, mode (1 exclusive, 2 shared,
-- 3 permit).
local call = redis.call
local key, id, at_once = KEYS[2], ARGV[2], ARGV[3] == '1'
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local st = call('HMGET', KEYS[1], 'inc', 'watch')
if st[1] ~= ARGV[1] then
-- #include common_newinc
end
-- #include common_publish
local tell = publish
-- #include common_view
-- #include common_settle
-- #include common_holders
local all = call('HGETALL', key)

-- Parts the holds into those that are meant and the others.
local function part(holds)
  local meant, others = {}, {}
  for _, h in ipairs(holds) do
    local to = (id == '' or h.id == id) and meant or others
    to[#to + 1] = h
  end
  return meant, others
end

local watched, send
if st[2] and tonumber(st[2]) > now then
-- #include common_watch
  watched, send = note, send_news
end

local function answer(count, over, rows, mode)
  if watched then
    watched(key, all, at_once and 'f' or 'r')
    send()
  end
  return {15, count, over < math.huge and over - now or -1, rows, mode}
end

local function force_many()
-- #include common_many
  local v = view_many(all, now)
  if not v then return {10} end
  local meant, others = part(v.holds)
  local rows, over = holders({holds = meant, notes = v.notes, foreign = 0}, now, MAX_HOLDERS), now
  for _, h in ipairs(meant) do
    if at_once then
      end_many(v, h)
      v.counts[h.owner] = v.counts[h.owner] > h.count and v.counts[h.owner] - h.count or nil
    else
      over = math.max(over, ends_many(h))
      h.max_end = h.deadline
      call('HSET', key, '#h' .. h.id, record_many(h))
    end
  end
  if at_once then
    v.holds = others
    if id == '' then
      for slot in pairs(v.slots) do v.dead[#v.dead + 1] = slot end
      v.slots, v.kept, v.ended = {}, 0, true
    end
    settle_many(key, v, now)
  end
  over = math.max(over, v.kept)
  for _, till in pairs(v.slots) do over = math.max(over, till) end
  return answer(#meant, over, rows, v.mode == 's' and 2 or 3)
end

for i = 1, #all, 2 do
  if all[i] == '#m' then return force_many() end
end

local v = view(key, all, now)
if not v then return {10} end
local meant, others = part(v.holds)
local foreign = id == '' and v.foreign or 0
local rows = holders({owner = v.owner, holds = meant, notes = v.notes, foreign = foreign,
  foreign_until = v.foreign_until}, now, MAX_HOLDERS)
local count, over = #meant, now
for _, h in ipairs(meant) do
  if at_once then
    v.total = v.total - h.count
    for _, kind in ipairs({'#h', '#n', '#o'}) do v.dead[#v.dead + 1] = kind .. h.id end
  else
    over = math.max(over, h.deadline + v.delay, h.min_end)
    h.max_end = h.deadline
    call('HSET', key, '#h' .. h.id, record(h))
  end
end
if at_once then
  if id == '' then
    count = count + (foreign > 0 and 1 or 0)
    v.total, v.foreign, v.kept = 0, 0, 0
  end
  v.latest = v.kept
  for _, h in ipairs(others) do v.latest = math.max(v.latest, h.deadline + v.delay, h.min_end) end
  if v.foreign > 0 then v.latest = math.max(v.latest, v.foreign_until) end
  if #all > 0 then settle(key, v, now) end
elseif foreign > 0 then
  over = math.max(over, v.foreign_until)
end
return answer(count, math.max(over, v.kept), rows, 1)
