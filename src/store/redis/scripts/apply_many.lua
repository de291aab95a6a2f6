-- SPDX-License-Identifier: Apache-2.0
-- SHARED and PERMIT. In the flags of a request: S shared, M and the limit a permit, D and the
-- release delay in ms.
local function mode_of(flags)
  if flags == '' then return 'x', 0 end
  if find(flags, 'S', 1, true) then return 's', 0 end
  local limit = string.match(flags, 'M(%d+)')
  if limit then return 'p', tonumber(limit) end
  return 'x', 0
end

local function delay_of(flags)
  return tonumber(flags ~= '' and string.match(flags, 'D(%d+)') or 0)
end

local kModes = {x = 1, s = 2, p = 3}

local function granted_many(v, h, replayed)
  local fits = v.mode == 's' or permits_taken(v) < v.limit
  return {2, v.mode == 'p' and h.number or tonumber(v.token), h.id, v.counts[h.owner], h.count,
    h.deadline - now, h.max_end > 0 and h.max_end - now or -1, replayed, kModes[v.mode], fits and 1 or 0}
end

local function new_many(a, number)
  local max_end = A[a + 5] ~= '0' and now + A[a + 5] or 0
  local deadline = now + A[a + 4]
  if max_end > 0 and deadline > max_end then deadline = max_end end
  return {id = A[a + 2], owner = A[a + 1], who = A[a + 3], count = 0, granted = now,
    deadline = deadline, max_end = max_end, min_end = now + A[a + 6], delay = delay_of(A[a + 9]),
    number = number, ops = ''}
end

-- One count more for `h`, which is new where `note` is there.
local function add_many(key, a, v, h, note)
  local later = now + A[a + 4]
  if h.max_end > 0 then later = math.min(later, h.max_end) end
  h.deadline = math.max(h.deadline, later)
  h.count = h.count + 1
  remember(h, A[a + 7])
  v.counts[h.owner] = (v.counts[h.owner] or 0) + 1
  if note then v.holds[#v.holds + 1] = h end
  settle_many(key, v, now)
  local fields = {'#h' .. h.id, record_many(h), '#o' .. h.id, h.ops}
  if v.token then
    fields[5], fields[6] = '#t', v.token
  end
  if note and note ~= '' then
    fields[#fields + 1], fields[#fields + 2] = '#n' .. h.id, note
  end
  if note and find(A[a + 9], 't', 1, true) then
    fields[#fields + 1], fields[#fields + 2] = '#w', '1'
  end
  call('HSET', key, unpack(fields))
  return granted_many(v, h, 0)
end

local function id_in_use(v, id)
  for _, h in ipairs(v.holds) do
    if h.id == id then return true end
  end
  return false
end

-- An owner who holds nothing of the key takes it, alone or beside others.
local function join_many(key, a, v)
  if #v.holds >= MAX_HOLDS then return {17} end
  if id_in_use(v, A[a + 2]) then return {11} end
  local number = 0
  if v.mode == 'p' then
    number = next_token()
  elseif #v.holds == 0 or not v.token then
    v.token = format('INT', next_token())
  end
  return add_many(key, a, v, new_many(a, number), A[a + 8])
end

local function again_many(key, a, v, mine)
  if mine then return add_many(key, a, v, mine, nil) end
  if #v.holds >= MAX_HOLDS then return {17} end
  if id_in_use(v, A[a + 2]) then return {11} end
  local number = 0
  for _, h in ipairs(v.holds) do
    if h.owner == A[a + 1] then number = h.number end
  end
  return add_many(key, a, v, new_many(a, number), A[a + 8])
end

-- Nobody has the key.
local function first_many(key, a, mode, limit)
  return join_many(key, a, {holds = {}, notes = {}, counts = {}, written = {}, dead = {}, changed = {},
    slots = {}, kept = 0, foreign = 0, writer = 0, mode = mode, limit = limit,
    mark = mode == 's' and 's' or 'p' .. format('INT', limit)})
end

local function busy_many(key, a, v, mode)
  local flags = A[a + 9]
  if #v.dead > 0 then settle_many(key, v, now) end
  if find(flags, 'w', 1, true) and not v.waits and not find(flags, 'o', 1, true) then
    redis.pcall('HSET', key, '#w', 1)
  end
  if mode == 'x' and find(flags, 'w', 1, true) and not find(flags, 'o', 1, true) then
    redis.pcall('HSET', key, '#x', format('INT', now + WRITER_PATIENCE))
  end
  local first, last = times_many(v)
  local free_at = mode == 'p' and v.mode == 'p' and first or last
  return {3, free_at - now, holders(v, now, MAX_HOLDERS), kModes[v.mode]}
end

-- Answers false where nothing of the key is left: it is for the caller then.
local function take_many(key, a, all)
  local owner, flags = A[a + 1], A[a + 9]
  local mode, limit = mode_of(flags)
  local function flag(letter) return find(flags, letter, 1, true) ~= nil end
  local v = view_many(all, now)
  if not v then return {10} end
  local mine = find_many(v, owner, A[a + 3])
  if mine and remembers(mine, A[a + 7]) then return granted_many(v, mine, 1) end
  local count = v.counts[owner] or 0
  if flag('p') then return {6, #v.holds > 0 and 1 or 0, count} end
  local agrees = mode == v.mode and (mode == 's' or limit == v.limit)
  if count > 0 then
    if flag('r') then return {4} end
    if not agrees then return {16, kModes[v.mode], v.limit} end
    if count >= MAX_COUNT then return {13} end
    return again_many(key, a, v, mine)
  end
  if flag('o') and #v.holds == 0 then return {3, 0, {}} end
  if holds_nothing(v) and v.kept <= now then
    settle_many(key, v, now)
    return false
  end
  if mode == 'p' and v.mode == 'p' and not agrees then return {16, 3, v.limit} end
  local room = agrees and v.writer <= now and (mode == 's' or permits_taken(v) < limit)
  if flag('o') or not room then return busy_many(key, a, v, mode) end
  return join_many(key, a, v)
end

local function give_many(key, a, all)
  local kind, owner, op = A[a], A[a + 1], A[a + 4]
  local v = view_many(all, now)
  if not v then return {10} end
  local h, at = find_many(v, owner, A[a + 3], kind ~= 'u' and A[a + 2] or nil)
  if not h then
    if #v.dead > 0 then settle_many(key, v, now) end
    return {6, #v.holds > 0 and 1 or 0, v.counts[owner] or 0}
  end
  local known = remembers(h, op)
  if (kind == 'o' and known) or (kind == 'u' and not known) then
    return {5, v.counts[owner], h.count, 0, 0}
  end
  local given = kind == 'l' and h.count or 1
  local left = v.counts[owner] - given
  h.count = h.count - given
  v.counts[owner] = left > 0 and left or nil
  local kept = 0
  if h.count == 0 then
    if kind ~= 'u' then kept = h.min_end end
    if kind == 'l' then kept = math.max(kept, now + h.delay) end
    table.remove(v.holds, at)
    end_many(v, h)
    keep_many(v, h, kept, now)
  elseif kind == 'u' then
    forget_op(h, op)
  else
    remember(h, op)
  end
  local over = left == 0
  if v.mode == 's' then over, kept = #v.holds == 0, v.kept end
  settle_many(key, v, now)
  if h.count > 0 then call('HSET', key, '#h' .. h.id, record_many(h), '#o' .. h.id, h.ops) end
  return {5, left, h.count, over and kept <= now and 1 or 0, over and kept > now and kept - now or 0}
end
