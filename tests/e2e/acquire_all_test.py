# SPDX-License-Identifier: Apache-2.0
"""Several keys at once: all or nothing, in whatever order, and nothing half held for long."""

import itertools
import json
import threading

import pytest
from holdfast.v1 import requests_pb2, types_pb2

from support.cli import HOLDFAST, holdfast, start_holdfast
from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.unary_client import UnaryClient
from support.waiting import boot_now, until

OWNER = "an-owner-that-nobody-guesses"
CLIENTS = 100
ROUNDS = 10  # of each
BOUND = 0.2
SLACK = 0.1


def test_all_keys_are_held_until_each_is_released(client, open_session):
    session = open_session()
    holds = session.acquire_all(["b", "a", "c"])
    assert [hold.key for hold in holds] == ["b", "a", "c"]
    assert len({hold.owner for hold in holds}) == 1
    assert outcome(client.try_acquire("a")) == "BUSY"
    assert session.release(holds[1]) == 0
    assert client.inspect("a").free and not client.inspect("b").free
    session.close()
    for key in "bc":
        client.wait_free(key, 5)


def test_a_busy_key_is_named_and_nothing_is_kept(client):
    held = client.acquire("b", note="the one in the way")
    answer = client.try_acquire_all(["a", "b", "c"])
    assert outcome(answer) == "BUSY" and answer.busy_key == "b"
    assert [holder.note for holder in answer.holders] == ["the one in the way"]
    begun = boot_now()
    answer = client.try_acquire_all(["c", "b", "a"], wait=0.5)
    assert outcome(answer) == "WAIT_EXPIRED" and answer.busy_key == "b"
    assert 0.5 <= boot_now() - begun < 2
    for key in "ac":
        client.wait_free(key, 1)
    client.release(held)


def test_a_set_waits_holding_nothing(client, open_session):
    held = client.acquire("b")
    session = open_session()
    waiting = session.begin_acquire_all(["a", "b"], wait=20)
    client.wait_queue("b", 1)
    client.wait_free("a", 2)
    client.release(held)
    assert outcome(waiting.result(5)) == "ACQUIRED"
    assert session.contended.empty() and session.lost.empty()


def test_a_set_that_is_given_up_leaves_nothing(client, open_session):
    held = client.acquire("b")
    session = open_session()
    waiting = session.begin_acquire_all(["a", "b"], wait=20)
    client.wait_queue("b", 1)
    session.cancel(waiting)
    with pytest.raises(Refused) as refused:
        waiting.result(5)
    assert refused.value == ("CANCELLED", "CANCELLED")
    client.wait_free("a", 5)
    client.wait_queue("b", 0)
    client.release(held)


def test_a_repeated_set_is_answered_again(client, open_session):
    session = open_session()
    for who in (client, session):
        first = who.acquire_all(["a", "b"], command_id="once", owner=OWNER)
        again = who.acquire_all(["a", "b"], command_id="once", owner=OWNER)
        assert [grant.hold_id for grant in again] == [grant.hold_id for grant in first]
        for grant in first:
            who.release(grant)
        assert client.inspect("a").free and client.inspect("b").free


def test_sets_of_one_owner_overlap(client, open_session):
    session = open_session()
    outer = session.acquire_all(["a", "b"], owner=OWNER)
    session.acquire_all(["b", "c"], owner=OWNER)
    assert session.release(outer[1]) == 1, "the inner set's b stays"
    assert not client.inspect("b").free


def test_each_key_has_a_mode_of_its_own(client, open_session):
    keys = [requests_pb2.KeyAndMode(key="read", mode=types_pb2.MODE_SHARED),
            requests_pb2.KeyAndMode(key="slot", mode=types_pb2.MODE_PERMIT, limit=2)]
    for _ in range(2):
        open_session().acquire_all(keys)
    assert client.try_acquire_all(keys).busy_key == "slot"


def test_what_is_wrong_names_its_key(client):
    for keys, field in ((["a", "b", "a"], "keys[2].key"), ([], "keys"), (["a", ""], "keys[1].key"),
                        ([f"k{n}" for n in range(17)], "keys")):
        with pytest.raises(Refused) as refused:
            client.try_acquire_all(keys)
        assert refused.value == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.value.field == field


def test_a_command_runs_under_several_locks(daemon, client):
    ran = holdfast(daemon.address, "run", "b", "--key=a", "--key=c d", "--", "sh", "-c",
                   'echo "$HOLDFAST_TOKEN $HOLDFAST_KEY"; echo "$HOLDFAST_TOKENS"')
    assert ran.returncode == 0, ran.stderr
    first, *lines = ran.stdout.splitlines()
    assert lines[0] == first and [line.split(" ", 1)[1] for line in lines] == ["b", "a", "c d"]
    for key in ("a", "b", "c d"):
        assert client.inspect(key).free
    held = client.acquire("a", note="job 7")
    ran = holdfast(daemon.address, "run", "b", "--key=a", "--wait=0", "--", "echo", "ran")
    assert ran.returncode == 124 and ran.stdout == "" and "a is busy" in ran.stderr and "job 7" in ran.stderr
    client.release(held)


