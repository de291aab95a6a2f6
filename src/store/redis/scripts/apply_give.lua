-- SPDX-License-Identifier: Apache-2.0
-- The common case: one hold of count 1, and nothing beside it but a note and a mark. The key's own
-- expiry has kept the time. Answers whether that was all.
local function give_only(key, a, all)
  local id = A[a + 2]
  if #all < 8 or all[1] ~= A[a + 1] or all[2] ~= '1' or all[5] ~= '#h' .. id or all[7] ~= '#o' .. id then
    return false
  end
  local waits = false
  for i = 9, #all, 2 do
    if all[i] == '#w' then
      waits = true
    elseif all[i] ~= '#n' .. id then
      return false
    end
  end
  local kind, op = A[a], A[a + 4]
  local min_hold, holder = string.match(all[6], '^1\31%d+\31%d+\31%d+\31(%d+)\31(.*)$')
  if holder ~= A[a + 3] or (min_hold ~= '0' and kind ~= 'u') then return false end
  local known = op ~= '' and find('\31' .. all[8], '\31' .. op .. '\31', 1, true) ~= nil
  if kind ~= 'l' and known ~= (kind == 'u') then return false end
  call('DEL', key)
  if waits then tell(key, true) end
  return true
end

forget_op = function(h, op)
  local from, to = find('\31' .. h.ops, '\31' .. op .. '\31', 1, true)
  h.ops = string.sub(h.ops, 1, from - 1) .. string.sub(h.ops, to)
end

-- The last count of a hold went: what is left decides about the key.
local function drop(v, h, at, kind)
  if kind ~= 'u' then v.kept = math.max(v.kept, h.min_end) end
  if kind == 'l' and v.delay > 0 then v.kept = math.max(v.kept, now + v.delay) end
  table.remove(v.holds, at)
  for _, field in ipairs({'#h', '#n', '#o'}) do v.dead[#v.dead + 1] = field .. h.id end
  v.latest = v.kept
  for _, other in ipairs(v.holds) do
    v.latest = math.max(v.latest, other.deadline + v.delay, other.min_end)
  end
  if v.foreign > 0 then v.latest = math.max(v.latest, v.foreign_until) end
end

local function give(key, a, all)
  if give_only(key, a, all) then return 5 end
  if is_many(all) then return many().give(key, a, all) end
  local kind, owner, op = A[a], A[a + 1], A[a + 4]
  local v = view(key, all, now)
  if not v then return {10} end
  -- Whose answer was lost does not know which hold it joined.
  local h, at = find_hold(v, owner, A[a + 3], kind ~= 'u' and A[a + 2] or nil)
  if not h then
    if #v.dead > 0 or (v.total == 0 and v.kept <= now) then settle(key, v, now) end
    return {6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0}
  end
  local known = remembers(h, op)
  if (kind == 'o' and known) or (kind == 'u' and not known) then
    return {5, v.total, h.count, 0, 0}
  end
  local given = kind == 'l' and h.count or 1
  v.total = v.total - given
  h.count = h.count - given
  if h.count == 0 then
    drop(v, h, at, kind)
  elseif kind == 'u' then
    forget_op(h, op)
  else
    remember(h, op)
  end
  local free = settle(key, v, now)
  if h.count > 0 then call('HSET', key, '#h' .. h.id, record(h), '#o' .. h.id, h.ops) end
  return {5, v.total, h.count, free and 1 or 0,
    v.total == 0 and v.kept > now and v.kept - now or 0}
end
