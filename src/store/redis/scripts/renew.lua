-- SPDX-License-Identifier: Apache-2.0
-- Moves the deadlines of holds on, at most 128 keys a call.
-- KEYS: state, lock...
-- ARGV: incarnation, then for each lock: owner, hold id, who, lease ms
-- Answers now, then for each lock: code, lease ms, max hold ms (-1: none).
local call, format = redis.call, string.format
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if call('HGET', KEYS[1], 'inc') ~= ARGV[1] then
-- #include common_newinc
end
-- #include common_publish
local tell = publish
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

local function renew(key, all, owner, id, who, lease)
  local v = view(key, all, now)
  if not v then return answer(10, 0, 0) end
  local h = find_hold(v, owner, who, id)
  if not h then
    if #v.dead > 0 or (#all > 0 and v.total == 0 and v.kept <= now) then settle(key, v, now) end
    return answer(6, v.total > 0 and 1 or 0, v.owner == owner and v.total or 0)
  end
  h.deadline = moved(h.deadline, h.max_end, lease)
  v.latest = math.max(v.latest, h.deadline)
  settle(key, v, now)
  call('HSET', key, '#h' .. id, record(h))
  return answer(7, h.deadline - now, h.max_end > 0 and h.max_end - now or -1)
end

for i = 2, #KEYS do
  local key, a = KEYS[i], (i - 2) * 4 + 2
  local id = ARGV[a + 1]
  local all = redis.pcall('HGETALL', key)
  local simple = false
  if all.err then
    answer(10, 0, 0)
    simple = true
  elseif all[1] == ARGV[a] and all[5] == '#h' .. id and all[7] == '#o' .. id then
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
      local deadline = moved(granted + length, max_end, ARGV[a + 3])
      call('PEXPIREAT', key, format('INT', deadline))
      call('HSET', key, all[5],
        head .. format('INT', deadline - granted) .. '\31' .. max_hold .. tail)
      answer(7, deadline - now, max_end > 0 and max_end - now or -1)
      simple = true
    end
  end
  if not simple then renew(key, all, ARGV[a], id, ARGV[a + 2], ARGV[a + 3]) end
end
return answers
