-- SPDX-License-Identifier: Apache-2.0
-- Takes a key, or takes it once more.
-- KEYS: state, lock
-- ARGV: incarnation, owner, hold id, who (epoch, byte 31, session), lease ms, max hold ms (0: none),
--       min hold ms, op id, note, flags (letters of: r refuse re-entry, o only re-entry,
--       p replay only, w will wait, t others wait)
local call, format = redis.call, string.format
local key, owner, id, who, lease, op, flags = KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[8], ARGV[10]
local st = call('HMGET', KEYS[1], 'inc', 'grace', 'token')
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if st[1] ~= ARGV[1] then
-- #include common_newinc
end
-- Not even to who seems to hold the key: a restored copy of the data may be older than a release.
if st[2] ~= '0' then
  local grace = tonumber(st[2] or 0)
  if grace > now then return {9, grace - now, now} end
end
local all = call('HGETALL', key)
local waits = flags ~= '' and string.find(flags, 't', 1, true) ~= nil
local deadline = now + lease
local max_end = 0
if ARGV[6] ~= '0' then
  max_end = now + ARGV[6]
  if deadline > max_end then deadline, lease = max_end, ARGV[6] end
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
  local mine = find_hold(v, owner, who)
  if mine and remembers(mine, op) then return granted(v, mine, 1) end
  if flag('p') then return {6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0} end

  if v.total > 0 and v.owner == owner then
    if flag('r') then return {4} end
    if v.total >= MAX_COUNT then return {13} end
    local note = ''
    if mine then
      mine.count = mine.count + 1
      if mine.max_end > 0 then
        mine.deadline = math.max(mine.deadline, math.min(now + ARGV[5], mine.max_end))
      else
        mine.deadline = math.max(mine.deadline, now + ARGV[5])
      end
    else
      for _, h in ipairs(v.holds) do
        if h.id == id then return {11} end
      end
      mine = {id = id, who = who, count = 1, deadline = deadline, granted = now, max_end = max_end,
        min_end = now + ARGV[7], ops = ''}
      note = ARGV[9]
    end
    remember(mine, op)
    v.total = v.total + 1
    v.latest = math.max(v.latest, mine.deadline, mine.min_end)
    if not v.token then -- a foreign program took it first
      v.token = format('INT',
        math.max(tonumber(st[3] or 0) + 1, (now - TOKEN_EPOCH) * TOKENS_PER_MILLI))
      call('HSET', KEYS[1], 'token', v.token)
    end
    settle(key, v, now)
    call('HSET', key, '#h' .. mine.id, record(mine), '#o' .. mine.id, mine.ops, '#t', v.token)
    if note ~= '' then call('HSET', key, '#n' .. id, note) end
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
  call('DEL', key)
elseif flags ~= '' then
  if string.find(flags, 'p', 1, true) then return {6, 0, 0} end
  if string.find(flags, 'o', 1, true) then return {3, now, 0, {}} end
end

local token = (now - TOKEN_EPOCH) * TOKENS_PER_MILLI
local last = tonumber(st[3] or 0)
if last >= token then token = last + 1 end
local text = format('INT', token)
local hold = '1\31' .. format('INT', now) .. '\31' .. lease .. '\31' .. ARGV[6] .. '\31' .. ARGV[7]
  .. '\31' .. who
if ARGV[9] == '' and not waits then
  call('HSET', key, owner, '1', '#t', text, '#h' .. id, hold, '#o' .. id, op .. '\31')
else
  local fields = {owner, '1', '#t', text, '#h' .. id, hold, '#o' .. id, op .. '\31'}
  if ARGV[9] ~= '' then
    fields[9], fields[10] = '#n' .. id, ARGV[9]
  end
  if waits then
    fields[#fields + 1] = '#w'
    fields[#fields + 1] = '1'
  end
  call('HSET', key, unpack(fields))
end
if ARGV[7] ~= '0' and now + ARGV[7] > deadline then deadline = now + ARGV[7] end
call('PEXPIREAT', key, format('INT', deadline))
call('HSET', KEYS[1], 'token', text)
return {1, token, now}
