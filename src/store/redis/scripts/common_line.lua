-- SPDX-License-Identifier: Apache-2.0
-- The line of a key: a sorted set of places (daemon, byte 31, number), the first the one that came
-- first. Which daemons live stands in one hash: when each was heard last; negative where it did not
-- claim a key then, and is passed over until it is heard again. 
local alive = state == '#state' and '#holdfast:alive' or string.sub(state, 1, -7) .. '#alive'

local function line_of(key) return line_name .. string.sub(key, #state - 5) end

local function daemon_of(place) return string.match(place, '^[^\31]*') end

-- The daemon whose place is the first whose turn it can be; nil: there is none. Drops those of the dead.
local function first_in_line(key)
  local line, turn, from = line_of(key), {}, 0
  while true do
    local places, dead = redis.call('ZRANGE', line, from, from + 99), {}
    for _, place in ipairs(places) do
      local daemon = daemon_of(place)
      if not turn[daemon] then
        local heard = tonumber(redis.call('HGET', alive, daemon) or 0)
        turn[daemon] = math.abs(heard) + DAEMON_SILENCE <= now and 'dead' or heard > 0 and 'can' or 'over'
      end
      if turn[daemon] == 'can' then
        if #dead > 0 then redis.call('ZREM', line, unpack(dead)) end
        return daemon
      elseif turn[daemon] == 'dead' then
        dead[#dead + 1] = place
      else
        from = from + 1
      end
    end
    if #dead > 0 then redis.call('ZREM', line, unpack(dead)) end
    if #places < 100 then return nil end
  end
end

-- Without room for it the waiter's own clock has to do.
local function enter_line(key, daemon, number)
  local line = line_of(key)
  local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')
  redis.pcall('ZADD', line, 'NX', string.format('INT', (tonumber(last[2]) or 0) + 1), daemon .. '\31' .. number)
  redis.call('PEXPIRE', line, LINE_EXPIRY)
  redis.pcall('HSET', alive, daemon, string.format('INT', now))
  redis.call('PEXPIRE', alive, LINE_EXPIRY)
end

-- A FIFO place was served: what stands before it of the same daemon was forgotten there.
local function leave_served(key, daemon, number)
  local line = line_of(key)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    local other, n = string.match(place, '^([^\31]*)\31(%d+)$')
    if other == daemon and tonumber(n) > 0 then
      if tonumber(n) > tonumber(number) then return end
      redis.call('ZREM', line, place)
    end
  end
end

local function leave_all(key, daemon)
  local line = line_of(key)
  for _, place in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    if daemon_of(place) == daemon then redis.call('ZREM', line, place) end
  end
end

local function stands(key, daemon)
  for _, place in ipairs(redis.call('ZRANGE', line_of(key), 0, -1)) do
    if daemon_of(place) == daemon then return true end
  end
  return false
end
