-- SPDX-License-Identifier: Apache-2.0
-- Tells who holds what. Changes nothing.
-- KEYS: lock...
-- ARGV: how many holders of a key at most; for one key alone also its line and who is alive
-- Answers for each: code (0: free, 1: held, 2: kept back, 10: no lock), token, kept ms, holders,
-- mode (1 exclusive, 2 shared, 3 permit), limit, how many hold; and the places in the line.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- #include common_view
-- #include common_holders
local max = tonumber(ARGV[1])

local many_parts
local function look_many(all)
  if not many_parts then
-- #include common_many
    many_parts = {view = view_many, times = times_many}
  end
  local v = many_parts.view(all, now)
  if not v then return {10} end
  local mode = v.mode == 's' and 2 or 3
  if #v.holds > 0 then
    return {1, mode == 2 and tonumber(v.token or 0) or 0, 0, holders(v, now, max), mode, v.limit, #v.holds}
  end
  local _, last = many_parts.times(v)
  return last > now and {2, 0, last - now, {}, mode, v.limit, 0} or {0, 0, 0, {}}
end

local function is_many(all)
  for i = 1, #all, 2 do
    if all[i] == '#m' then return true end
  end
  return false
end

local answers = {}
for i, key in ipairs(KEYS) do
  local all = redis.pcall('HGETALL', key)
  local several = not all.err and is_many(all)
  local v = not all.err and not several and view(key, all, now)
  if several then
    answers[i] = look_many(all)
  elseif not v then
    answers[i] = {10}
  elseif v.total > 0 then
    answers[i] = {1, tonumber(v.token or 0), 0, holders(v, now, max), 1, 0,
      #v.holds + (v.foreign > 0 and 1 or 0)}
  elseif v.kept > now then
    answers[i] = {2, 0, v.kept - now, {}}
  else
    answers[i] = {0, 0, 0, {}}
  end
end
if ARGV[2] and answers[1][1] ~= 10 then
  local places, alive = {}, {}
  for _, place in ipairs(redis.call('ZRANGE', ARGV[2], 0, MAX_WAITERS - 1)) do
    local daemon = string.match(place, '^[^\31]*')
    if alive[daemon] == nil then
      local heard = tonumber(redis.call('HGET', ARGV[3], daemon) or 0)
      alive[daemon] = math.abs(heard) + DAEMON_SILENCE > now
    end
    if alive[daemon] then places[#places + 1] = place end
  end
  for i = #answers[1] + 1, 7 do answers[1][i] = 0 end
  answers[1][8] = places
end
return answers
