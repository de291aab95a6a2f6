# SPDX-License-Identifier: Apache-2.0
"""Commands that are sent again with their command_id: run once, answered each time, and nothing counted twice."""

import pytest

from support.daemon import Daemon
from support.requests import Refused, outcome, seconds
from support.unary_client import UnaryClient
from support.waiting import boot_now, boot_to

OWNER = "an-owner-that-nobody-guesses"


def test_a_repeated_acquire_gets_the_same_grant_and_counts_once(client, open_session):
    session = open_session()
    first = session.try_acquire("k", owner=OWNER, command_id="one").grant
    for _ in range(3):
        again = session.try_acquire("k", owner=OWNER, command_id="one").grant
        assert (again.hold_id, again.fencing_token, again.hold_count) == (first.hold_id, first.fencing_token, 1)
    assert client.inspect("k").holders[0].hold_count == 1
    assert session.release(session.holds[first.hold_id]) == 0
    assert client.inspect("k").free


def test_a_repeated_acquire_does_not_extend_the_lease(client):
    asked = boot_now()
    first = client.acquire("k", owner=OWNER, command_id="one", lease=1)
    boot_to(asked + 0.5)
    again = client.acquire("k", owner=OWNER, command_id="one", lease=1)
    assert again.hold_id == first.hold_id and seconds(again.lease) < 0.6
    client.wait_free("k", asked + 1.2 - boot_now())


def test_a_repeated_acquire_by_a_made_owner_finds_the_same_owner(client):
    first = client.acquire("k", command_id="one")
    again = client.acquire("k", command_id="one")
    assert (again.owner, again.hold_id, again.hold_count) == (first.owner, first.hold_id, 1)


def test_a_copy_of_a_waiting_acquire_joins_it(client, open_session):
    held = client.acquire("k")
    session = open_session()
    first = session.begin_acquire("k", owner=OWNER, wait=20, command_id="one")
    client.wait_queue("k", 1)
    copy = session.begin_acquire("k", owner=OWNER, wait=20, command_id="one")
    other = open_session().begin_acquire("k", wait=20)
    client.wait_queue("k", 2)
    client.release(held)
    grants = [first.result(5).grant, copy.result(5).grant]
    assert grants[0].hold_id == grants[1].hold_id
    assert [g.hold_count for g in grants] == [1, 1] and not other.done()
    assert session.release(session.holds[grants[0].hold_id]) == 0
    assert outcome(other.result(5)) == "ACQUIRED"


def test_a_copy_is_valid_no_longer_than_the_first(client, open_session):
    # Each copy counts from when it was sent itself: what it is told has to make up for that.
    held = client.acquire("k")
    session = open_session()
    sent = [boot_now()]
    first = session.begin_acquire("k", owner=OWNER, wait=20, lease=10, max_hold=20, command_id="one")
    client.wait_queue("k", 1)
    boot_to(sent[0] + 0.5)
    sent.append(boot_now())
    copy = session.begin_acquire("k", owner=OWNER, wait=20, lease=10, max_hold=20, command_id="one")
    session.acquire("unrelated")  # by its answer the copy has been read, too
    client.release(held)
    grants = [w.result(5).grant for w in (first, copy)]
    ends = [at + seconds(g.waited) + seconds(g.lease) for at, g in zip(sent, grants)]
    limits = [at + seconds(g.waited) + seconds(g.max_hold_remaining) for at, g in zip(sent, grants)]
    assert ends[1] <= ends[0] + 0.1 and limits[1] <= limits[0] + 0.1


def test_a_repeated_release_gives_back_once(client, open_session):
    session = open_session()
    hold = session.acquire("k", owner=OWNER)
    session.acquire("k", owner=OWNER)
    assert session.begin_release(hold, command_id="back").result(5).remaining_count == 1
    assert session.begin_release(hold, command_id="back").result(5).remaining_count == 1
    assert client.inspect("k").holders[0].hold_count == 1
    assert session.begin_release(hold, command_id="back-2").result(5).remaining_count == 0
    assert session.begin_release(hold, command_id="back-2").result(5).remaining_count == 0
    assert client.inspect("k").free


def test_copies_of_a_release_in_flight_give_back_once(client, open_session):
    session = open_session()
    for number in range(50):
        for _ in range(2):
            hold = session.acquire("k", owner=OWNER)
        copies = [session.begin_release(hold, command_id=f"back-{number}") for _ in range(3)]
        assert {c.result(5).remaining_count for c in copies} == {1}
        assert session.begin_release(hold).result(5).remaining_count == 0


def test_a_late_copy_of_a_release_leaves_the_next_holder_alone(client):
    first = client.acquire("k")
    assert client.release(first, command_id="back") == 0
    second = client.acquire("k")
    assert client.release(first, command_id="back") == 0
    state = client.inspect("k")
    assert state.fencing_token == second.fencing_token and not state.free


def test_a_late_copy_of_an_acquire_does_not_take_the_key_again(client):
    first = client.acquire("k", owner=OWNER, command_id="one")
    client.release(first)
    with pytest.raises(Refused) as refused:
        client.acquire("k", owner=OWNER, command_id="one")
    assert refused.value == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
    assert client.inspect("k").free
    other = client.acquire("k")
    assert other.fencing_token > first.fencing_token


def test_a_repeated_renew_extends_once(client):
    held = client.acquire("k", lease=1)
    asked = boot_now()
    client.renew(held, command_id="on", lease=1)
    boot_to(asked + 0.5)
    client.renew(held, command_id="on", lease=1)
    client.wait_free("k", asked + 1.3 - boot_now())


def test_a_command_id_of_another_command_is_refused(client):
    client.acquire("k", owner=OWNER, command_id="one", lease=10)
    with pytest.raises(Refused) as refused:
        client.try_acquire("k", owner=OWNER, command_id="one", lease=11)
    assert refused.value == ("INVALID_ARGUMENT", "COMMAND_MISMATCH")
    assert client.inspect("k").holders[0].hold_count == 1


def test_command_ids_of_sessions_and_keys_are_their_own(client, open_session):
    one, two = open_session(), open_session()
    first = one.acquire("k", owner=OWNER, command_id="one")
    second = two.acquire("k", owner=OWNER, command_id="one")
    other = one.acquire("other", owner=OWNER, command_id="one")
    assert second.count == 2 and len({first.hold_id, second.hold_id, other.hold_id}) == 3


def test_a_repeated_acquire_finds_its_grant_after_the_daemon_was_killed(store, folder):
    with Daemon(store, "--no-grace", listen=f"unix://{folder}/holdfast.sock") as daemon:
        with UnaryClient(daemon.address) as client:
            first = client.acquire("k", owner=OWNER, command_id="one", lease=30)
        daemon.restart()
        with UnaryClient(daemon.address) as client:
            again = client.acquire("k", owner=OWNER, command_id="one", lease=30)
            assert again.hold_count == 1 and again.fencing_token == first.fencing_token
            assert again.hold_id == first.hold_id
            assert client.release(again) == 0
            assert client.inspect("k").free
