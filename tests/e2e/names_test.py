# SPDX-License-Identifier: Apache-2.0
"""Keys, namespaces and sessions by their names, and what a later version has."""

import grpc
import pytest
from holdfast.v1 import admin_pb2, admin_pb2_grpc, requests_pb2, session_pb2, types_pb2

from support.raw_session import RawSession
from support.requests import Refused, refusal_of
from support.waiting import until


KEYS = ["a", "a/b", "{a}", "a:b", "}{", "{}x", "a ", "ä", "k" * 512, "*", "a*", "?", "[a]", "#state", "#free:default:a"]


def test_keys_that_look_alike_are_independent_of_each_other(client):
    grants = {key: client.acquire(key) for key in KEYS}
    assert sorted(state.key for state in client.list()) == sorted(KEYS)
    for key in KEYS:
        assert client.release(grants.pop(key)) == 0
        assert client.inspect(key).free
        assert all(not client.inspect(other).free for other in grants)


def test_namespaces_are_independent_of_each_other(client):
    grants = [client.acquire("k", namespace=name) for name in ("", "one", "one.two", "-")]
    assert {g.namespace for g in grants} == {"default", "one", "one.two", "-"}
    for grant in grants:
        client.release(grant)


def test_an_unknown_session_is_not_found(client, open_session):
    session = open_session()
    with pytest.raises(Refused) as refused:
        client.try_acquire("k", session_id="no-such-session")
    assert refused.value == ("NOT_FOUND", "SESSION_NOT_FOUND") and refused.value.field == "session_id"
    gone = session.session_id
    session.close()

    def not_found():
        try:
            client.release(client.acquire("k", session_id=gone))
        except Refused as refused:
            return refused == ("NOT_FOUND", "SESSION_NOT_FOUND")

    until(not_found, 5, "the closed session is gone")


def test_a_unary_acquire_may_name_a_session_and_dies_with_it(client, open_session):
    session = open_session()
    grant = client.acquire("k", session_id=session.session_id, lease=0.5)
    assert grant.session_id == session.session_id
    session.close()
    client.wait_free("k", 1)


def test_calls_of_a_later_version_are_unimplemented_by_name(client):
    admin = admin_pb2_grpc.AdminServiceStub(client.channel)
    calls = {
        "drain": lambda: admin.Drain(admin_pb2.DrainRequest(), timeout=5),
        "diagnose": lambda: admin.Diagnose(admin_pb2.DiagnoseRequest(), timeout=5),
    }
    for feature, call in calls.items():
        with pytest.raises(grpc.RpcError) as failed:
            call()
        refused = refusal_of(failed.value)
        assert refused == ("UNIMPLEMENTED", "UNSUPPORTED") and refused.field == feature


@pytest.mark.parametrize("fields, feature", [
    (dict(reconnect_grace=5), "reconnect_grace"),
    (dict(resume=session_pb2.SessionResume(session_id="s", resume_secret=b"s")), "resume")])
def test_an_open_of_a_later_version_is_unimplemented_by_name(daemon, fields, feature):
    with pytest.raises(Refused) as refused:
        RawSession(daemon.address, **fields)
    assert refused.value == ("UNIMPLEMENTED", "UNSUPPORTED") and refused.value.field == feature
