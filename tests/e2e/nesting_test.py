# SPDX-License-Identifier: Apache-2.0
"""An owner who takes a key again, and owners who hold through more than one session."""

import pytest
from holdfast.v1 import types_pb2

from support.requests import Refused, outcome
from support.waiting import until

OWNER = "an-owner-that-nobody-guesses"


def test_an_owner_nests_to_three_and_back_under_one_token(client, open_session):
    session = open_session()
    first = session.acquire("k", owner=OWNER)
    token = first.token
    for count in (2, 3):
        again = session.acquire("k", owner=OWNER)
        assert (again.hold_id, again.token, again.count) == (first.hold_id, token, count)
    assert client.inspect("k").holders[0].hold_count == 3
    for remaining in (2, 1):
        assert session.release(first) == remaining
        assert outcome(client.try_acquire("k")) == "BUSY"
    assert session.release(first) == 0
    assert client.inspect("k").free
    assert client.acquire("k").fencing_token > token


def test_a_bare_lease_nests_too(client):
    first = client.acquire("k", owner=OWNER)
    second = client.acquire("k", owner=OWNER)
    assert second.hold_count == 2 and second.fencing_token == first.fencing_token
    assert client.release(second) == 1
    assert client.release(second) == 0
    assert client.inspect("k").free


def test_the_owner_passes_those_who_wait(client, open_session):
    session = open_session()
    hold = session.acquire("k", owner=OWNER)
    waiting = open_session().begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    assert session.acquire("k", owner=OWNER, wait=1).count == 2
    assert not waiting.done()
    session.release(hold)
    assert not waiting.done()
    session.release(hold)
    assert outcome(waiting.result(5)) == "ACQUIRED"


def test_reentry_refuse_is_an_error_that_changes_nothing(client, open_session):
    session = open_session()
    hold = session.acquire("k", owner=OWNER)
    with pytest.raises(Refused) as refused:
        session.try_acquire("k", owner=OWNER, reentry=types_pb2.REENTRY_REFUSE)
    assert refused.value == ("FAILED_PRECONDITION", "REENTRY_REFUSED")
    assert client.inspect("k").holders[0].hold_count == 1
    assert session.release(hold) == 0
    assert client.inspect("k").free


def test_two_sessions_of_one_owner_each_give_back_only_their_own(client, open_session):
    one, two = open_session(), open_session()
    first = one.acquire("k", owner=OWNER)
    second = two.acquire("k", owner=OWNER)
    assert first.hold_id != second.hold_id and first.token == second.token
    assert two.acquire("k", owner=OWNER).count == 3
    one.close()
    until(lambda: [h.hold_count for h in client.inspect("k").holders] == [2], 5, "the first one's part is given back")
    assert two.release(second) == 1
    assert outcome(client.try_acquire("k")) == "BUSY"
    assert two.release(second) == 0
    assert client.inspect("k").free


def test_the_end_of_a_nested_session_frees_all_that_it_took(client, open_session):
    session = open_session()
    for _ in range(3):
        session.acquire("k", owner=OWNER)
    session.close()
    client.wait_free("k", 1)


def test_another_owner_does_not_nest(client, open_session):
    open_session().acquire("k", owner=OWNER)
    assert outcome(client.try_acquire("k", owner=OWNER + "-no")) == "BUSY"
