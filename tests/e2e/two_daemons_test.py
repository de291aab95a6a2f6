# SPDX-License-Identifier: Apache-2.0
"""Several daemons on one Redis: they share one line for each key."""

import threading

import pytest

from holdfast.v1 import types_pb2
from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import boot_now, until
from support.witness import Witness

FIFO = types_pb2.ORDERING_FIFO
LINE = "holdfast:#line:default:k"


@pytest.fixture
def daemons(redis_server):
    """Three of them."""
    running = [Daemon(redis_server.url, "--no-grace") for _ in range(3)]
    yield running
    for daemon in running:
        daemon.close()


@pytest.fixture
def sessions(daemons):
    """One on each."""
    opened = [RawSession(daemon.address) for daemon in daemons]
    yield opened
    for session in opened:
        session.close()


def stand_in_line(redis_server, length):
    until(lambda: redis_server.client.zcard(LINE) == length, 5, f"{length} stand in line")


def script_calls(redis_server):
    return redis_server.client.info("commandstats")["cmdstat_evalsha"]["calls"]


def test_fifo_is_the_order_of_arrival_at_whichever_daemon(redis_server, sessions):
    hold = sessions[0].acquire("k")
    waiting = []
    for n in range(12):
        waiting.append(sessions[n % 3].begin_acquire("k", wait=20, ordering=FIFO))
        stand_in_line(redis_server, n + 1)
    sessions[0].release(hold)
    tokens = []
    for n, future in enumerate(waiting):
        response = future.result(5)
        assert outcome(response) == "ACQUIRED"
        assert not any(later.done() for later in waiting[n + 1:])
        tokens.append(response.grant.fencing_token)
        sessions[n % 3].release(sessions[n % 3].holds[response.grant.hold_id])
    assert tokens == sorted(set(tokens))


def test_a_fifo_request_on_a_free_key_lets_those_before_it_go_first(redis_server, sessions):
    hold = sessions[0].acquire("k")
    first = sessions[1].begin_acquire("k", wait=20, ordering=FIFO)
    stand_in_line(redis_server, 1)
    second = sessions[0].begin_acquire("k", wait=20, ordering=FIFO)
    stand_in_line(redis_server, 2)
    sessions[0].release(hold)
    grant = first.result(5).grant
    assert not second.done()
    sessions[1].release(sessions[1].holds[grant.hold_id])
    assert outcome(second.result(5)) == "ACQUIRED"


