-- SPDX-License-Identifier: Apache-2.0
-- Takes a key, or takes it once more.
-- KEYS: state, lock
-- ARGV: incarnation, owner, hold id, session, epoch, lease ms, max hold ms (0: none), min hold ms,
--       op id, note, flags (letters of: r refuse re-entry, o only re-entry,
--       p replay only, w will wait, t others wait)
local key, owner, id, op, flags = KEYS[2], ARGV[2], ARGV[3], ARGV[9], ARGV[11]
local st = redis.call('HMGET', KEYS[1], 'inc', 'grace', 'token')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if st[1] ~= ARGV[1] then
-- #include common_newinc
end
local all = redis.call('HGETALL', key)
local waits = flags ~= '' and string.find(flags, 't', 1, true) ~= nil
local deadline = now + ARGV[6]
local max_end = 0
if ARGV[7] ~= '0' then
  max_end = now + ARGV[7]
  if deadline > max_end then deadline = max_end end
end

if #all > 0 then
-- #include common_view
-- #include common_settle
-- #include common_holders
  local function flag(letter) return string.find(flags, letter, 1, true) ~= nil end

  local function granted(v, h, replayed)
    return {2, now, tonumber(v.token or 0), h.id, v.total, h.count, h.deadline - now,
      h.max_end > 0 and h.max_end - now or -1, replayed}
  end

  local v = view(key, all, now)
  if not v then return {10} end
  local mine = find_hold(v, owner, ARGV[4], ARGV[5])
  if mine and remembers(mine, op) then return granted(v, mine, 1) end
  if flag('p') then return {6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0} end

  if v.total > 0 and v.owner == owner then
    if flag('r') then return {4} end
    if v.total >= MAX_COUNT then return {13} end
    local note = ''
    if mine then
      mine.count = mine.count + 1
      if mine.max_end > 0 then
        mine.deadline = math.max(mine.deadline, math.min(now + ARGV[6], mine.max_end))
      else
        mine.deadline = math.max(mine.deadline, now + ARGV[6])
      end
    else
      for _, h in ipairs(v.holds) do
        if h.id == id then return {11} end
      end
      local min_end = ARGV[8] ~= '0' and now + ARGV[8] or 0
      mine = {id = id, epoch = ARGV[5], count = 1, deadline = deadline, granted = now,
        max_end = max_end, min_end = min_end, session = ARGV[4], ops = ''}
      note = ARGV[10]
    end
    remember(mine, op)
    v.total = v.total + 1
    v.latest = math.max(v.latest, mine.deadline, mine.min_end)
    if not v.token then -- a foreign program took it first
      v.token = string.format('%.0f',
        math.max(tonumber(st[3] or 0) + 1, (now - TOKEN_EPOCH) * TOKENS_PER_MILLI))
      redis.call('HSET', KEYS[1], 'token', v.token)
    end
    settle(key, v, now)
    redis.call('HSET', key, '#h' .. mine.id, record(mine), '#t', v.token)
    if note ~= '' then redis.call('HSET', key, '#n' .. id, note) end
    return granted(v, mine, 0)
  end

  if v.total > 0 or v.kept > now then
    if #v.dead > 0 then settle(key, v, now) end
    -- Without room for the mark the wake-up comes from the waiter's own clock.
    if flag('w') and not v.waits and not flag('o') then redis.pcall('HSET', key, '#w', 1) end
    if flag('o') and v.total == 0 then return {3, now, 0, {}} end
    local free_in = v.total > 0 and v.latest - now or v.kept - now
    return {3, now, free_in < math.huge and free_in or -1, v.total > 0 and holders(v, now) or {}}
  end
  if flag('o') then return {3, now, 0, {}} end
  waits = waits or v.waits
  redis.call('DEL', key)
elseif flags ~= '' then
  if string.find(flags, 'p', 1, true) then return {6, 0, 0} end
  if string.find(flags, 'o', 1, true) then return {3, now, 0, {}} end
end

-- What is held can be taken once more in a grace period; what looks free may not be.
local grace = tonumber(st[2] or 0)
if grace > now then return {9, grace - now, now} end

local token = (now - TOKEN_EPOCH) * TOKENS_PER_MILLI
local last = tonumber(st[3] or 0)
if last >= token then token = last + 1 end
local text = string.format('%.0f', token)
local min_end = 0
if ARGV[8] ~= '0' then min_end = now + ARGV[8] end
local hold = ARGV[5] .. '\0311\031' .. deadline .. '\31' .. now .. '\31' .. max_end .. '\31' .. min_end
  .. '\31' .. ARGV[4] .. '\31'
if op ~= '' then hold = hold .. op .. '\31' end
if ARGV[10] == '' and not waits then
  redis.call('HSET', key, owner, 1, '#t', text, '#h' .. id, hold)
else
  local fields = {owner, 1, '#t', text, '#h' .. id, hold}
  if ARGV[10] ~= '' then
    fields[7], fields[8] = '#n' .. id, ARGV[10]
  end
  if waits then
    fields[#fields + 1] = '#w'
    fields[#fields + 1] = 1
  end
  redis.call('HSET', key, unpack(fields))
end
redis.call('PEXPIREAT', key, deadline > min_end and deadline or min_end)
redis.call('HSET', KEYS[1], 'token', text)
return {1, token, now}
