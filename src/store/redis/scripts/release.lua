-- SPDX-License-Identifier: Apache-2.0
-- Gives back one count of a hold, the whole hold, or one acquire as if it had never been.
-- KEYS: state, lock
-- ARGV: incarnation, owner, hold id, session, epoch, kind (one, all, undo), op id
local key, owner, id, kind, op = KEYS[2], ARGV[2], ARGV[3], ARGV[6], ARGV[7]
if redis.call('HGET', KEYS[1], 'inc') ~= ARGV[1] then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_newinc
end
local all = redis.call('HGETALL', key)

-- The common case: one hold of count 1 and nothing beside it. The key's own expiry has kept the time.
if #all == 6 and all[1] == owner and all[2] == '1' and all[5] == '#h' .. id then
  local epoch, count, min_end, session, ops = string.match(all[6],
    '^(%d+)\31(%d+)\31%d+\31%d+\31%d+\31(%d+)\31([^\31]*)\31(.*)$')
  if count == '1' and epoch == ARGV[5] and min_end == '0' and session == ARGV[4]
  then
    local known = op ~= '' and string.find('\31' .. ops, '\31' .. op .. '\31', 1, true) ~= nil
    if kind == 'a' or known == (kind == 'u') then
      redis.call('DEL', key)
      return 5
    end
  end
end

if #all == 0 then return 6 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_view
-- #include common_settle
local v = view(key, all, now)
if not v then return {10} end
-- Whose answer was lost does not know which hold it joined.
local h, at = find_hold(v, owner, ARGV[4], ARGV[5], kind ~= 'u' and id or nil)
if not h then
  if #v.dead > 0 or (v.total == 0 and v.kept <= now) then settle(key, v, now) end
  return {6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0}
end

id = h.id
local known = remembers(h, op)
if (kind == 'o' and known) or (kind == 'u' and not known) then
  return {5, v.total, h.count, 0, 0}
end
local given = kind == 'a' and h.count or 1
v.total = v.total - given
h.count = h.count - given
if h.count > 0 then
  if kind == 'u' then
    local from, to = string.find('\31' .. h.ops, '\31' .. op .. '\31', 1, true)
    h.ops = string.sub(h.ops, 1, from - 1) .. string.sub(h.ops, to)
  else
    remember(h, op)
  end
else
  if kind ~= 'u' then v.kept = math.max(v.kept, h.min_end) end
  table.remove(v.holds, at)
  v.dead[#v.dead + 1] = '#h' .. id
  v.dead[#v.dead + 1] = '#n' .. id
  v.latest = v.kept
  for _, other in ipairs(v.holds) do
    v.latest = math.max(v.latest, other.deadline, other.min_end)
  end
  if v.foreign > 0 then v.latest = math.max(v.latest, v.foreign_until) end
end
local free = settle(key, v, now)
if h.count > 0 then redis.call('HSET', key, '#h' .. id, record(h)) end
return {5, v.total, h.count, free and 1 or 0,
  v.total == 0 and v.kept > now and v.kept - now or 0}
