# SPDX-License-Identifier: Apache-2.0
"""A Redis that forgets, restarts or stands still under load: never two holders, losses are told, and it goes on."""

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.waiting import boot_now, stays, until
from support.workers import Workers

MAX_LEASE = 2.0


@pytest.fixture
def daemon(redis_server):
    with Daemon(redis_server.url, "--no-grace", f"--max-lease={MAX_LEASE:.0f}s") as running:
        yield running


@pytest.fixture
def workers(daemon):
    crowd = Workers(daemon.address)
    try:
        until(lambda: crowd.witness.grants > 20, 10, "the workers work")
        yield crowd
    finally:
        crowd.stop()


@pytest.fixture
def bystander(daemon):
    """A session whose hold nobody touches, so that it stands when something breaks."""
    with RawSession(daemon.address, ttl=3, lease=1) as session:
        yield session, session.acquire("bystander")


def goes_on(workers, since, within):
    until(lambda: len(workers.grants_after(since)) > 10, within, "grants go on")


def flush(server):
    server.client.flushall()


def restart(server):
    server.restart()


def delete_all_but_the_marker(server):
    keys = [k for k in server.client.keys("*") if not k.endswith(b"#state")]
    server.client.delete(*keys)


@pytest.mark.parametrize("forget", [flush, restart])
def test_what_redis_forgets_is_told_lost_and_waits_out_a_grace(
        redis_server, daemon, client, workers, bystander, forget):
    session, hold = bystander
    broken = boot_now()
    forget(redis_server)
    forgotten = boot_now()
    assert session.wait_lost(hold, 2) == "STORE_LOST_IT"
    refused = until(lambda: try_once(client), 2, "grace is announced")
    assert refused == ("UNAVAILABLE", "GRACE_PERIOD") and 0 < refused.retry_after <= MAX_LEASE
    assert "grace period" in refused.message
    assert daemon.health() == "NOT_SERVING"
    goes_on(workers, forgotten + MAX_LEASE * 0.9, MAX_LEASE + 3)
    early = [at for at in workers.granted_at if forgotten + 0.05 < at < broken + MAX_LEASE - 0.05]
    assert early == [], "nothing is granted in grace"
    daemon.wait_serving(2)
    daemon.log.wait_for("grace period", 1)
    workers.stop()
    workers.check()


def try_once(client):
    """GRACE_PERIOD's refusal, or None where the daemon does not say that yet."""
    try:
        client.try_acquire("try")
    except Refused as refused:
        return refused if refused.reason == "GRACE_PERIOD" else None
    return None


def test_keys_deleted_from_outside_are_told_lost(redis_server, client, workers, bystander):
    session, hold = bystander
    redis_server.client.delete("holdfast:default:bystander")
    assert session.wait_lost(hold, 2) == "STORE_LOST_IT"
    assert client.acquire("bystander").fencing_token > hold.token
    goes_on(workers, boot_now(), 3)
    workers.stop()
    workers.check()


def test_forgotten_scripts_are_loaded_again_and_nobody_notices(redis_server, workers, bystander):
    session, hold = bystander
    since = boot_now()
    for _ in range(8):
        redis_server.client.script_flush()
        goes_on(workers, boot_now(), 3)
    assert hold.is_valid() and not hold.lost
    workers.stop()
    workers.check()
    assert [r for at, r in workers.refusals if at > since] == []


def test_killed_connections_come_back_and_holds_live_on(redis_server, workers, bystander):
    session, hold = bystander
    for _ in range(6):
        redis_server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        redis_server.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        goes_on(workers, boot_now(), 5)
    assert hold.is_valid() and not hold.lost
    workers.stop()
    workers.check()


def debug_sleep(server):
    server.client.execute_command("DEBUG", "SLEEP", "0.8")


def stopped(server):
    since = boot_now()
    server.stop()
    stays(lambda: True, 0.8, "Redis stands still")
    server.go_on()
    assert boot_now() - since < 1.5


@pytest.mark.parametrize("stand_still", [debug_sleep, stopped])
def test_a_redis_that_stands_still_never_leads_to_two_holders(redis_server, client, workers, bystander, stand_still):
    for _ in range(2):
        stand_still(redis_server)
        goes_on(workers, boot_now(), 5)
    workers.stop()
    workers.check()
    client.wait_free("a", 3)


def test_a_redis_that_stands_still_for_longer_than_a_lease_loses_holds_by_their_own_clock_first(
        redis_server, client, bystander):
    session, hold = bystander
    redis_server.stop()
    until(lambda: not hold.is_valid(), 3, "the holder doubts")
    assert session.wait_lost(hold, 2) == "LEASE_EXPIRED"
    redis_server.go_on()
    assert client.acquire("bystander", wait=10).fencing_token > hold.token


def test_an_unreachable_redis_is_said_and_comes_back(redis_server, daemon, client):
    redis_server.kill()
    asked = boot_now()
    with pytest.raises(Refused) as refused:
        client.try_acquire("k", wait=1)
    assert refused.value == ("UNAVAILABLE", "STORE_UNREACHABLE")
    assert boot_now() - asked < 2.5
    until(lambda: daemon.health() == "NOT_SERVING", 2, "health says so")
    daemon.log.wait_for("cannot be reached", 2)
    redis_server.start()
    daemon.wait_serving(10)
    client.acquire("k")


def test_waiters_outwait_a_grace_period(redis_server, client, bystander):
    session, _ = bystander
    waiting = [session.begin_acquire(f"k{n}", wait=20) for n in range(5)]
    for one in waiting:
        assert outcome(one.result(5)) == "ACQUIRED"
    redis_server.client.flushall()
    broken = boot_now()
    later = [session.begin_acquire(f"later{n}", wait=20) for n in range(5)]
    for one in later:
        assert outcome(one.result(10)) == "ACQUIRED"
    assert MAX_LEASE - 0.2 < boot_now() - broken < MAX_LEASE + 1.5
