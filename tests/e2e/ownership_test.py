# SPDX-License-Identifier: Apache-2.0
"""Only the holder renews and releases, and everybody else is told why not."""

import grpc
import pytest
from holdfast.v1 import lock_pb2, requests_pb2, types_pb2

from support.requests import Refused, outcome, seconds
from support.waiting import boot_now, stays, until

OTHER = "somebody-else-entirely"


def refusal(action, *arguments, **fields):
    with pytest.raises(Refused) as refused:
        action(*arguments, **fields)
    return refused.value


def test_a_second_release_is_refused_and_frees_nobody_elses_lock(client):
    first = client.acquire("k")
    assert client.release(first) == 0
    assert refusal(client.release, first) == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
    second = client.acquire("k")
    assert refusal(client.release, first) == ("FAILED_PRECONDITION", "NOT_OWNER")
    assert client.inspect("k").fencing_token == second.fencing_token
    assert client.release(second) == 0


def test_nobody_renews_or_releases_the_lock_of_another(client, open_session):
    held = client.acquire("k", lease=2)
    before = seconds(client.inspect("k").holders[0].expires_in)
    for claim in ({"owner": OTHER}, {"hold_id": "not-that-one"}, {"owner": OTHER, "hold_id": "not-that-one"}):
        assert refusal(client.renew, held, lease=30, **claim) == ("FAILED_PRECONDITION", "NOT_OWNER")
        assert refusal(client.release, held, **claim) == ("FAILED_PRECONDITION", "NOT_OWNER")
    state = client.inspect("k")
    assert not state.free and seconds(state.holders[0].expires_in) <= before
    assert client.release(held) == 0


def test_a_release_with_the_hold_id_of_another_hold_is_refused(client, open_session):
    one, two = open_session(), open_session()
    mine, theirs = one.acquire("mine"), two.acquire("theirs")
    refused = refusal(one.release, mine, hold_id=theirs.hold_id)
    assert refused == ("FAILED_PRECONDITION", "NOT_OWNER")
    assert not client.inspect("mine").free and not client.inspect("theirs").free


def test_nobody_renews_or_releases_a_session_s_hold_as_another_owner(client, open_session):
    mine, other = open_session().try_acquire("k").grant, open_session()
    for action in (client.renew, client.release):
        assert refusal(action, mine, owner=OTHER) == ("FAILED_PRECONDITION", "NOT_OWNER")
    claim = requests_pb2.ReleaseRequest(key="k", owner=OTHER, hold_id=mine.hold_id)
    assert refusal(other.begin(release=claim).result, 5) == ("FAILED_PRECONDITION", "NOT_OWNER")
    assert client.inspect("k").fencing_token == mine.fencing_token


def test_a_release_on_another_key_is_refused(client):
    held, other = client.acquire("k"), client.acquire("other")
    assert refusal(client.release, held, key="other").code == "FAILED_PRECONDITION"
    assert refusal(client.release, held, namespace="elsewhere").code == "FAILED_PRECONDITION"
    assert not client.inspect("k").free and not client.inspect("other").free


def test_a_session_s_hold_is_released_by_whoever_knows_owner_and_hold(client, open_session):
    session = open_session()
    response = session.try_acquire("k")
    assert client.release(response.grant) == 0
    assert client.inspect("k").free


def test_an_expired_lease_is_not_renewed_or_released_back_to_life(client):
    held = client.acquire("k", lease=0.2)
    client.wait_free("k", 1)
    assert refusal(client.renew, held) == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
    assert refusal(client.release, held) == ("FAILED_PRECONDITION", "LEASE_EXPIRED")
    assert client.inspect("k").free


def test_renewals_carry_a_bare_lease_on_and_never_shorten_it(client):
    held = client.acquire("k", lease=0.4)
    start = boot_now()
    while boot_now() < start + 1.2:
        answer = client.renew(held, lease=0.4)
        assert 0.3 < seconds(answer.lease) <= 0.4
        assert seconds(answer.safety_margin) == pytest.approx(0.4 / 50 + 0.01)
        stays(lambda: not client.inspect("k").free, 0.1, "a lease that is renewed")
    client.renew(held, lease=20)
    answer = client.renew(held, lease=0.2)
    assert seconds(answer.lease) > 15
    stays(lambda: not client.inspect("k").free, 0.4, "the longer lease")


def test_a_bare_lease_ends_with_its_lease_and_not_before(client):
    asked = boot_now()
    held = client.acquire("k", lease=0.5)
    stays(lambda: not client.inspect("k").free, asked + 0.48 - boot_now(), "the lease")
    client.wait_free("k", 1)
    assert held.fencing_token > 0


def test_an_error_says_the_same_in_status_metadata_and_bytes(client):
    request = requests_pb2.ReleaseRequest(key="k", owner=OTHER, hold_id="h" * 65)
    with pytest.raises(grpc.RpcError) as failed:
        client.stub.Release(request, timeout=10)
    metadata = dict(failed.value.trailing_metadata())
    error = types_pb2.Error.FromString(metadata["holdfast-error-bin"])
    assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert metadata["holdfast-reason"] == "INVALID_FIELD" and metadata["holdfast-field"] == "hold_id"
    assert error.code == 3 and error.reason == types_pb2.ERROR_REASON_INVALID_FIELD
    assert error.field == "hold_id" and error.message == failed.value.details()


def test_others_see_who_holds_but_never_the_owner(client):
    held = client.acquire("k", note="job 7")
    answer = client.try_acquire("k")
    assert outcome(answer) == "BUSY"
    (holder,) = answer.holders
    assert holder.note == "job 7" and holder.hold_id == held.hold_id and not holder.has_session
    assert client.inspect("k").holders[0].fencing_token == held.fencing_token
    for message in (answer, client.inspect("k"), *client.list()):
        assert held.owner.encode() not in message.SerializeToString()
        assert "owner_fingerprint" in str(message)


def test_check_token_knows_the_current_ownership(client):
    def check(token):
        return client.call("CheckToken", lock_pb2.CheckTokenRequest(key="k", fencing_token=token))

    first = client.acquire("k")
    assert check(first.fencing_token).current
    client.release(first)
    assert not check(first.fencing_token).current and check(first.fencing_token).current_token == 0
    second = client.acquire("k")
    answer = check(first.fencing_token)
    assert not answer.current and answer.current_token == second.fencing_token


def test_list_shows_what_is_held_below_a_prefix_and_namespace(client):
    for number in range(300):
        client.acquire(f"a/{number}")
    client.acquire("b")
    client.acquire("a/elsewhere", namespace="other")
    assert sorted(s.key for s in client.list("a/")) == sorted(f"a/{n}" for n in range(300))
    assert [s.key for s in client.list("b")] == ["b"]
    assert [s.key for s in client.list(namespace="other")] == ["a/elsewhere"]
    assert client.list("c") == []


def test_the_holder_hears_once_that_somebody_waits(client, open_session):
    session = open_session()
    hold = session.acquire("k")
    waiting = [open_session().begin_acquire("k", wait=20) for _ in range(3)]
    contended = session.contended.get(timeout=5)
    assert (contended.key, contended.hold_id) == ("k", hold.hold_id)
    client.wait_queue("k", 3)
    session.release(hold)
    until(lambda: any(w.done() for w in waiting), 5, "one of them holds")
    assert session.contended.empty()
