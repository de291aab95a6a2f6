-- SPDX-License-Identifier: Apache-2.0
-- Wakes those who wait for `key`, in whichever daemon.
local prefix = string.sub(KEYS[1], 1, -7) -- without '#state'
if KEYS[1] == '#holdfast:state' then
  redis.call('PUBLISH', '#free:default:' .. key, '')
else
  redis.call('PUBLISH', prefix .. '#free:' .. string.sub(key, #prefix + 1), '')
end
