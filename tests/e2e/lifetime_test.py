# SPDX-License-Identifier: Apache-2.0
"""How long a hold lives: its session's renewals, max_hold, min_hold, and the feeding that its worker promised."""

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, outcome, seconds
from support.waiting import boot_now, boot_to, stays


def test_renewals_keep_a_hold_alive_far_beyond_its_lease(client, open_session):
    session = open_session(ttl=4)
    hold = session.acquire("k", lease=3, max_hold=0)
    stays(lambda: hold.is_valid() and not client.inspect("k").free, 8, "a hold of a living session")
    assert client.inspect("k").fencing_token == hold.token
    assert session.release(hold) == 0


def test_max_hold_ends_a_hold_however_often_it_is_renewed(client, open_session):
    session = open_session(ttl=2)
    asked = boot_now()
    hold = session.acquire("k", lease=0.5, max_hold=1.2)
    assert session.wait_lost(hold, 3) == "MAX_HOLD"
    heard = boot_now() - asked
    assert 1.0 < heard < 1.25
    lost = session.lost.get(timeout=1)
    assert (lost.key, lost.hold_id, lost.owner, lost.fencing_token) == ("k", hold.hold_id, hold.owner, hold.token)
    client.wait_free("k", 1)
    with pytest.raises(Refused) as refused:
        session.release(hold)
    assert refused.value == ("FAILED_PRECONDITION", "LEASE_EXPIRED")


def test_no_renewal_takes_a_hold_past_its_max_hold(client):
    asked = boot_now()
    held = client.acquire("k", lease=0.5, max_hold=1)
    assert seconds(held.max_hold_remaining) == pytest.approx(1, abs=0.05)
    boot_to(asked + 0.3)
    answer = client.renew(held, lease=30)
    assert seconds(answer.lease) < 0.8 and seconds(answer.max_hold_remaining) < 0.8
    client.wait_free("k", asked + 1.2 - boot_now())


def test_the_daemon_s_default_max_hold_is_announced_and_kept(memory):
    with Daemon(memory, "--default-max-hold=800ms") as daemon, RawSession(daemon.address) as session:
        assert seconds(session.opened.default_max_hold) == 0.8
        bounded, unbounded = session.acquire("k"), session.acquire("other", max_hold=0)
        assert session.wait_lost(bounded, 2) == "MAX_HOLD"
        assert unbounded.is_valid() and not unbounded.lost


def test_a_lost_key_is_granted_on_only_after_the_acknowledgement_or_the_end_of_validity(client, open_session):
    # A missed feed is known long before the lease ends: what matters is the acknowledgement.
    session = open_session(acks=False)
    hold = session.acquire("k", lease=2, feed=0.3)
    assert session.wait_lost(hold, 2) == "FEED_MISSED"
    waiting = open_session().begin_acquire("k", wait=20)
    stays(lambda: not waiting.done(), 0.3, "nobody else holds before the acknowledgement")
    told = boot_now()
    session.lost_ack(hold.hold_id)
    assert outcome(waiting.result(5)) == "ACQUIRED"
    assert boot_now() - told < 0.5


def test_without_an_acknowledgement_a_lost_key_is_granted_on_when_validity_is_over(client, open_session):
    session = open_session(acks=False)
    asked = boot_now()
    hold = session.acquire("k", lease=1.5, feed=0.3)
    answer = open_session().try_acquire("k", wait=20)
    granted = boot_now()
    assert outcome(answer) == "ACQUIRED" and hold.lost == "FEED_MISSED"
    assert granted >= hold.valid_until and granted < asked + 1.5 + 1


def test_a_fed_hold_lives_and_a_starved_one_is_lost(client, open_session):
    session = open_session()
    fed, starved = session.acquire("fed", feed=2), session.acquire("starved", feed=2)
    asked = boot_now()
    for step in range(1, 11):
        boot_to(asked + step * 0.3)
        session.feed(fed)
    assert starved.lost == "FEED_MISSED" and not fed.lost
    assert not client.inspect("fed").free
    client.wait_free("starved", 1)
    with pytest.raises(Refused) as refused:
        session.feed(starved)
    assert refused.value == ("FAILED_PRECONDITION", "LEASE_EXPIRED")


def test_one_hold_s_loss_leaves_its_session_s_others_alone(client, open_session):
    session = open_session(ttl=4)
    short, long = session.acquire("short", lease=3, max_hold=0.6), session.acquire("long", lease=3)
    assert session.wait_lost(short, 2) == "MAX_HOLD"
    stays(lambda: long.is_valid() and not client.inspect("long").free, 4, "the other hold")


def test_min_hold_keeps_the_key_when_it_is_released_early(client, open_session):
    session = open_session()
    asked = boot_now()
    hold = session.acquire("k", min_hold=1)
    assert session.release(hold) == 0
    state = client.inspect("k")
    assert not state.free and not state.holders and 0.5 < seconds(state.kept_for) <= 1
    assert outcome(client.try_acquire("k")) == "BUSY"
    answer = client.try_acquire("k", wait=10)
    assert outcome(answer) == "ACQUIRED" and 1 <= boot_now() - asked < 1.5


def test_min_hold_outlives_the_session(client, open_session):
    session = open_session()
    asked = boot_now()
    session.acquire("k", min_hold=1)
    session.close()
    client.acquire("k", wait=10)
    assert 1 <= boot_now() - asked < 1.6


def test_an_acquire_for_a_lost_owner_is_refused_until_the_loss_is_acknowledged(client, open_session):
    session = open_session(acks=False)
    owner = "an-owner-that-nobody-guesses"
    hold = session.acquire("k", owner=owner, lease=10, feed=0.2)
    session.wait_lost(hold, 2)
    with pytest.raises(Refused) as refused:
        session.try_acquire("k", owner=owner)
    assert refused.value == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
    session.lost_ack(hold.hold_id)
    assert session.acquire("k", owner=owner, wait=5).token > hold.token
