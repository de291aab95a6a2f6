# SPDX-License-Identifier: Apache-2.0
"""Holders that die, hang or fall silent: nothing stays locked, and nobody who wakes up late believes that they hold."""

import pytest

from support.daemon import Daemon
from support.holder_process import HolderProcess
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import boot_now, stays

TTL = 2.0


def test_a_killed_holder_frees_its_key_at_once(daemon, open_session):
    with HolderProcess(daemon.address, "k", lease=30) as holder:
        holder.wait_said("believes")
        waiting = open_session().begin_acquire("k", wait=20)
        killed = boot_now()
        holder.kill()
        assert outcome(waiting.result(5)) == "ACQUIRED"
        assert boot_now() - killed < 1


def test_behind_a_proxy_a_closed_connection_proves_nothing(memory):
    with Daemon(memory, "--behind-proxy") as daemon, UnaryClient(daemon.address) as client:
        with HolderProcess(daemon.address, "k", ttl=TTL, lease=30) as holder:
            holder.wait_said("believes")
            killed = boot_now()
            holder.kill()
            # Its last ping came up to ttl/3 before that.
            stays(lambda: not client.inspect("k").free, TTL * 2 / 3 - 0.1, "the ttl is waited for")
            client.wait_free("k", killed + TTL + 1 - boot_now())
        with RawSession(daemon.address, ttl=30) as session:
            session.acquire("other")
            session.half_close()  # that is the client's word
            client.wait_free("other", 1)


def test_a_killed_waiter_is_out_of_the_line(daemon, client, open_session):
    holder = open_session()
    hold = holder.acquire("k")
    with HolderProcess(daemon.address, "k", wait=30) as waiter:
        client.wait_queue("k", 1)
        waiter.kill()
        client.wait_queue("k", 0)
    holder.release(hold)
    assert client.inspect("k").free


def test_a_stopped_holder_keeps_its_key_for_its_ttl_and_doubts_when_it_wakes(daemon, open_session):
    with HolderProcess(daemon.address, "k", ttl=TTL, lease=30) as holder:
        holder.wait_said("believes")
        waiting = open_session().begin_acquire("k", wait=20)
        holder.stop()
        stopped, said_before = boot_now(), len(holder.said())
        assert outcome(waiting.result(TTL + 3)) == "ACQUIRED"
        granted = boot_now()
        # The last ping came up to ttl/3 before the stop.
        assert granted - stopped > TTL * 2 / 3 - 0.1
        holder.tell("release")
        holder.go_on()
        holder.wait_said("ended")
        said = holder.said()[said_before:]
    assert [s for s in said if s["what"] == "believes"] == []
    doubts = next(s for s in said if s["what"] == "doubts")
    assert doubts["last_valid"] < granted
    assert [s for s in said if s["what"] == "released"] == []
    heard = [s["event"] for s in said if s["what"] == "heard" and s["event"] != "contended"]
    assert heard[0] == "lost", heard
    assert "SESSION_EXPIRED" in said[-1]["status"]


def test_a_stopped_waiter_does_not_believe_the_grant_that_it_slept_through(daemon, client, open_session):
    holder = open_session()
    hold = holder.acquire("k")
    with HolderProcess(daemon.address, "k", ttl=TTL, lease=30, wait=30) as waiter:
        client.wait_queue("k", 1)
        waiter.stop()
        holder.release(hold)
        waiting = holder.begin_acquire("k", wait=20)
        assert outcome(waiting.result(TTL + 3)) == "ACQUIRED"
        waiter.go_on()
        waiter.wait_said("ended")
        assert [s for s in waiter.said() if s["what"] == "believes"] == []


def test_a_session_that_stops_pinging_ends_after_its_ttl_and_not_before(client, open_session):
    session = open_session(ttl=TTL, pings=False, lease=30)
    hold = session.acquire("k")
    before = boot_now()
    session.ping()
    stays(lambda: not client.inspect("k").free, before + TTL - 0.02 - boot_now(), "the session's hold")
    assert session.wait_lost(hold, 2) == "SESSION_CLOSED"
    assert session.ended.result(2) == ("ABORTED", "SESSION_EXPIRED")
    assert boot_now() >= before + TTL
    client.wait_free("k", 1)
    assert hold.valid_until < before + TTL


def test_a_silent_session_is_told_lost_before_its_key_is_granted_on(client, open_session):
    session = open_session(ttl=TTL, pings=False)
    hold = session.acquire("k")
    other = client.acquire("k", wait=10)
    assert not hold.is_valid()
    assert session.wait_lost(hold, 1) == "SESSION_CLOSED"
    assert other.fencing_token > hold.token


def test_a_half_closed_or_cancelled_stream_gives_back_at_once(client, open_session):
    for end in (RawSession.half_close, RawSession.break_off):
        session = open_session(lease=30)
        session.acquire("k")
        end(session)
        client.wait_free("k", 1)


def test_a_session_without_ttl_lives_as_long_as_its_stream(client, open_session):
    session = open_session(ttl=0, pings=False)
    assert any("ttl" in warning for warning in session.opened.warnings)
    session.acquire("k", lease=0.5)
    stays(lambda: not client.inspect("k").free, 1.5, "a hold that is renewed without pings")
    session.break_off()
    client.wait_free("k", 1)


@pytest.mark.parametrize("kind", ["session", "bare lease"])
def test_a_killed_daemon_leaves_nothing_locked_for_longer_than_a_lease(store, folder, kind):
    lease = 1.5
    with Daemon(store, "--no-grace", listen=f"unix://{folder}/holdfast.sock") as daemon:
        with UnaryClient(daemon.address) as client, RawSession(daemon.address, lease=lease) as session:
            if kind == "session":
                token = session.acquire("k").token
            else:
                token = client.acquire("k", lease=lease).fencing_token
            killed = boot_now()
            daemon.restart()
        with UnaryClient(daemon.address) as client:
            grant = client.acquire("k", wait=10)
            assert boot_now() - killed < lease + 1
            assert grant.fencing_token > token


def test_tokens_grow_over_kills_also_when_everything_was_free(store, folder):
    tokens = []
    with Daemon(store, "--no-grace", listen=f"unix://{folder}/holdfast.sock") as daemon:
        for _ in range(3):
            with UnaryClient(daemon.address) as client:
                for _ in range(3):
                    grant = client.acquire("k")
                    tokens.append(grant.fencing_token)
                    client.release(grant)
            daemon.restart()
    assert tokens == sorted(set(tokens))


def test_a_session_of_a_killed_daemon_does_not_believe_past_its_own_limits(memory, folder):
    with Daemon(memory, listen=f"unix://{folder}/holdfast.sock") as daemon:
        with RawSession(daemon.address, ttl=TTL, lease=1) as session:
            hold = session.acquire("k")
            daemon.kill()
            assert session.ended.result(5) == ("UNAVAILABLE", "UNSPECIFIED")
            daemon.start(ready=False)
            with UnaryClient(daemon.address) as client:
                client.acquire("k", wait=10)
                assert not hold.is_valid()


def test_a_release_over_a_new_connection_finds_its_hold_in_the_store(store, folder):
    with Daemon(store, "--no-grace", listen=f"unix://{folder}/holdfast.sock") as daemon:
        with UnaryClient(daemon.address) as client:
            grant = client.acquire("k", lease=30)
        daemon.restart()
        with UnaryClient(daemon.address) as client:
            assert not client.inspect("k").free
            assert client.release(grant) == 0
            assert client.inspect("k").free
            with pytest.raises(Refused) as refused:
                client.release(grant)
            assert refused.value == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
