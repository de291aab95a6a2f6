-- SPDX-License-Identifier: Apache-2.0
local function remember(h, op)
  if op == '' then return end
  h.ops = h.ops .. op .. '\31'
  local _, known = string.gsub(h.ops, '\31', '')
  if known > OPS_PER_HOLD then h.ops = string.gsub(h.ops, '^[^\31]*\31', '') end
end

-- Writes what a changed view means for the key as a whole: the owner's count, the latest deadline,
-- and whether the key is free. What frees memory comes first, so that all of it works when Redis is
-- full. Answers whether the key can be granted now; `tell` hears of it where somebody waits.
local function settle(key, v, now)
  if v.total > 0 then
    for i = 1, #v.dead, 1000 do
      redis.call('HDEL', key, unpack(v.dead, i, math.min(i + 999, #v.dead)))
    end
    if v.latest < math.huge then
      redis.call('PEXPIREAT', key, string.format('INT', v.latest))
    end
    redis.call('HSET', key, v.owner, v.total)
    if v.kept > now then redis.call('HSET', key, '#k', string.format('INT', v.kept)) end
    return false
  end
  redis.call('DEL', key)
  if v.kept > now then
    redis.call('HSET', key, '#k', string.format('INT', v.kept))
    if v.reserved then redis.call('HSET', key, '#r', v.reserved) end
    redis.call('PEXPIREAT', key, string.format('INT', v.kept))
  end
  if v.waits then
    v.waits = false
    tell(key, v.kept <= now)
  end
  return v.kept <= now
end
