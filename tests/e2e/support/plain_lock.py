# SPDX-License-Identifier: Apache-2.0
"""The lock of a program without Holdfast: the common scripts over a hash of owner to count."""

_LOCK = """
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -1
end
return redis.call('pttl', KEYS[1])
"""

_UNLOCK = """
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return -1 end
local left = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if left > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return left
end
redis.call('del', KEYS[1])
return 0
"""


class PlainLock:
    def __init__(self, redis_client, key, owner="plain-program:1", lease_ms=30_000):
        self._run = redis_client.eval
        self._arguments = (1, key, lease_ms, owner)

    def take(self):
        """-1: it holds now (once more); else how many ms the key is held for."""
        return self._run(_LOCK, *self._arguments)

    def give_back(self):
        """How often it still holds; -1: it does not."""
        return self._run(_UNLOCK, *self._arguments)
