-- SPDX-License-Identifier: Apache-2.0
-- Moves the deadlines of holds on, at most 128 keys a call.
-- KEYS: state, lock...
-- ARGV: incarnation, then for each lock: owner, hold id, session, epoch, lease ms
-- Answers now, then for each lock: code, lease ms, max hold ms (-1: none).
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HGET', KEYS[1], 'inc') ~= ARGV[1] then
-- #include common_newinc
end
-- #include common_view
-- #include common_settle

local answers = {now}
local function answer(code, a, b)
  local n = #answers
  answers[n + 1], answers[n + 2], answers[n + 3] = code, a, b
end

local function moved(deadline, max_end, lease)
  local later = now + lease
  if max_end > 0 and later > max_end then later = max_end end
  return later > deadline and later or deadline
end

local function renew(key, all, owner, id, session, epoch, lease)
  local v = view(key, all, now)
  if not v then return answer(10, 0, 0) end
  local h = find_hold(v, owner, session, epoch, id)
  if not h then
    if #v.dead > 0 or (#all > 0 and v.total == 0 and v.kept <= now) then settle(key, v, now) end
    return answer(6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0)
  end
  h.deadline = moved(h.deadline, h.max_end, lease)
  v.latest = math.max(v.latest, h.deadline)
  settle(key, v, now)
  redis.call('HSET', key, '#h' .. id, record(h))
  return answer(7, h.deadline - now, h.max_end > 0 and h.max_end - now or -1)
end

for i = 2, #KEYS do
  local key, a = KEYS[i], (i - 2) * 5 + 2
  local id = ARGV[a + 1]
  local all = redis.pcall('HGETALL', key)
  local simple = false
  if all.err then
    answer(10, 0, 0)
    simple = true
  elseif #all == 6 and all[1] == ARGV[a] and all[5] == '#h' .. id then
    -- One hold and nothing beside it.
    local head, count, deadline, tail, max_end, min_end, session = string.match(all[6],
      '^(%d+)\31(%d+)\31(%d+)(\31%d+\31(%d+)\31(%d+)\31([^\31]*)\31.*)$')
    deadline = tonumber(deadline)
    if head == ARGV[a + 3] and count == all[2] and min_end == '0' and session == ARGV[a + 2]
      and deadline > now then
      max_end = tonumber(max_end)
      deadline = moved(deadline, max_end, ARGV[a + 4])
      redis.call('PEXPIREAT', key, deadline)
      redis.call('HSET', key, all[5], head .. '\31' .. count .. '\31' .. deadline .. tail)
      answer(7, deadline - now, max_end > 0 and max_end - now or -1)
      simple = true
    end
  end
  if not simple then renew(key, all, ARGV[a], id, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]) end
end
return answers
