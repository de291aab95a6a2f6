# SPDX-License-Identifier: Apache-2.0
"""Waits that are given up at every moment around their grant: afterwards nobody holds."""

import random
import threading

import grpc
import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import boot_now, boot_to, until

ROUNDS = 200
SPREAD = 0.004  # seconds around the release


def offsets():
    """Moments before and after the release, in an order that is the same every time."""
    chance = random.Random(1)
    return [chance.uniform(-SPREAD, SPREAD) for _ in range(ROUNDS)]


def release_and(client, grant, offset, give_up):
    """Releases at one moment and gives the wait up `offset` seconds later or earlier."""
    at = boot_now() + SPREAD + 0.002

    def free():
        boot_to(at)
        client.release(grant)

    releasing = threading.Thread(target=free)
    releasing.start()
    boot_to(at + offset)
    give_up()
    releasing.join()


def take(waiting):
    """The grant that a call ended with, or None where it was given up."""
    try:
        response = waiting.result(10)
    except (grpc.FutureCancelledError, grpc.RpcError):
        return None
    return response.grant if outcome(response) == "ACQUIRED" else None


def give_up_by_cancel(client, key, held, offset, **fields):
    waiting = client.begin_acquire(key, wait=20, **fields)
    client.wait_queue(key, 1)
    release_and(client, held, offset, waiting.cancel)
    return take(waiting)


def give_up_by_deadline(client, key, held, offset, **fields):
    limit = 0.02
    asked = boot_now()
    waiting = client.begin_acquire(key, wait=20, timeout=limit, **fields)
    boot_to(asked + limit + offset)
    client.release(held)
    return take(waiting)


GIVE_UPS = pytest.mark.parametrize("give_up", [give_up_by_cancel, give_up_by_deadline])


@GIVE_UPS
def test_a_call_that_is_given_up_leaves_at_most_what_its_lease_allows(client, give_up):
    # An answer that has left the daemon cannot be called back; all else is undone at once.
    lease = 0.5
    won = 0
    for number, offset in enumerate(offsets()):
        grant = give_up(client, f"k{number}", client.acquire(f"k{number}"), offset, lease=lease)
        if grant:
            won += 1
            client.release(grant)
    for number in range(ROUNDS):
        client.wait_free(f"k{number}", lease + 0.5)
    assert 0 < won < ROUNDS, "the offsets miss the moment of the grant"


@GIVE_UPS
def test_a_call_that_was_given_up_can_be_asked_again_and_given_back(client, give_up):
    for number, offset in enumerate(offsets()):
        key, command = f"k{number}", f"c{number}"
        owner = f"the-owner-of-round-{number}"
        held = client.acquire(key)
        first = give_up(client, key, held, offset, owner=owner, command_id=command)
        grant = client.try_acquire(key, wait=20, owner=owner, command_id=command).grant
        assert first is None or first.hold_id == grant.hold_id
        assert grant.hold_count == 1
        assert client.release(grant) == 0
        assert client.inspect(key).free


def test_a_grant_of_the_store_that_crosses_its_cancellation_is_undone_at_once(redis_server):
    with Daemon(redis_server.url, "--no-grace") as daemon, UnaryClient(daemon.address) as client:
        with RawSession(daemon.address) as session, RawSession(daemon.address) as ending:
            calls = [client.begin_acquire("call", wait=20), client.begin_acquire("deadline", wait=20, timeout=0.2)]
            assert [outcome(call.result(5)) for call in calls] == ["ACQUIRED"] * 2
            for call in calls:
                client.release(call.result().grant)
            redis_server.stop()
            waiting = client.begin_acquire("call", wait=20)
            late = client.begin_acquire("deadline", wait=20, timeout=0.2)
            command = session.begin_acquire("command", wait=20)
            ending.begin_acquire("stream", wait=20)
            # The pong says that the daemon has worked off what was sent before it.
            pings = len(session.arrived)
            session.ping()
            until(lambda: len(session.arrived) > pings, 5, "a pong")
            boot_to(boot_now() + 0.1)  # a call of its own is on another stream: no event tells of it
            waiting.cancel()
            session.cancel(command)
            ending.break_off()
            with pytest.raises(Refused) as refused:
                command.result(5)
            assert refused.value == ("CANCELLED", "CANCELLED")
            with pytest.raises(grpc.RpcError):
                late.result(5)
            redis_server.go_on()
            for key in ("call", "deadline", "command", "stream"):
                client.wait_free(key, 1)


def test_a_cancelled_command_of_a_stream_never_ends_up_holding(client, open_session):
    session = open_session()
    won = 0
    for number, offset in enumerate(offsets()):
        key = f"k{number}"
        held = client.acquire(key)
        waiting = session.begin_acquire(key, wait=20)
        client.wait_queue(key, 1)
        release_and(client, held, offset, lambda: session.cancel(waiting))
        try:
            answer = waiting.result(10)
            assert outcome(answer) == "ACQUIRED"
            won += 1
            assert session.release(session.holds[answer.grant.hold_id]) == 0
        except Refused as refused:
            assert refused == ("CANCELLED", "CANCELLED")
        client.wait_free(key, 1)
    assert 0 < won < ROUNDS, "the offsets miss the moment of the grant"


def test_a_stream_that_ends_around_its_grant_never_ends_up_holding(client, open_session):
    for number, offset in enumerate(offsets()[:50]):
        key = f"k{number}"
        held = client.acquire(key)
        session = open_session()
        session.begin_acquire(key, wait=20)
        client.wait_queue(key, 1)
        release_and(client, held, offset, session.break_off)
        client.wait_free(key, 1)


def test_a_wait_that_runs_out_around_its_grant_is_answered_in_one_way(client, open_session):
    session = open_session()
    for number, offset in enumerate(offsets()[:100]):
        key = f"k{number}"
        held = client.acquire(key)
        wait = 0.02
        asked = boot_now()
        waiting = session.begin_acquire(key, wait=wait)
        boot_to(asked + wait + offset)
        client.release(held)
        answer = waiting.result(10)
        if outcome(answer) == "ACQUIRED":
            assert session.release(session.holds[answer.grant.hold_id]) == 0
        else:
            assert outcome(answer) == "WAIT_EXPIRED"
        client.wait_free(key, 1)


def test_no_wait_runs_past_the_time_that_the_caller_allowed(client, open_session):
    held = client.acquire("k")
    asked = boot_now()
    answer = open_session().try_acquire("k", wait=0.3)
    waited = boot_now() - asked
    assert outcome(answer) == "WAIT_EXPIRED" and 0.3 <= waited < 0.6
    assert len(answer.holders) == 1 and answer.queue_length == 0
    client.release(held)
    assert client.inspect("k").free


def test_a_cancelled_head_of_the_line_leaves_the_others_waiting(client, open_session):
    session = open_session()
    held = client.acquire("k")
    first = session.begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    second = session.begin_acquire("k", wait=20)
    client.wait_queue("k", 2)
    session.cancel(first)
    with pytest.raises(Refused):
        first.result(5)
    assert client.inspect("k").queue_length == 1 and not second.done()
    client.release(held)
    assert outcome(second.result(5)) == "ACQUIRED"


def test_cancelling_what_was_answered_does_nothing(client, open_session):
    session = open_session()
    done = session.begin_acquire("k")
    assert outcome(done.result(5)) == "ACQUIRED"
    session.cancel(done)
    other = session.begin_acquire("other")
    assert outcome(other.result(5)) == "ACQUIRED"
    assert not client.inspect("k").free