def test_a_run_inside_takes_one_of_the_locks_around_it_again(daemon, client):
    inner = f"{HOLDFAST} --address={daemon.address} run b --key=c --wait=0 -- echo inside"
    ran = holdfast(daemon.address, "run", "a", "--key=b", "--", "sh", "-c", inner)
    assert ran.returncode == 0 and ran.stdout == "inside\n", ran.stderr


def test_the_loss_of_one_lock_is_the_loss_of_all(redis_server):
    with Daemon(redis_server.url, "--no-grace") as daemon, UnaryClient(daemon.address) as client:
        command = ["run", "a", "--key=b", "--lease=2s", "--", "sh", "-c", "echo begun; sleep 60"]
        with start_holdfast(daemon.address, *command) as ran:
            ran.out.wait_for("begun", 10)
            redis_server.client.delete("holdfast:default:b")
            assert ran.wait() == 125
            assert "lost the lock b" in ran.err.text()
        assert client.inspect("a").free and client.inspect("b").free


def test_acquire_prints_each_lock(daemon, client):
    ran = holdfast(daemon.address, "--json", "acquire", "a", "--key=b")
    locks = json.loads(ran.stdout)["locks"]
    assert [lock["key"] for lock in locks] == ["a", "b"]
    for lock in locks:
        ran = holdfast(daemon.address, "release", lock["key"], f"--owner={lock['owner']}",
                       f"--hold-id={lock['hold_id']}")
        assert ran.returncode == 0, ran.stderr
    assert client.inspect("a").free and client.inspect("b").free


class PartialHolds:
    """Asks again and again who holds each of two keys; how long somebody surely held one without the other."""

    def __init__(self, client, keys):
        self.longest = 0
        self.seen = 0
        self._client, self._keys = client, keys
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self):
        since = {}
        while not self._over.is_set():
            begun = boot_now()
            holders = [{holder.hold_id: holder.owner_fingerprint for holder in self._client.inspect(key).holders
                        if holder.note == "set"} for key in self._keys]
            owners = [set(held.values()) for held in holders]
            partial = {hold for held, others in zip(holders, reversed(owners))
                       for hold, owner in held.items() if owner not in others}
            since = {hold: since.get(hold, boot_now()) for hold in partial}
            self.seen += len(partial)
            self.longest = max([self.longest, *(begun - at for at in since.values())])

    def stop(self):
        self._over.set()
        self._thread.join(30)


class Crowd:
    """Clients that want the same two keys in opposite orders."""

    def __init__(self, address):
        self.address = address
        self.turns = itertools.count()
        self.errors = []
        self.inside = set()
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(CLIENTS)]

    def run(self):
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(100)
            assert not thread.is_alive(), "a client hangs"

    def _work(self, number):
        keys = ["a", "b"] if number % 2 else ["b", "a"]
        try:
            with UnaryClient(self.address) if number % 4 < 2 else RawSession(self.address) as client:
                for _ in range(ROUNDS):
                    holds = client.acquire_all(keys, wait=60, within=70, note="set") if number % 4 >= 2 else \
                        client.acquire_all(keys, wait=60, timeout=70, note="set")
                    self.inside.add(number)
                    assert self.inside == {number}, f"{self.inside} are inside together"
                    self.inside.discard(number)
                    next(self.turns)
                    for hold in holds:
                        client.release(hold)
        except Exception as error:
            self.errors.append(f"client {number}: {error!r}")


def test_100_clients_with_opposite_orders_never_deadlock(daemon, client):
    looker = UnaryClient(daemon.address)
    partial = PartialHolds(looker, ["a", "b"])
    # Somebody who wants one of the keys alone, and keeps it until a set has met it half held.
    alone = threading.Thread(target=_hold_alone, args=(daemon.address, partial, 3))
    crowd = Crowd(daemon.address)
    alone.start()
    try:
        crowd.run()
    finally:
        alone.join(60)
        partial.stop()
        looker.close()
    assert crowd.errors == []
    assert next(crowd.turns) == CLIENTS * ROUNDS
    assert partial.seen > 0
    assert partial.longest <= BOUND + SLACK, f"{partial.seen} partial holds seen"
    until(lambda: client.inspect("a").free and client.inspect("b").free, 5, "both keys are free")


def _hold_alone(address, partial, times):
    with RawSession(address) as session:
        for _ in range(times):
            hold = session.acquire("b", wait=60, within=70)
            seen = partial.seen
            until(lambda: partial.seen > seen, 20, "a set holds a and waits for b")
            session.release(hold)
