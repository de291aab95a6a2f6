# SPDX-License-Identifier: Apache-2.0
"""Answers that get lost, between Redis and daemon and between daemon and client, in every mode: nothing is counted
twice, nothing is given back twice, and nothing is left behind."""

import pytest

from holdfast.v1 import types_pb2
from support.daemon import Daemon
from support.lossy_proxy import LossyProxy
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import until

OWNER = "owner-of-this-test-1"
KEY = "holdfast:default:k"
MODES = {
    "exclusive": {},
    "shared": {"mode": types_pb2.MODE_SHARED},
    "permit": {"mode": types_pb2.MODE_PERMIT, "limit": 2},
}


@pytest.fixture(params=list(MODES))
def mode(request):
    return MODES[request.param]


@pytest.fixture
def to_redis(redis_server, folder):
    proxy = LossyProxy(f"{folder}/proxy.sock", redis_server.socket)
    yield proxy
    proxy.close()


@pytest.fixture
def daemon(to_redis, folder):
    with Daemon(f"redis+unix://{to_redis.path}", "--no-grace", listen=f"unix://{folder}/daemon.sock") as running:
        yield running


@pytest.fixture
def to_daemon(daemon, folder):
    proxy = LossyProxy(f"{folder}/to-daemon.sock", f"{folder}/daemon.sock")
    yield proxy
    proxy.close()


@pytest.fixture
def session(daemon):
    with RawSession(daemon.address) as opened:
        yield opened


@pytest.fixture
def counted(redis_server):
    """How often the owner holds the key, by Redis' word."""
    return lambda: int(redis_server.client.hget(KEY, OWNER) or 0)


def test_an_acquire_whose_answer_from_redis_was_lost_counts_once(to_redis, session, counted, mode):
    to_redis.lose_answers()
    asked = session.begin_acquire("k", owner=OWNER, wait=10, command_id="first", **mode)
    until(lambda: counted() == 1, 5, "Redis has granted it")
    to_redis.cut()
    grant = asked.result(10).grant
    assert grant.hold_count == 1 and counted() == 1
    again = session.try_acquire("k", owner=OWNER, wait=10, command_id="first", **mode).grant
    assert (again.hold_id, again.fencing_token) == (grant.hold_id, grant.fencing_token) and counted() == 1
    assert session.release(session.holds[grant.hold_id]) == 0
    assert counted() == 0


def test_a_re_entry_whose_answer_from_redis_was_lost_counts_once(to_redis, session, counted, mode):
    hold = session.acquire("k", owner=OWNER, **mode)
    to_redis.lose_answers()
    asked = session.begin_acquire("k", owner=OWNER, wait=10, command_id="second", **mode)
    until(lambda: counted() == 2, 5, "Redis has counted it")
    to_redis.cut()
    assert asked.result(10).grant.hold_count == 2 and counted() == 2
    assert session.release(hold) == 1
    assert counted() == 1


def test_an_acquire_that_was_given_up_while_its_answer_was_lost_leaves_nothing(to_redis, session, counted, mode):
    to_redis.lose_answers()
    asked = session.begin_acquire("k", owner=OWNER, wait=10, command_id="first", **mode)
    until(lambda: counted() == 1, 5, "Redis has granted it")
    session.cancel(asked)
    with pytest.raises(Refused):
        asked.result(10)
    to_redis.cut()
    until(lambda: counted() == 0, 5, "it is undone")


def test_a_release_whose_answer_from_redis_was_lost_gives_back_once(to_redis, session, counted, mode):
    hold = session.acquire("k", owner=OWNER, **mode)
    session.acquire("k", owner=OWNER, **mode)
    to_redis.lose_answers()
    given = session.begin_release(hold, command_id="release")
    until(lambda: counted() == 1, 5, "Redis has taken it back")
    to_redis.cut()
    with pytest.raises(Refused) as unknown:
        given.result(10)
    assert unknown.value.code == "UNAVAILABLE"

    def retried():
        try:
            return session.begin_release(hold, command_id="release").result(10)
        except Refused:
            return None

    assert until(retried, 10, "the store is back").remaining_count == 1
    assert counted() == 1, "a re-entry is not given back by a retry"


def test_an_acquire_whose_answer_to_the_client_was_lost_is_found_again(daemon, to_daemon, counted, mode):
    with UnaryClient(f"unix://{to_daemon.path}") as client, UnaryClient(daemon.address) as other:
        client.inspect("k")
        to_daemon.lose_answers()
        asked = client.begin_acquire("k", owner=OWNER, wait=10, command_id="first", **mode)
        until(lambda: counted() == 1, 5, "it is granted")
        to_daemon.cut()
        assert asked.exception(10) is not None
        grant = other.try_acquire("k", owner=OWNER, wait=10, command_id="first", **mode).grant
        assert grant.hold_count == 1 and counted() == 1
        assert other.release(grant) == 0 and counted() == 0


def test_a_release_whose_answer_to_the_client_was_lost_gives_back_once(daemon, to_daemon, counted, mode):
    with UnaryClient(f"unix://{to_daemon.path}") as client, UnaryClient(daemon.address) as other:
        grant = client.acquire("k", owner=OWNER, **mode)
        other.acquire("k", owner=OWNER, **mode)
        to_daemon.lose_answers()
        given = client.begin_release(grant, command_id="release")
        until(lambda: counted() == 1, 5, "it is given back")
        to_daemon.cut()
        assert given.exception(10) is not None
        assert other.release(grant, command_id="release") == 1
        assert counted() == 1
