# SPDX-License-Identifier: Apache-2.0
"""Many keys that are all wanted twice: everybody's turn comes, and nothing is left behind afterwards."""

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.waiting import until

KEYS = 10_000
# What an allocator keeps of one such round, and a margin; a leak of one record a key would be more with each round.
RSS_GROWTH_KB = 4_000


@pytest.fixture
def daemons(redis_server):
    running = [Daemon(redis_server.url, "--no-grace") for _ in range(2)]
    yield running
    for daemon in running:
        daemon.close()


def rss_kb(daemon):
    with open(f"/proc/{daemon.program.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def release_all(session, grants):
    with session.batched():
        given = [session.begin_release(session.holds[grant.hold_id]) for grant in grants]
    for future in given:
        future.result(60)


def ask_for_all(session, **fields):
    with session.batched():
        return [session.begin_acquire(f"k{n}", **fields) for n in range(KEYS)]


def contend(redis_server, sessions):
    """The first has all keys, and the second waits for all of them until it gives them back."""
    first, second = sessions
    held = [future.result(60).grant for future in ask_for_all(first)]
    waiting = ask_for_all(second, wait=120)
    until(lambda: len(redis_server.client.pubsub_channels()) == KEYS, 60, "it waits for all")
    release_all(first, held)
    grants = [future.result(60).grant for future in waiting]
    assert len({grant.key for grant in grants}) == KEYS
    release_all(second, grants)


def test_ten_thousand_contended_keys_leave_nothing_behind(redis_server, daemons):
    sizes = []
    with RawSession(daemons[0].address, pings=False, ttl=170) as first, RawSession(daemons[1].address, pings=False, ttl=170) as second:
        for _ in range(3):
            contend(redis_server, (first, second))
            until(lambda: not redis_server.client.pubsub_channels(), 10, "nobody listens any more")
            left = {name.decode() for name in redis_server.client.keys("*")}
            assert left <= {"holdfast:#state", "holdfast:#alive"}
            sizes.append([rss_kb(daemon) for daemon in daemons])
    for before, after in zip(sizes[1], sizes[2]):
        assert after - before < RSS_GROWTH_KB, f"resident KB after each round: {sizes}"
