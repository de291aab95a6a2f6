-- SPDX-License-Identifier: Apache-2.0
-- Moves the deadlines of holds on, at most 128 keys a call.
-- KEYS: state, lock...
-- ARGV: incarnation, then for each lock: owner, hold id, who, lease ms (after an m: of a hold that is
-- probably one of several)
-- Answers now (negative where somebody watches), then for each lock: code, lease ms, max hold ms (-1: none).
local call, format = redis.call, string.format
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

local answers = {now}
local watched, send
if st[2] and tonumber(st[2]) > now then
-- #include common_watch
  watched, send, answers[1] = note, send_news, -now
end
local function answer(code, a, b)
  local n = #answers
  answers[n + 1], answers[n + 2], answers[n + 3] = code, a, b
end

local function moved(deadline, max_end, lease)
  local later = now + lease
  if max_end > 0 and later > max_end then later = max_end end
  return later > deadline and later or deadline
end

local many_parts
local function many()
  if not many_parts then
-- #include common_many
    many_parts = {parse = parse_many, record = record_many, ends = ends_many, view = view_many,
      settle = settle_many}
  end
  return many_parts
end

-- One of several renews its own record only, however many there are. Answers whether it did.
local function renew_one_of_many(key, owner, id, who, lease)
  local value = redis.pcall('HGET', key, '#h' .. id)
  local h = type(value) == 'string' and many().parse(id, value)
  if not h or h.owner ~= owner or h.who ~= who or h.deadline <= now then return false end
  if call('HEXISTS', key, owner) == 0 then return false end
  h.deadline = moved(h.deadline, h.max_end, lease)
  call('HSET', key, '#h' .. id, many().record(h))
  local ttl = call('PTTL', key)
  if now + ttl < many().ends(h) then call('PEXPIREAT', key, format('INT', many().ends(h))) end
  answer(7, h.deadline - now, h.max_end > 0 and h.max_end - now or -1)
  return true
end

local function gone_of_many(key, all, owner)
  local v = many().view(all, now)
  if not v then return answer(10, 0, 0) end
  if #v.dead > 0 then many().settle(key, v, now) end
  answer(6, #v.holds > 0 and 1 or 0, v.counts[owner] or 0)
end

local function renew(key, all, owner, id, who, lease)
  for i = 1, #all, 2 do
    if all[i] == '#m' then
      if not renew_one_of_many(key, owner, id, who, lease) then gone_of_many(key, all, owner) end
      return
    end
  end
  local v = view(key, all, now)
  if not v then return answer(10, 0, 0) end
  local h = find_hold(v, owner, who, id)
  if not h then
    if #v.dead > 0 or (#all > 0 and v.total == 0 and v.kept <= now) then settle(key, v, now) end
    return answer(6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0)
  end
  h.deadline = moved(h.deadline, h.max_end, lease)
  v.latest = math.max(v.latest, h.deadline + v.delay)
  settle(key, v, now)
  call('HSET', key, '#h' .. id, record(h))
  return answer(7, h.deadline - now, h.max_end > 0 and h.max_end - now or -1)
end

for i = 2, #KEYS do
  local key, a = KEYS[i], (i - 2) * 4 + 2
  local id, lease = ARGV[a + 1], ARGV[a + 3]
  local simple = false
  if string.byte(lease) == 109 then
    lease = string.sub(lease, 2)
    simple = renew_one_of_many(key, ARGV[a], id, ARGV[a + 2], lease)
  end
  local all = simple and {} or redis.pcall('HGETALL', key)
  if all.err then
    answer(10, 0, 0)
    simple = true
  elseif not simple and all[1] == ARGV[a] and all[5] == '#h' .. id and all[7] == '#o' .. id then
    -- One hold in its first order, and nothing beside it but a note and a mark.
    local alone = true
    for f = 9, #all, 2 do
      if all[f] ~= '#w' and all[f] ~= '#n' .. id then alone = false end
    end
    local head, count, granted, length, max_hold, tail = string.match(all[6],
      '^((%d+)\31(%d+)\31)(%d+)\31(%d+)(\0310\031.*)$')
    if alone and count == all[2] and tail == '\0310\031' .. ARGV[a + 2]
      and granted + length > now then
      local max_end = max_hold ~= '0' and granted + max_hold or 0
      local deadline = moved(granted + length, max_end, lease)
      call('PEXPIREAT', key, format('INT', deadline))
      call('HSET', key, all[5],
        head .. format('INT', deadline - granted) .. '\31' .. max_hold .. tail)
      answer(7, deadline - now, max_end > 0 and max_end - now or -1)
      simple = true
    end
  end
  if not simple then
    renew(key, all, ARGV[a], id, ARGV[a + 2], lease)
    if watched then watched(key, all, 'r') end
  end
end
if send then send() end
return answers
