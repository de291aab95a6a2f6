-- SPDX-License-Identifier: Apache-2.0
-- Compares the marker with the server that the connection talks to, and opens a grace period where
-- holds may live that the data no longer knows.
-- KEYS: state
-- ARGV: incarnation, no grace ('1': nobody holds, says the operator), seen ('1': this daemon has met
--       a marker on this very run of the server)
-- Answers code (1: fine, 12: data of a newer format), grace ms, now, why.
local state, inc = KEYS[1], ARGV[1]
local st = redis.call('HMGET', state, 'format', 'inc', 'grace', 'max_lease')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if st[1] and tonumber(st[1]) > FORMAT then return {12, 0, now, st[1]} end

local span = math.max(tonumber(st[4] or 0), MAX_LEASE)
local grace = tonumber(st[3] or 0)
local why = 'same incarnation'

-- Milliseconds since the server started, at least, or nil where its statistics know of lost data or
-- nothing. The server subtracts whole seconds, so it may claim one that it has only begun.
local function unspoilt_uptime()
  local stats = redis.pcall('INFO', 'commandstats')
  local server = redis.pcall('INFO', 'server')
  local general = redis.pcall('INFO', 'stats')
  if type(stats) ~= 'string' or type(server) ~= 'string' or type(general) ~= 'string' then
    return nil, 'the server keeps no statistics'
  end
  -- Before Redis 7 the subcommands of CONFIG are not told apart.
  for _, command in ipairs({'flushall', 'flushdb', 'swapdb', 'config|resetstat', 'config', 'debug',
    'replicaof', 'slaveof'}) do
    if string.find(stats, 'cmdstat_' .. command .. ':', 1, true) then
      return nil, 'the server has run ' .. string.upper(string.gsub(command, '|', ' '))
    end
  end
  if string.match(general, 'evicted_keys:(%d+)') ~= '0' then return nil, 'the server evicts keys' end
  local uptime = string.match(server, 'uptime_in_seconds:(%d+)')
  return uptime and math.max(0, uptime - 1) * 1000, 'the server does not tell its uptime'
end

if st[2] ~= inc then
  grace = now + span
  why = 'another incarnation'
  if not st[2] and ARGV[3] == '1' then
    why = 'the marker is gone'
  elseif not st[2] then
    local uptime, doubt = unspoilt_uptime()
    if not uptime then
      why = 'no marker, and ' .. doubt
    elseif uptime > span then
      grace, why = 0, 'new to this server'
    else
      grace, why = now + span - uptime, 'new to this server, which is young'
    end
  end
end
if ARGV[2] == '1' and grace > now then
  grace, why = 0, 'the operator vouches that nobody holds'
end
redis.call('HSET', state, 'format', FORMAT, 'inc', inc, 'grace', string.format('INT', grace),
  'max_lease', string.format('INT', span))
return {1, math.max(0, grace - now), now, why}