@pytest.mark.parametrize("ordering", [types_pb2.ORDERING_BARGING, FIFO])
def test_clients_of_three_daemons_never_overlap_and_all_have_their_turns(redis_server, daemons, ordering):
    witness, errors, turns = Witness(), [], [0] * 12
    end = boot_now() + 4

    def work(number):
        try:
            with RawSession(daemons[number % 3].address) as session:
                while boot_now() < end:
                    hold = session.acquire("k", wait=30, ordering=ordering)
                    witness.granted(hold)
                    session.release(hold)
                    turns[number] += 1
        except Exception as error:
            errors.append(f"client {number}: {error!r}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == [] and witness.faults == []
    assert min(turns) > 0, f"somebody never had a turn: {turns}"
    if ordering == FIFO:  # how even it is when nobody is slow to ask again, the benchmark prints
        assert max(turns) <= 2 * min(turns) + 1, turns
    until(lambda: not redis_server.client.exists(LINE), 5, "nothing is left of the line")


def test_a_hundred_waiters_of_a_dead_daemon_cost_less_than_a_second(redis_server, daemons, sessions):
    hold = sessions[0].acquire("k")
    for n in range(100):
        sessions[1].begin_acquire("k", wait=60, ordering=FIFO)
    stand_in_line(redis_server, 100)
    last = sessions[2].begin_acquire("k", wait=60, ordering=FIFO)
    stand_in_line(redis_server, 101)
    daemons[1].kill()
    released = boot_now()
    sessions[0].release(hold)
    assert outcome(last.result(5)) == "ACQUIRED"
    assert boot_now() - released < 1


@pytest.mark.parametrize("ordering", [types_pb2.ORDERING_BARGING, FIFO])
def test_a_key_handed_to_a_waiter_that_gave_up_goes_on_at_once(redis_server, sessions, ordering):
    for _ in range(50):
        hold = sessions[0].acquire("k", wait=5)
        gives_up = sessions[1].begin_acquire("k", wait=20, ordering=ordering)
        stand_in_line(redis_server, 1)
        stays = sessions[2].begin_acquire("k", wait=20, ordering=ordering)
        stand_in_line(redis_server, 2)
        released = boot_now()
        future = sessions[0].begin_release(hold)
        sessions[1].cancel(gives_up)
        try:  # where the grant came first, it is the client's to give back
            hold = sessions[1].holds[gives_up.result(5).grant.hold_id]
            released = boot_now()
            sessions[1].release(hold)
        except Refused:
            pass
        grant = stays.result(5).grant
        assert boot_now() - released < 0.25
        future.result(5)
        sessions[2].release(sessions[2].holds[grant.hold_id])


def test_a_session_that_ends_leaves_no_place_behind(redis_server, daemons, sessions):
    hold = sessions[0].acquire("k")
    with RawSession(daemons[1].address) as leaves:
        leaves.begin_acquire("k", wait=20)
        stand_in_line(redis_server, 1)
        for _ in range(10):
            leaves.begin_acquire("k", wait=20, ordering=FIFO)
        stand_in_line(redis_server, 11)
    stand_in_line(redis_server, 0)
    last = sessions[2].begin_acquire("k", wait=20)
    stand_in_line(redis_server, 1)
    sessions[0].release(hold)
    assert outcome(last.result(1)) == "ACQUIRED"


def test_who_waits_is_shown_in_order_at_whichever_daemon(redis_server, daemons, sessions):
    sessions[0].acquire("k")
    for n, note in ((1, "first"), (2, "second"), (1, "third")):
        sessions[n].begin_acquire("k", wait=20, ordering=FIFO, note=note)
        until(lambda: note in [w.note for w in inspect(daemons[n]).waiters], 5, "it stands in line")
    waiters = inspect(daemons[1]).waiters
    assert [w.note for w in waiters] == ["first", "", "third"]
    assert [bool(w.daemon) for w in waiters] == [False, True, False]
    assert all(w.ordering == FIFO for w in waiters) and waiters[0].owner_fingerprint
    assert [w.note for w in inspect(daemons[2]).waiters] == ["", "second", ""]
    assert [bool(w.daemon) for w in inspect(daemons[0]).waiters] == [True, True, True]
    assert inspect(daemons[0]).queue_length == 3


def inspect(daemon):
    with UnaryClient(daemon.address) as client:
        return client.inspect("k")


def test_a_waiting_writer_is_not_starved_by_readers_of_other_daemons(redis_server, sessions):
    reader = sessions[0].acquire("k", mode=types_pb2.MODE_SHARED)
    writer = sessions[1].begin_acquire("k", wait=20)
    stand_in_line(redis_server, 1)
    late = sessions[2].begin_acquire("k", wait=20, mode=types_pb2.MODE_SHARED)
    stand_in_line(redis_server, 2)
    sessions[0].release(reader)
    grant = writer.result(5).grant
    assert not late.done()
    sessions[1].release(sessions[1].holds[grant.hold_id])
    assert outcome(late.result(5)) == "ACQUIRED"


def test_a_writer_that_gives_up_lets_the_readers_of_other_daemons_in(redis_server, sessions):
    sessions[0].acquire("k", mode=types_pb2.MODE_SHARED)
    writer = sessions[1].begin_acquire("k", wait=20)
    stand_in_line(redis_server, 1)
    late = sessions[2].begin_acquire("k", wait=20, mode=types_pb2.MODE_SHARED)
    stand_in_line(redis_server, 2)
    sessions[1].cancel(writer)
    assert outcome(late.result(1)) == "ACQUIRED"


def test_readers_of_all_daemons_begin_together(redis_server, sessions):
    hold = sessions[0].acquire("k")
    readers = [session.begin_acquire("k", wait=20, mode=types_pb2.MODE_SHARED) for session in sessions for _ in range(5)]
    stand_in_line(redis_server, 2)  # those of the first daemon need no place behind its own hold
    sessions[0].release(hold)
    tokens = {future.result(1).grant.fencing_token for future in readers}
    assert len(tokens) == 1


def test_the_release_of_a_key_with_a_thousand_waiters_wakes_one_of_them(redis_server, sessions):
    hold = sessions[0].acquire("k")
    waiting = [sessions[1 + n % 2].begin_acquire("k", wait=60) for n in range(1000)]
    stand_in_line(redis_server, 2)
    until(lambda: sum(redis_server.client.pubsub_numsub("holdfast:#free:default:k")[0][1:]) == 2, 5, "both listen")
    before = script_calls(redis_server)
    sessions[0].release(hold)
    until(lambda: any(future.done() for future in waiting), 5, "one is granted")
    assert sum(future.done() for future in waiting) == 1
    assert script_calls(redis_server) - before <= 5


def test_nothing_is_left_when_nobody_waits_any_more(redis_server, sessions):
    for n in range(200):
        hold = sessions[0].acquire(f"key-{n}")
        waiting = {session.begin_acquire(f"key-{n}", wait=20): session for session in sessions[1:]}
        sessions[0].release(hold)
        while waiting:
            granted = until(lambda: [f for f in waiting if f.done()], 5, "one is granted")[0]
            session = waiting.pop(granted)
            session.release(session.holds[granted.result().grant.hold_id])
    left = {name.decode() for name in redis_server.client.keys("*")}
    assert left <= {"holdfast:#state", "holdfast:#alive"}
    until(lambda: not redis_server.client.pubsub_channels(), 5, "nobody listens any more")
