# SPDX-License-Identifier: Apache-2.0
"""The first start on a Redis, and what a daemon says that may not grant yet."""

import time

import pytest

from support.daemon import Daemon
from support.redis_server import RedisServer
from support.requests import Refused
from support.unary_client import UnaryClient
from support.waiting import boot_now, boot_to, until


def test_no_grace_grants_at_once_on_a_new_redis(redis_server):
    started = boot_now()
    with Daemon(redis_server.url, "--no-grace") as daemon, UnaryClient(daemon.address) as client:
        client.acquire("k")
        assert boot_now() - started < 5


def test_without_it_the_wait_is_announced_with_its_length(redis_server):
    started = boot_now()
    with Daemon(redis_server.url, "--max-lease=3s", ready=False) as daemon, UnaryClient(daemon.address) as client:
        line = daemon.log.wait_for("grace period", 5)
        assert "--no-grace" in line and "s:" in line
        assert daemon.health() == "NOT_SERVING"
        with pytest.raises(Refused) as refused:
            client.try_acquire("k")
        assert refused.value == ("UNAVAILABLE", "GRACE_PERIOD")
        assert 0 < refused.value.retry_after <= 3
        client.acquire("k", wait=10)
        assert boot_now() - started < 5
        daemon.wait_serving(2)


def test_a_grace_on_a_young_redis_counts_from_its_start_however_its_seconds_fall(folder):
    # Redis counts its uptime in ticks of its clock's second: one that started just before a tick claims a second.
    boot_to(boot_now() + (1.75 - time.time() % 1) % 1)
    started = boot_now()
    with RedisServer(folder) as server:
        until(lambda: server.client.info("server")["uptime_in_seconds"] >= 1, 3, "the tick")
        with Daemon(server.url, "--max-lease=3s", ready=False) as daemon, UnaryClient(daemon.address) as client:
            client.acquire("k", wait=10)
            assert boot_now() - started > 3


def test_a_second_daemon_on_the_same_redis_needs_no_grace_and_excludes(redis_server):
    with Daemon(redis_server.url, "--no-grace") as one, UnaryClient(one.address) as first:
        held = first.acquire("k")
        with Daemon(redis_server.url, ready=False) as two, UnaryClient(two.address) as second:
            two.wait_serving(3)
            waiting = second.begin_acquire("k", wait=20)
            second.wait_queue("k", 1)
            freed = boot_now()
            first.release(held)
            assert waiting.result(10).grant.fencing_token > held.fencing_token
            assert boot_now() - freed < 1, "it was woken, not left to a retry"


def test_a_redis_with_newer_data_is_refused(redis_server):
    redis_server.client.hset("holdfast:#state", "format", 999)
    with Daemon(redis_server.url, "--no-grace", ready=False) as daemon, UnaryClient(daemon.address) as client:
        daemon.log.wait_for("newer", 5)
        assert daemon.health() == "NOT_SERVING"
        with pytest.raises(Refused) as refused:
            client.try_acquire("k")
        assert refused.value.code == "UNAVAILABLE"


def test_an_unreachable_redis_at_the_start_is_waited_for(folder):
    with Daemon(f"redis+unix://{folder}/nobody.sock", ready=False) as daemon:
        daemon.log.wait_for("cannot be reached", 5)
        assert daemon.health() == "NOT_SERVING"


def test_a_million_keys_used_once_leave_nothing_behind(redis_server):
    # A thousand stand for them: what is left does not depend on how many there were.
    with Daemon(redis_server.url, "--no-grace") as daemon, UnaryClient(daemon.address) as client:
        for number in range(1000):
            client.release(client.acquire(f"once/{number}"))
        assert redis_server.client.keys("*") == [b"holdfast:#state"]
