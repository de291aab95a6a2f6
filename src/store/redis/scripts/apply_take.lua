-- SPDX-License-Identifier: Apache-2.0
-- Nobody had the key: a new ownership.
local function take_free(key, a, waits)
  local lease, max_hold, min_hold, note = A[a + 4], A[a + 5], A[a + 6], A[a + 8]
  local deadline = now + lease
  if max_hold ~= '0' and deadline > now + max_hold then
    deadline, lease = now + max_hold, max_hold
  end
  local token = next_token()
  local hold = '#h' .. A[a + 2]
  local written = format('1\31INT\31%s\31%s\31%s\31%s', now, lease, max_hold, min_hold, A[a + 3])
  local ops = '#o' .. A[a + 2]
  if note == '' and not waits then
    call('HSET', key, A[a + 1], '1', '#t', format('INT', token), hold, written, ops, A[a + 7] .. '\31')
  else
    local fields = {A[a + 1], '1', '#t', format('INT', token), hold, written, ops, A[a + 7] .. '\31'}
    if note ~= '' then
      fields[9], fields[10] = '#n' .. A[a + 2], note
    end
    if waits then
      fields[#fields + 1] = '#w'
      fields[#fields + 1] = '1'
    end
    call('HSET', key, unpack(fields))
  end
  local delay = string.match(A[a + 9], 'D(%d+)')
  if delay then
    call('HSET', key, '#d', delay)
    deadline = deadline + delay
  end
  if min_hold ~= '0' and now + min_hold > deadline then deadline = now + min_hold end
  call('PEXPIREAT', key, format('INT', deadline))
  owed = nil
  return token
end

-- The owner takes the key once more, under the hold of this session or a new one.
local function take_again(key, a, v, mine)
  local owner, id, note = A[a + 1], A[a + 2], ''
  if mine then
    mine.count = mine.count + 1
    local later = now + A[a + 4]
    if mine.max_end > 0 then later = math.min(later, mine.max_end) end
    mine.deadline = math.max(mine.deadline, later)
  else
    for _, h in ipairs(v.holds) do
      if h.id == id then return {11} end
    end
    local max_end = A[a + 5] ~= '0' and now + A[a + 5] or 0
    local deadline = now + A[a + 4]
    if max_end > 0 and deadline > max_end then deadline = max_end end
    mine = {id = id, who = A[a + 3], count = 1, deadline = deadline, granted = now, max_end = max_end,
      min_end = now + A[a + 6], ops = ''}
    note = A[a + 8]
  end
  remember(mine, A[a + 7])
  v.total = v.total + 1
  local delay = tonumber(string.match(A[a + 9], 'D(%d+)') or 0)
  if delay > v.delay then
    v.delay = delay
    call('HSET', key, '#d', format('INT', delay))
  end
  v.latest = math.max(v.latest, mine.deadline + v.delay, mine.min_end)
  if not v.token then v.token = format('INT', next_token()) end -- a foreign program took it first
  settle(key, v, now)
  call('HSET', key, '#h' .. mine.id, record(mine), '#o' .. mine.id, mine.ops, '#t', v.token)
  if note ~= '' then call('HSET', key, '#n' .. id, note) end
  return mine
end

-- Nobody has the key: an ownership in whichever mode is asked for.
local function take_first(key, a, waits, claims)
  local flags = A[a + 9]
  if not claims and is_before(key, flags) then
    tell(key, true)
    return {3, 0, {}}
  end
  if not find(flags, '[SM]') then return take_free(key, a, waits) end
  return many().first(key, a, many().mode(flags))
end

local function take_held(key, a, all)
  local owner, flags = A[a + 1], A[a + 9]
  if is_many(all) then
    local row = many().take(key, a, all)
    if row then return row end
    return take_first(key, a, flags ~= '' and find(flags, 't', 1, true) ~= nil)
  end
  local function flag(letter) return find(flags, letter, 1, true) ~= nil end
  local v = view(key, all, now)
  if not v then return {10} end
  local function granted(h, replayed)
    return {2, tonumber(v.token or 0), h.id, v.total, h.count, h.deadline - now,
      h.max_end > 0 and h.max_end - now or -1, replayed}
  end
  local mine = find_hold(v, owner, A[a + 3])
  if mine and remembers(mine, A[a + 7]) then return granted(mine, 1) end
  if flag('p') then return {6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0} end
  if v.total > 0 and v.owner == owner then
    if flag('r') then return {4} end
    if flag('M') then return {16, 1, 0} end
    if v.total >= MAX_COUNT then return {13} end
    mine = take_again(key, a, v, mine)
    return mine.id and granted(mine, 0) or mine
  end
  if v.total == 0 and v.reserved == ARGV[3] and v.kept > now and find(flags, '[eF]') and not flag('o') then
    call('DEL', key)
    return take_first(key, a, true, true)
  end
  if v.total > 0 or v.kept > now then
    if #v.dead > 0 then settle(key, v, now) end
    -- Without room for the mark the wake-up comes from the waiter's own clock.
    if flag('w') and not v.waits and not flag('o') then redis.pcall('HSET', key, '#w', 1) end
    if flag('o') and v.total == 0 then return {3, 0, {}} end
    local free_in = v.total > 0 and v.latest - now or v.kept - now
    return {3, free_in < math.huge and free_in or -1, v.total > 0 and holders(v, now, MAX_HOLDERS) or {}, 1,
      v.total == 0 and v.reserved or ''}
  end
  if flag('o') then return {3, 0, {}} end
  call('DEL', key)
  if v.waits and find(flags, '[SM]') then tell(key) end
  return take_first(key, a, flag('t') or v.waits)
end

local function try_take(key, a, all)
  local flags = A[a + 9]
  if in_grace then
    -- Not even to who seems to hold the key: a restored copy of the data may be older than a release.
    return {9, st[2] - now}
  elseif #all > 0 then
    return take_held(key, a, all)
  elseif find(flags, 'p', 1, true) then
    return {6, 0, 0}
  elseif find(flags, 'o', 1, true) then
    return {3, 0, {}}
  end
  return take_first(key, a, owed == key or find(flags, 't', 1, true) ~= nil)
end

local function take(key, a, all)
  local waited = owed == key
  return mind_line(key, a, try_take(key, a, all), waited)
end
