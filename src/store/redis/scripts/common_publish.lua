-- SPDX-License-Identifier: Apache-2.0
-- Wakes those who wait for a key, in whichever daemon.
local function publish(key)
  if KEYS[1] == '#holdfast:state' then
    redis.call('PUBLISH', '#free:default:' .. key, '')
  else
    local prefix = string.sub(KEYS[1], 1, -7) -- without '#state'
    redis.call('PUBLISH', prefix .. '#free:' .. string.sub(key, #prefix + 1), '')
  end
end
