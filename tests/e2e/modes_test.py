# SPDX-License-Identifier: Apache-2.0
"""Readers together, permits up to their limit, and what a person sees of both."""

import json

import pytest
from holdfast.v1 import types_pb2

from support.cli import holdfast
from support.requests import Refused, outcome, seconds
from support.waiting import until

OWNER = "an-owner-that-nobody-guesses"
SHARED = dict(mode=types_pb2.MODE_SHARED)
PERMIT_OF_2 = dict(mode=types_pb2.MODE_PERMIT, limit=2)


def test_readers_hold_together_and_a_writer_waits_for_the_last(client, open_session):
    session = open_session()
    first = session.acquire("k", **SHARED)
    second = client.acquire("k", **SHARED)
    assert second.fencing_token == first.token and second.mode == types_pb2.MODE_SHARED
    state = client.inspect("k")
    assert state.mode == types_pb2.MODE_SHARED and state.holder_count == 2 and state.fencing_token == first.token
    writer = open_session().begin_acquire("k", wait=20)
    client.wait_queue("k", 1)
    assert outcome(client.try_acquire("k", **SHARED)) == "BUSY", "behind the waiting writer"
    session.release(first)
    assert not writer.done()
    client.release(second)
    assert outcome(writer.result(5)) == "ACQUIRED"


def test_one_release_wakes_all_readers(client, open_session):
    written = client.acquire("k")
    session = open_session()
    readers = [session.begin_acquire("k", wait=20, **SHARED) for _ in range(20)]
    client.wait_queue("k", 20)
    client.release(written)
    tokens = {reader.result(5).grant.fencing_token for reader in readers}
    assert len(tokens) == 1 and client.inspect("k").holder_count == 20


def test_permits_up_to_the_limit_and_no_more(client, open_session):
    session = open_session()
    holds = [session.acquire("k", **PERMIT_OF_2) for _ in range(2)]
    assert len({hold.token for hold in holds}) == 2
    assert outcome(client.try_acquire("k", **PERMIT_OF_2)) == "BUSY"
    state = client.inspect("k")
    assert state.mode == types_pb2.MODE_PERMIT and state.limit == 2 and state.fencing_token == 0
    assert {holder.fencing_token for holder in state.holders} == {hold.token for hold in holds}
    waiting = open_session().begin_acquire("k", wait=20, **PERMIT_OF_2)
    client.wait_queue("k", 1)
    session.release(holds[0])
    assert outcome(waiting.result(5)) == "ACQUIRED"
    assert outcome(client.try_acquire("k", **PERMIT_OF_2)) == "BUSY"


def test_another_limit_is_refused_with_both_numbers(client):
    client.acquire("k", **PERMIT_OF_2)
    with pytest.raises(Refused) as refused:
        client.try_acquire("k", mode=types_pb2.MODE_PERMIT, limit=7, wait=5)
    assert refused.value == ("FAILED_PRECONDITION", "LIMIT_MISMATCH") and refused.value.field == "limit"
    assert "2" in refused.value.message and "7" in refused.value.message


def test_a_reader_is_refused_the_write_at_once(client, open_session):
    session = open_session()
    hold = session.acquire("k", owner=OWNER, **SHARED)
    with pytest.raises(Refused) as refused:
        session.try_acquire("k", owner=OWNER, wait=20)
    assert refused.value == ("FAILED_PRECONDITION", "UPGRADE_REFUSED")
    with pytest.raises(Refused) as refused:
        session.try_acquire("k", owner=OWNER, wait=20, **PERMIT_OF_2)
    assert refused.value == ("FAILED_PRECONDITION", "MODE_MISMATCH")
    assert session.release(hold) == 0


def test_a_read_inside_a_write_keeps_the_write(client, open_session):
    session = open_session()
    written = session.acquire("k", owner=OWNER)
    read = session.acquire("k", owner=OWNER, **SHARED)
    assert (read.hold_id, read.token, read.count) == (written.hold_id, written.token, 2)
    assert session.release(read) == 1
    assert outcome(client.try_acquire("k", **SHARED)) == "BUSY"
    assert client.inspect("k").mode == types_pb2.MODE_EXCLUSIVE


def test_a_dead_reader_does_not_live_on_through_another(client, open_session):
    client.acquire("k", lease=0.3, **SHARED)
    session = open_session(lease=0.6)
    session.acquire("k", **SHARED)
    until(lambda: client.inspect("k").holder_count == 1, 3, "the reader that nobody renews is gone")
    (holder,) = client.inspect("k").holders
    assert holder.has_session and seconds(holder.expires_in) <= 0.6
    session.close()
    client.wait_free("k", 2)


def test_the_command_line_reads_together_and_takes_permits(daemon, client):
    client.acquire("files", **SHARED)
    ran = holdfast(daemon.address, "run", "files", "--shared", "--wait=0", "--", "echo", "together")
    assert ran.returncode == 0 and "together" in ran.stdout
    assert holdfast(daemon.address, "run", "files", "--wait=0", "--", "true").returncode == 124

    first = json.loads(holdfast(daemon.address, "acquire", "slots", "--permits=2", "--json").stdout)
    assert first["mode"] == "PERMIT"
    assert "(permit)" in holdfast(daemon.address, "acquire", "slots", "--permits=2").stdout
    assert holdfast(daemon.address, "acquire", "slots", "--permits=2").returncode == 124
    wrong = holdfast(daemon.address, "acquire", "slots", "--permits=3")
    assert wrong.returncode == 64 and "2" in wrong.stderr and "3" in wrong.stderr
    state = json.loads(holdfast(daemon.address, "inspect", "slots", "--json").stdout)
    assert state["mode"] == "PERMIT" and state["limit"] == 2 and state["holder_count"] == 2
    assert "permits of 2, 2 holders" in holdfast(daemon.address, "inspect", "slots").stdout
