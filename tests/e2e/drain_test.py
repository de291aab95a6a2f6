# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: the daemon takes no new work, lets holders finish, and goes."""

import signal

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, seconds
from support.unary_client import UnaryClient
from support.waiting import boot_now, stays


def test_an_idle_daemon_goes_at_once_with_exit_code_0(daemon):
    assert daemon.health("") == "SERVING"
    asked = boot_now()
    daemon.program.signal(signal.SIGTERM)
    assert daemon.program.wait(5) == 0
    assert boot_now() - asked < 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_draining_daemon_waits_for_its_holders_and_takes_nobody_new(daemon, client, open_session, number):
    session, other = open_session(), open_session()
    hold = session.acquire("k")
    waiting = other.begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    daemon.program.signal(number)
    for told in (session, other):
        assert seconds(told.draining.result(5).limit) == 10
    for acquire in (lambda: waiting.result(5), lambda: client.try_acquire("new"), lambda: other.try_acquire("new")):
        with pytest.raises(Refused) as refused:
            acquire()
        assert refused.value == ("UNAVAILABLE", "DRAINING")
    assert daemon.health("") == daemon.health() == "NOT_SERVING"
    stays(lambda: daemon.program.process.poll() is None and hold.is_valid(), 0.5, "the holder's work")
    session.ping()
    assert session.release(hold) == 0
    assert daemon.program.wait(5) == 0
    for told in (session, other):
        assert told.ended.result(5) == ("UNAVAILABLE", "DRAINING")


def test_what_is_still_held_at_the_limit_is_lost_and_told(memory, folder):
    with Daemon(memory, "--drain-limit=1s") as daemon, UnaryClient(daemon.address) as client:
        with RawSession(daemon.address) as session:
            hold = session.acquire("k")
            bare = client.acquire("bare")
            daemon.program.signal(signal.SIGTERM)
            asked = boot_now()
            assert session.wait_lost(hold, 3) == "DRAINED"
            assert 0.8 < boot_now() - asked < 1.5
            assert daemon.program.wait(5) == 0
        daemon.start()
        with UnaryClient(daemon.address) as again:
            assert again.inspect("k").free, "the holder had acknowledged"
            assert not again.inspect("bare").free, "a bare lease outlives the daemon"
            assert again.release(bare) == 0


def test_a_second_signal_ends_it_at_once(daemon, open_session):
    session = open_session()
    session.acquire("k")
    daemon.program.signal(signal.SIGTERM)
    session.draining.result(5)
    asked = boot_now()
    daemon.program.signal(signal.SIGTERM)
    assert daemon.program.wait(5) == 128 + signal.SIGTERM
    assert boot_now() - asked < 1


def test_a_new_session_is_refused_while_draining(daemon, open_session):
    holder = open_session()
    holder.acquire("k")
    daemon.program.signal(signal.SIGTERM)
    holder.draining.result(5)  # the log speaks a moment before the engine has heard
    with pytest.raises(Refused) as refused:
        open_session()
    assert refused.value == ("UNAVAILABLE", "DRAINING")


def test_holds_are_renewed_while_draining(daemon, open_session):
    session = open_session(lease=1)
    hold = session.acquire("k")
    daemon.program.signal(signal.SIGTERM)
    session.draining.result(5)
    stays(hold.is_valid, 2, "a hold that the watchdog renews")
    assert session.renew(hold).HasField("lease")
    session.release(hold)
    assert daemon.program.wait(5) == 0
