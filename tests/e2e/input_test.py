# SPDX-License-Identifier: Apache-2.0
"""Wrong input is refused by naming the field and its bound, and changes nothing."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from holdfast.v1 import requests_pb2, types_pb2

from support.requests import Refused, refusal_of
from support.shared_daemon import daemon, folder, session  # noqa: F401

YEAR = 365 * 86_400
OWNER = "an-owner-that-nobody-guesses"

# (what is wrong, the field that is named, a part of the bound that is named)
ACQUIRES = {
    "empty key": (dict(key=""), "key", "512"),
    "key of 513 bytes": (dict(key="k" * 513), "key", "512"),
    "key of 257 two-byte characters": (dict(key="é" * 257), "key", "512"),
    "key with a newline": (dict(key="a\nb"), "key", "control"),
    "key with a zero byte": (dict(key="a\0b"), "key", "control"),
    "key with DEL": (dict(key="a\x7fb"), "key", "control"),
    "namespace with capitals": (dict(key="k", namespace="Default"), "namespace", "a-z"),
    "namespace of 65": (dict(key="k", namespace="n" * 65), "namespace", "64"),
    "lease 0": (dict(key="k", lease=0), "lease", "100ms"),
    "lease of 1 ms": (dict(key="k", lease=0.001), "lease", "100ms"),
    "lease of -1 s": (dict(key="k", lease=Duration(seconds=-1)), "lease", "negative"),
    "lease of a year": (dict(key="k", lease=YEAR), "lease", "1m"),
    "lease of the largest number": (dict(key="k", lease=Duration(seconds=2**63 - 1)), "lease", "315,576,000,000"),
    "lease of the smallest number": (dict(key="k", lease=Duration(seconds=-(2**63))), "lease", "negative"),
    "lease with too many nanos": (dict(key="k", lease=Duration(seconds=1, nanos=10**9)), "lease", "999,999,999"),
    "lease of mixed signs": (dict(key="k", lease=Duration(seconds=1, nanos=-1)), "lease", "sign"),
    "wait of -1 ns": (dict(key="k", wait=Duration(nanos=-1)), "wait", "negative"),
    "wait of a year": (dict(key="k", wait=YEAR), "wait", "24h"),
    "max_hold of 1 ms": (dict(key="k", max_hold=0.001), "max_hold", "100ms"),
    "max_hold of two years": (dict(key="k", max_hold=2 * YEAR), "max_hold", "h"),
    "min_hold of a year": (dict(key="k", min_hold=YEAR), "min_hold", "24h"),
    "min_hold over max_hold": (dict(key="k", min_hold=2, max_hold=1), "min_hold", "max_hold"),
    "feed without a session": (dict(key="k", feed=1), "feed", "session"),
    "owner of 3 characters": (dict(key="k", owner="abc"), "owner", "16"),
    "owner of 257": (dict(key="k", owner="o" * 257), "owner", "256"),
    "owner that begins with #": (dict(key="k", owner="#" + OWNER), "owner", "#"),
    "owner with a control character": (dict(key="k", owner=OWNER + "\t"), "owner", "control"),
    "note of 1 MiB": (dict(key="k", note="n" * 2**20), "note", "1024"),
    "traceparent of 257": (dict(key="k", traceparent="t" * 257), "traceparent", "256"),
    "command_id of 65": (dict(key="k", command_id="c" * 65), "command_id", "64"),
    "limit without PERMIT": (dict(key="k", limit=3), "limit", "PERMIT"),
    "PERMIT without a limit": (dict(key="k", mode=types_pb2.MODE_PERMIT), "limit", "1000"),
    "too many permits": (dict(key="k", mode=types_pb2.MODE_PERMIT, limit=1_001), "limit", "1000"),
    "mode 77": (dict(key="k", mode=77), "mode", "77"),
    "reentry 77": (dict(key="k", reentry=77), "reentry", "77"),
    "ordering 77": (dict(key="k", ordering=77), "ordering", "77"),
}


def check(refused, field, bound):
    assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD"), refused
    assert refused.field == field and bound in refused.message, refused


@pytest.mark.parametrize("fields, field, bound", ACQUIRES.values(), ids=ACQUIRES.keys())
def test_a_wrong_acquire_names_field_and_bound_on_calls_and_streams(client, session, fields, field, bound):
    with pytest.raises(Refused) as refused:
        client.try_acquire(**fields)
    check(refused.value, field, bound)
    if field == "feed":
        return
    with pytest.raises(Refused) as refused:
        session.try_acquire(**fields)
    check(refused.value, field, bound)
    assert client.list() == [], "nothing is held"


@pytest.mark.parametrize("changed, field", [
    (dict(owner="abc"), "owner"), (dict(owner=""), "owner"), (dict(hold_id=""), "hold_id"),
    (dict(hold_id="h" * 65), "hold_id"), (dict(key=""), "key"), (dict(command_id="c" * 65), "command_id")])
def test_a_wrong_renew_or_release_names_its_field_and_changes_nothing(client, changed, field):
    held = client.acquire("held")
    for action in (client.renew, client.release):
        with pytest.raises(Refused) as refused:
            action(held, **changed)
        assert refused.value == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.value.field == field
    assert client.release(held) == 0


@pytest.mark.parametrize("lease", [0, YEAR, Duration(seconds=-1), Duration(seconds=1, nanos=-5)])
def test_a_wrong_lease_of_a_renewal_changes_nothing(client, lease):
    held = client.acquire("held")
    with pytest.raises(Refused) as refused:
        client.renew(held, lease=lease)
    assert refused.value == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.value.field == "lease"
    assert client.release(held) == 0


def raw_call(client, method, request, answer):
    call = client.channel.unary_unary(
        f"/holdfast.v1.LockService/{method}", request_serializer=lambda data: data,
        response_deserializer=answer.FromString)
    with pytest.raises(grpc.RpcError) as failed:
        call(request, timeout=10)
    return refusal_of(failed.value)


def test_bytes_that_are_no_utf8_are_refused_by_field(client, session):
    bad_key = b"\x12\x02\xc3\x28"  # field 2, two bytes that are no character
    check(raw_call(client, "Acquire", bad_key, requests_pb2.AcquireResponse), "key", "UTF-8")
    bad_owner = b"\x12\x01k\x1a\x03\xed\xa0\x80"  # field 3, half of a surrogate pair
    check(raw_call(client, "Acquire", bad_owner, requests_pb2.AcquireResponse), "owner", "UTF-8")
    assert client.list() == []


def test_bytes_that_are_no_message_are_refused(client):
    refused = raw_call(client, "Acquire", b"\x12\xff\xff\xff\xff\x0f", requests_pb2.AcquireResponse)
    assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD")
