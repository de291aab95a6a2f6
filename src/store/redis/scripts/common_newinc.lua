-- SPDX-License-Identifier: Apache-2.0
  -- The marker is missing or names another life of the server: grant nothing,
  -- write the marker that the connection saw, and open a grace period.
  local was = redis.call('HMGET', KEYS[1], 'max_lease', 'format')
  local span = math.max(tonumber(was[1] or 0), MAX_LEASE)
  redis.call('HSET', KEYS[1], 'inc', ARGV[1], 'grace', string.format('INT', now + span),
    'max_lease', string.format('INT', span), 'format', was[2] or FORMAT)
  do return {8, now, span} end
