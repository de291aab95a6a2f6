# SPDX-License-Identifier: Apache-2.0
"""Streams that break the protocol: one wrong command costs its answer, a wrong message the session and all it held."""

import threading

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from holdfast.v1 import session_pb2, types_pb2

from support.channels import channel_to
from support.raw_session import RawSession
from support.requests import Refused, acquire_request, refusal_of
from support.shared_daemon import daemon, folder, session  # noqa: F401

YEAR = 365 * 86_400


def check(refused, field, bound):
    assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD"), refused
    assert refused.field == field and bound in refused.message, refused


def test_a_stream_survives_a_command_that_is_no_utf8(daemon, client):
    channel = channel_to(daemon.address)
    call = channel.stream_stream("/holdfast.v1.LockService/Session", request_serializer=lambda data: data,
                                 response_deserializer=session_pb2.SessionResponse.FromString)
    opening = session_pb2.SessionRequest(open=session_pb2.SessionOpen(protocol=1)).SerializeToString()
    bad_command = b"\x08\x07\x12\x04\x12\x02\xc3\x28"  # request 7: an acquire of a key that is no text
    bad = b"\x12" + bytes([len(bad_command)]) + bad_command
    good = session_pb2.SessionRequest(commands=[
        session_pb2.SessionCommand(request_id=8, acquire=acquire_request("utf8"))]).SerializeToString()
    done = threading.Event()

    def messages():
        yield from (opening, bad, good)
        done.wait(10)  # the end of the stream is the end of the session, answered or not

    replies = {}
    with channel:
        for message in call(messages(), timeout=10):
            replies.update({e.reply.request_id: e.reply for e in message.events if e.HasField("reply")})
            if len(replies) == 2:
                done.set()
    check(Refused(replies[7].error), "key", "UTF-8")
    assert replies[8].acquire.outcome == types_pb2.OUTCOME_ACQUIRED
    client.wait_free("utf8", 1)


def ends_with(session, field):
    refused = session.ended.result(5)
    assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.field == field


def test_a_stream_that_does_not_begin_with_open_is_refused(daemon):
    channel = channel_to(daemon.address)
    call = channel.stream_stream("/holdfast.v1.LockService/Session",
                                 request_serializer=session_pb2.SessionRequest.SerializeToString,
                                 response_deserializer=session_pb2.SessionResponse.FromString)
    first = session_pb2.SessionRequest(commands=[
        session_pb2.SessionCommand(request_id=1, acquire=acquire_request("early"))])
    with channel, pytest.raises(grpc.RpcError) as failed:
        list(call(iter([first]), timeout=10))
    refused = refusal_of(failed.value)
    assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.field == "open"


def test_a_second_open_ends_the_session_and_frees_what_it_held_after_its_ttl(daemon, client):
    # Not before: that the status was sent does not mean that the client has read it.
    with RawSession(daemon.address, ttl=2) as session:
        hold = session.acquire("k")
        session.send(session_pb2.SessionRequest(open=session_pb2.SessionOpen(protocol=1)))
        ends_with(session, "open")
        client.acquire("k", wait=4)
        assert not hold.is_valid()


def test_a_request_id_is_used_once_and_is_not_0(client, session):
    session.acquire("once")
    with pytest.raises(Refused) as refused:
        session.begin(request_id=1, acquire=acquire_request("twice")).result(5)
    check(refused.value, "request_id", "twice")
    with pytest.raises(Refused) as refused:
        session.begin(request_id=0, acquire=acquire_request("zero")).result(5)
    check(refused.value, "request_id", "0")
    assert client.inspect("twice").free and client.inspect("zero").free
    assert not session.ended.done()


@pytest.mark.parametrize("fields, field, bound", [
    (dict(ttl=1), "ttl", "2s"), (dict(ttl=3600), "ttl", "10m"), (dict(ttl=Duration(seconds=-1)), "ttl", "negative"),
    (dict(lease=0), "lease", "100ms"), (dict(lease=YEAR), "lease", "1m"),
    (dict(client_name="n" * 129), "client_name", "128"),
    (dict(features=["f"] * 33), "features", "32")])
def test_a_wrong_open_names_field_and_bound(daemon, fields, field, bound):
    with pytest.raises(Refused) as refused:
        RawSession(daemon.address, **fields)
    check(refused.value, field, bound)


def test_an_unknown_protocol_is_refused(daemon):
    channel = channel_to(daemon.address)
    call = channel.stream_stream("/holdfast.v1.LockService/Session",
                                 request_serializer=session_pb2.SessionRequest.SerializeToString,
                                 response_deserializer=session_pb2.SessionResponse.FromString)
    with channel, pytest.raises(grpc.RpcError) as failed:
        list(call(iter([session_pb2.SessionRequest(open=session_pb2.SessionOpen(protocol=2))]), timeout=10))
    check(refusal_of(failed.value), "protocol", "1")


def test_a_message_may_carry_4096_commands_and_no_more(session):
    def commands(count, first):
        return session_pb2.SessionRequest(commands=[
            session_pb2.SessionCommand(request_id=first + n, ping=session_pb2.Ping()) for n in range(count)])

    session.send(commands(4097, 10**6))
    ends_with(session, "commands")
