# SPDX-License-Identifier: Apache-2.0
"""What lies in Redis is plain to see, and excludes programs that use the common layout directly."""

import threading

import pytest
from holdfast.v1 import types_pb2

from support.daemon import Daemon
from support.plain_lock import PlainLock
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import boot_now
from support.witness import FencedResource

OWNER = "an-owner-that-nobody-guesses"


@pytest.fixture(params=["holdfast:", ""], ids=["prefix", "no prefix"])
def prefix(request):
    return request.param


@pytest.fixture
def daemon(redis_server, prefix):
    with Daemon(redis_server.url, "--no-grace", f"--redis-prefix={prefix}") as running:
        yield running


@pytest.fixture
def name(prefix):
    """Where a key of the default namespace lies."""
    return lambda key: f"{prefix}default:{key}" if prefix else key


def test_a_lock_is_a_hash_of_owner_to_count_that_expires(redis_server, client, name):
    client.acquire("k", owner=OWNER, lease=20)
    client.acquire("k", owner=OWNER, lease=20)
    fields = redis_server.client.hgetall(name("k"))
    assert fields[OWNER.encode()] == b"2"
    assert all(f == OWNER.encode() or f.startswith(b"#") for f in fields)
    assert 19_000 < redis_server.client.pttl(name("k")) <= 20_000
    assert int(fields[b"#t"]) == client.inspect("k").fencing_token


@pytest.mark.parametrize("how", [dict(mode=types_pb2.MODE_SHARED), dict(mode=types_pb2.MODE_PERMIT, limit=3)],
                         ids=["readers", "permits"])
def test_a_plain_program_is_kept_out_while_anybody_holds_in_any_mode(redis_server, client, name, how):
    plain = PlainLock(redis_server.client, name("k"))
    held = [client.acquire("k", **how) for _ in range(2)]
    for grant in held:
        assert plain.take() > 0
        client.release(grant)
    assert plain.take() == -1
    assert outcome(client.try_acquire("k", **how)) == "BUSY"
    assert plain.give_back() == 0
    client.acquire("k", **how)


def test_a_plain_program_and_a_client_exclude_each_other(redis_server, client, name):
    plain = PlainLock(redis_server.client, name("k"))
    held = client.acquire("k")
    assert plain.take() > 0
    client.release(held)
    assert plain.take() == -1 and plain.take() == -1
    answer = client.try_acquire("k")
    assert outcome(answer) == "BUSY" and answer.holders[0].foreign
    state = client.inspect("k")
    assert not state.free and state.holders[0].foreign and state.holders[0].hold_count == 2
    assert plain.give_back() == 1
    assert outcome(client.try_acquire("k")) == "BUSY"
    assert plain.give_back() == 0
    again = client.acquire("k")
    assert again.fencing_token > held.fencing_token


def test_a_plain_program_s_expiry_lets_waiters_in(redis_server, client, name):
    asked = boot_now()
    assert PlainLock(redis_server.client, name("k"), lease_ms=700).take() == -1
    client.acquire("k", wait=10)
    assert 0.65 < boot_now() - asked < 1.5


def test_nobody_releases_or_renews_a_plain_program_s_lock(redis_server, client, name):
    plain = PlainLock(redis_server.client, name("k"))
    held = client.acquire("k")
    client.release(held)
    plain.take()
    for action in (client.release, client.renew):
        with pytest.raises(Refused) as refused:
            action(held)
        assert refused.value.code == "FAILED_PRECONDITION"
    assert plain.give_back() == 0


def test_plain_programs_and_clients_never_overlap(redis_server, client, daemon, name):
    resource, errors = FencedResource(), []
    number = iter(range(1, 1_000_000))
    until = boot_now() + 2

    def inside():
        # Plain programs have no tokens: only overlaps count here.
        turn = next(number)
        resource.enter(turn)
        resource.leave(turn)

    def plain(which):
        lock = PlainLock(redis_server.client, name("k"), owner=f"plain:{which}")
        pause = threading.Event()
        while boot_now() < until:
            if lock.take() == -1:
                inside()
                lock.give_back()
            pause.wait(0.001)

    def ours():
        with UnaryClient(daemon.address) as mine:
            while boot_now() < until:
                answer = mine.try_acquire("k", wait=0.5, lease=20)
                if outcome(answer) == "ACQUIRED":
                    inside()
                    mine.release(answer.grant)

    def noting(work, *arguments):
        try:
            work(*arguments)
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=noting, args=(plain, n)) for n in range(3)]
    threads += [threading.Thread(target=noting, args=(ours,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == [] and resource.faults == [] and resource.writes > 20


@pytest.mark.parametrize("kind", ["string", "list", "set", "other hash"])
def test_what_is_no_lock_is_refused_and_not_touched(redis_server, client, name, kind):
    redis = redis_server.client
    if kind == "string":
        redis.set(name("k"), "precious")
    elif kind == "list":
        redis.rpush(name("k"), "precious")
    elif kind == "set":
        redis.sadd(name("k"), "precious")
    else:
        redis.hset(name("k"), mapping={"first": "precious", "second": "words"})
    before = redis.dump(name("k"))
    with pytest.raises(Refused) as refused:
        client.try_acquire("k", wait=1)
    assert refused.value == ("FAILED_PRECONDITION", "WRONG_TYPE") and refused.value.field == "key"
    assert redis.dump(name("k")) == before and redis.pttl(name("k")) == -1
    assert outcome(client.try_acquire("other")) == "ACQUIRED"
