-- SPDX-License-Identifier: Apache-2.0
-- Gives back one count of a hold, the whole hold, or one acquire as if it had never been.
-- KEYS: state, lock
-- ARGV: incarnation, owner, hold id, who (epoch, byte 31, session), kind (one, all, undo), op id
local call = redis.call
local key, owner, id, who, kind, op = KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if call('HGET', KEYS[1], 'inc') ~= ARGV[1] then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_newinc
end
local all = call('HGETALL', key)

-- The common case: one hold of count 1. The key's own expiry has kept the time.
local n = #all
if n >= 8 and all[1] == owner and all[2] == '1' and all[5] == '#h' .. id and all[7] == '#o' .. id then
  local waits, alone = false, true
  for i = 9, n, 2 do
    if all[i] == '#w' then
      waits = true
    elseif all[i] ~= '#n' .. id then
      alone = false
    end
  end
  local min_hold, holder = string.match(all[6], '^1\31%d+\31%d+\31%d+\31(%d+)\31(.*)$')
  if alone and holder == who and (min_hold == '0' or kind == 'u') then
    local known = op ~= '' and string.find('\31' .. all[8], '\31' .. op .. '\31', 1, true) ~= nil
    if kind == 'a' or known == (kind == 'u') then
      call('DEL', key)
      if waits then
-- #include common_publish
      end
      return 5
    end
  end
end

if n == 0 then return 6 end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_view
-- #include common_settle
local v = view(key, all, now)
if not v then return {10} end
-- Whose answer was lost does not know which hold it joined.
local h, at = find_hold(v, owner, who, kind ~= 'u' and id or nil)
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
  v.dead[#v.dead + 1] = '#o' .. id
  v.latest = v.kept
  for _, other in ipairs(v.holds) do
    v.latest = math.max(v.latest, other.deadline, other.min_end)
  end
  if v.foreign > 0 then v.latest = math.max(v.latest, v.foreign_until) end
end
local free = settle(key, v, now)
if h.count > 0 then call('HSET', key, '#h' .. id, record(h), '#o' .. id, h.ops) end
return {5, v.total, h.count, free and 1 or 0,
  v.total == 0 and v.kept > now and v.kept - now or 0}
