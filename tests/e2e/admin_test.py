# SPDX-License-Identifier: Apache-2.0
"""What an operator does: over gRPC on both stores, across two daemons, and to a program without Holdfast."""

import grpc
import pytest
from holdfast.v1 import admin_pb2, admin_pb2_grpc, lock_pb2

from support.daemon import Daemon
from support.plain_lock import PlainLock
from support.raw_session import RawSession
from support.requests import Refused, outcome, refusal_of, seconds
from support.unary_client import UnaryClient
from support.waiting import boot_now, stays, until


class Operator:
    def __init__(self, client):
        self.stub = admin_pb2_grpc.AdminServiceStub(client.channel)

    def call(self, method, request):
        try:
            return getattr(self.stub, method)(request, timeout=30)
        except grpc.RpcError as error:
            raise refusal_of(error) from None

    def force(self, key, **fields):
        return self.call("ForceRelease", admin_pb2.ForceReleaseRequest(key=key, **fields))

    def close(self, session_id):
        return self.call("CloseSession", admin_pb2.CloseSessionRequest(session_id=session_id))

    def sessions(self):
        pages = self.stub.ListSessions(admin_pb2.ListSessionsRequest(), timeout=30)
        return {session.session_id: session for page in pages for session in page.sessions}


@pytest.fixture
def operator(client):
    return Operator(client)


def check(client, key, token):
    return client.call("CheckToken", lock_pb2.CheckTokenRequest(key=key, fencing_token=token))


def test_a_forced_holder_is_told_and_the_key_goes_on_after_its_acknowledgement(client, operator, open_session):
    holder, next_one = open_session(acks=False), open_session()
    hold = holder.acquire("k")
    waiting = next_one.begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    answer = operator.force("k")
    assert answer.ended == 1 and not answer.overlap_possible and 0 < seconds(answer.free_within) <= 30
    assert [h.hold_id for h in answer.holders] == [hold.hold_id]
    until(lambda: hold.lost == "FORCED", 5, "the holder is told")
    stays(lambda: not waiting.done(), 0.3, "nobody gets the key before the holder has stopped")
    holder.lost_ack(hold.hold_id)
    assert waiting.result(5).grant.fencing_token > hold.token


def test_immediate_gives_the_key_on_at_once_and_says_what_that_means(client, operator, open_session):
    holder, next_one = open_session(acks=False), open_session()
    hold = holder.acquire("k")
    waiting = next_one.begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    answer = operator.force("k", immediate=True, note="the job hangs")
    assert answer.ended == 1 and answer.overlap_possible
    token = waiting.result(5).grant.fencing_token
    assert token > hold.token
    until(lambda: hold.lost == "FORCED", 5, "the holder is told all the same")
    assert check(client, "k", token).current
    stale = check(client, "k", hold.token)
    assert not stale.current and stale.current_token == token


def test_a_forced_bare_lease_ends_with_its_lease_whoever_renews_it(client, operator):
    asked = boot_now()
    grant = client.acquire("k", lease=1.5)
    assert operator.force("k").ended == 1
    renewed = client.renew(grant, lease=30)
    assert seconds(renewed.lease) <= 1.5 and seconds(renewed.max_hold_remaining) <= 1.5
    client.wait_free("k", 5)
    assert boot_now() - asked >= 1.4


def test_the_sessions_of_a_daemon_are_listed(operator, open_session):
    one, other = open_session(client_name="one"), open_session(client_name="other", ttl=0)
    one.acquire("k")
    waiting = other.begin_acquire("k", wait=20)
    until(lambda: operator.sessions()[other.session_id].waiting == 1, 5, "the other one waits")
    listed = operator.sessions()
    assert listed.keys() == {one.session_id, other.session_id}
    seen = listed[one.session_id]
    assert (seen.client_name, seen.holds, seen.connected, seen.closing) == ("one", 1, True, False)
    assert seconds(seen.ttl) == 10 and seen.peer and seen.principal and seconds(seen.age) < 30
    assert seconds(listed[other.session_id].ttl) == 0
    other.cancel(waiting)


def test_a_closed_session_is_told_of_each_hold_and_then_ended(client, operator, open_session):
    closed, next_one = open_session(acks=False), open_session()
    hold = closed.acquire("k")
    waiting = next_one.begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    answer = operator.close(closed.session_id)
    assert answer.ended == 1 and 0 < seconds(answer.free_within) <= 30
    until(lambda: hold.lost == "SESSION_CLOSED", 5, "the holder is told")
    assert operator.sessions()[closed.session_id].closing
    with pytest.raises(Refused) as refused:
        closed.acquire("other")
    assert refused.value == ("ABORTED", "SESSION_CLOSED")
    assert not waiting.done()
    closed.lost_ack(hold.hold_id)
    assert outcome(waiting.result(5)) == "ACQUIRED"
    assert closed.ended.result(5) == ("ABORTED", "SESSION_CLOSED")
    with pytest.raises(Refused) as refused:
        operator.close(closed.session_id)
    assert refused.value == ("NOT_FOUND", "SESSION_NOT_FOUND")


def test_wrong_input_names_its_field(operator):
    for call, field in ((lambda: operator.force(""), "key"), (lambda: operator.force("k", hold_id="h" * 65), "hold_id"),
                        (lambda: operator.force("k", note="n" * 1025), "note"),
                        (lambda: operator.close(""), "session_id")):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.value.field == field


def test_the_holder_at_another_daemon_is_told_by_its_next_renewal(redis_server):
    with Daemon(redis_server.url, "--no-grace") as here, Daemon(redis_server.url, "--no-grace") as there, \
            UnaryClient(here.address) as client, RawSession(there.address) as holder:
        hold = holder.acquire("k", lease=3)
        asked = boot_now()
        answer = Operator(client).force("k")
        assert answer.ended == 1 and not answer.overlap_possible
        until(lambda: hold.lost == "FORCED", 3, "the holder is told")
        assert boot_now() - asked < 2.5, "not only when its lease was over"
        client.wait_free("k", 3)


def test_a_hold_of_another_daemon_can_be_ended_at_once(redis_server):
    with Daemon(redis_server.url, "--no-grace") as here, Daemon(redis_server.url, "--no-grace") as there, \
            UnaryClient(here.address) as client, RawSession(there.address) as holder:
        hold = holder.acquire("k", lease=3)
        assert Operator(client).force("k", immediate=True).overlap_possible
        assert client.acquire("k").fencing_token > hold.token
        until(lambda: hold.lost, 3, "the holder is told at its next renewal")


def test_what_a_program_without_holdfast_holds_is_only_ended_at_once(redis_server):
    with Daemon(redis_server.url, "--no-grace") as daemon, UnaryClient(daemon.address) as client:
        plain = PlainLock(redis_server.client, "holdfast:default:k")
        assert plain.take() == -1
        gently = Operator(client).force("k")
        assert gently.ended == 0 and gently.holders[0].foreign and 0 < seconds(gently.free_within) <= 30
        assert outcome(client.try_acquire("k")) == "BUSY"
        assert Operator(client).force("k", immediate=True).ended == 1
        client.acquire("k")
        assert plain.give_back() == -1
