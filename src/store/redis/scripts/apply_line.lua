-- SPDX-License-Identifier: Apache-2.0
local function place_of(flags)
  return string.match(flags, 'F(%d+)') or '0'
end

-- What an acquire means for the line, once it is answered.
local function mind_line(key, a, row, waited)
  local flags = A[a + 9]
  local code = type(row) == 'number' and 2 or row[1]
  if code == 3 or code == 9 then
    if find(flags, 'e', 1, true) then enter_line(key, ARGV[3], place_of(flags)) end
    return row
  end
  if code ~= 2 or (type(row) == 'table' and row[8] == 1) then return row end
  if flags == '' and not waited then return row end
  if find(flags, '[LZ]') then
    call('ZREM', line_of(key), ARGV[3] .. '\31' .. place_of(flags))
    if find(flags, 'Z', 1, true) then enter_line(key, ARGV[3], place_of(flags)) end
  end
  if find(flags, 'F', 1, true) then leave_served(key, ARGV[3], place_of(flags)) end
  if not waited and not find(flags, '[tLZF]') and type(row) == 'number' then return row end
  local first = first_in_line(key)
  if not first or first == ARGV[3] then return row end
  redis.pcall('HSET', key, '#w', '1')
  if type(row) == 'number' then return {18, row} end
  row[11] = 1
  if row[10] == 1 then tell(key) end -- others may join, whose turn it is not
  return row
end

-- Somebody else's FIFO place is before this one.
local function is_before(key, flags)
  if not find(flags, 'F', 1, true) then return false end
  local first = first_in_line(key)
  return first and first ~= ARGV[3]
end

local function pass_on(key, a, all)
  local how, daemon, free = A[a + 2], A[a + 3], #all == 0
  if how == 'a' then
    leave_all(key, daemon)
  elseif how == 'e' then
    call('ZREM', line_of(key), daemon .. '\31' .. A[a + 1])
  elseif how == 'u' and free then
    redis.pcall('HSET', alive, daemon, format('INT', -now))
  end
  for i = 1, #all, 2 do
    if all[i] == '#x' and how ~= 'u' then
      call('HDEL', key, '#x')
      tell(key)
    elseif all[i] == '#r' and all[i + 1] == daemon and not stands(key, daemon) then
      call('DEL', key)
      free = true
    end
  end
  if free then tell(key, true) end
  return {5, 0, 0, free and 1 or 0, 0}
end

-- Tells of a key that was released. One that nobody has goes to the first in line, who has some time to
-- claim it. Answers `answer` with that.
hand_on = function(key, kind, answer)
  local first
  if not in_grace and call('EXISTS', key) == 0 then
    first = first_in_line(key)
    if first then
      local till = format('INT', now + CLAIM_TIME)
      local kept = redis.pcall('HSET', key, '#k', till, '#r', first, '#w', '1')
      if type(kept) == 'table' and kept.err then first = nil else call('PEXPIREAT', key, till) end
    end
  end
  if first and kind ~= 'a' then
    if type(answer) ~= 'table' then answer = {answer, 0, 0} end
    answer[4], answer[5], answer[6] = 0, CLAIM_TIME, first
    if first == ARGV[3] then return answer end
  elseif first and type(answer) == 'table' and answer[1] == 3 then
    answer[2], answer[4], answer[5] = CLAIM_TIME, 1, first
  end
  call('PUBLISH', channel .. string.sub(key, #state - 5), first or '')
  return answer
end
