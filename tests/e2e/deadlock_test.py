# SPDX-License-Identifier: Apache-2.0
"""Owners who wait for each other: the wait that closes the cycle is refused with its names, the others go on."""

import json

from support.cli import holdfast
from support.requests import outcome
from support.unary_client import UnaryClient


def names(response):
    return [(step.key, step.owner_fingerprint, step.note) for step in response.cycle]


def test_two_sessions_in_opposite_order_do_not_wait_for_each_other(client, open_session):
    alice, bob = open_session(), open_session()
    a, b = alice.acquire("a"), bob.acquire("b")
    alice_waits = alice.begin_acquire("b", owner=a.owner, wait=20, note="job 1")
    client.wait_queue("b", 1)
    refused = bob.try_acquire("a", owner=b.owner, wait=20, note="job 2")
    assert outcome(refused) == "DEADLOCK"
    fingerprints = [client.inspect(key).holders[0].owner_fingerprint for key in ("a", "b")]
    assert names(refused) == [("a", fingerprints[1], "job 2"), ("b", fingerprints[0], "job 1")]
    assert not alice_waits.done()
    bob.release(b)
    assert outcome(alice_waits.result(5)) == "ACQUIRED"


def test_bare_leases_in_opposite_order_do_not_wait_for_each_other(daemon, client):
    a, b = client.acquire("a"), client.acquire("b")
    with UnaryClient(daemon.address) as other:
        waits = other.begin_acquire("b", owner=a.owner, wait=20)
        client.wait_queue("b", 1)
        assert outcome(client.try_acquire("a", owner=b.owner, wait=20)) == "DEADLOCK"
        client.release(b)
        assert outcome(waits.result(5)) == "ACQUIRED"


def test_the_command_line_says_who_waits_for_whom(daemon, client, open_session):
    session = open_session()
    a, b = session.acquire("a"), client.acquire("b", note="the other one")
    session.begin_acquire("b", owner=a.owner, wait=20, note="job 1")
    client.wait_queue("b", 1)
    command = ("acquire", "a", "--wait=20s", f"--owner={b.owner}")
    text = holdfast(daemon.address, *command)
    assert text.returncode == 124 and "would never be free" in text.stderr and "job 1" in text.stderr
    assert b.owner not in text.stderr
    answer = json.loads(holdfast(daemon.address, *command, "--json").stdout)
    assert answer["reason"] == "DEADLOCK" and [step["key"] for step in answer["cycle"]] == ["a", "b"]
