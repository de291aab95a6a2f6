# SPDX-License-Identifier: Apache-2.0
"""Watching keys: on both stores, across daemons, through breaks, and for a client that does not read."""

import contextlib
import json
import queue
import signal
import threading

import grpc
import pytest
from holdfast.v1 import lock_pb2, lock_pb2_grpc, types_pb2

from support.channels import channel_to
from support.cli import holdfast, start_holdfast
from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import Refused, refusal_of
from support.unary_client import UnaryClient
from support.waiting import boot_now, until

OWNER = "an-owner-of-the-tests"


def short(event):
    """"granted k", or "lost k FORCED", or "gap"."""
    kind = lock_pb2.WatchEventKind.Name(event.kind).removeprefix("WATCH_EVENT_KIND_").lower()
    reason = types_pb2.LossReason.Name(event.loss_reason).removeprefix("LOSS_REASON_") if event.loss_reason else ""
    return " ".join(word for word in (kind, event.key, reason) if word)


class Watcher:
    """Reads from a thread of its own; begun when it is made."""

    def __init__(self, address, prefix="", namespace=""):
        self.channel = channel_to(address)
        request = lock_pb2.WatchRequest(prefix=prefix, namespace=namespace)
        self.call = lock_pb2_grpc.LockServiceStub(self.channel).Watch(request)
        try:
            assert not next(self.call).events
        except grpc.RpcError as error:
            raise refusal_of(error) from None
        self.events = []
        self.ended = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for response in self.call:
                assert response.events
                self.events.extend(response.events)
            self.ended.put(None)
        except grpc.RpcError as error:
            self.ended.put(refusal_of(error))

    def heard(self):
        return [short(event) for event in self.events]

    def wait_for(self, *wanted, within=10):
        """Until exactly these were heard."""
        try:
            until(lambda: len(self.events) >= len(wanted), within, f"{wanted} are heard")
        finally:
            assert self.heard() == list(wanted)

    def close(self):
        self.call.cancel()
        self.channel.close()


@pytest.fixture
def watch(daemon):
    watchers = []

    def begin(**fields):
        watchers.append(Watcher(fields.pop("address", daemon.address), **fields))
        return watchers[-1]

    yield begin
    for watcher in watchers:
        watcher.close()


@pytest.fixture
def redis_daemon(redis_server):
    with Daemon(redis_server.url, "--no-grace", "--max-lease=2s") as running:
        yield running


def test_the_life_of_a_lock_is_told_in_its_order(watch, client, open_session):
    watcher = watch()
    holder, waiter = open_session(), open_session()
    hold = holder.acquire("k", note="job 7")
    waiting = waiter.begin_acquire("k", wait=20, note="job 8")
    client.wait_queue("k", 1)
    holder.release(hold)
    next_hold = waiting.result(5).grant
    waiter.close()
    watcher.wait_for("granted k", "waiting k", "released k", "granted k", "lost k SESSION_CLOSED")
    granted, waits, released, granted_on, lost = watcher.events
    assert granted.note == released.note == "job 7" and waits.note == granted_on.note == lost.note == "job 8"
    assert granted.hold_id == released.hold_id == hold.hold_id and lost.hold_id == next_hold.hold_id
    assert granted.fencing_token == hold.token and granted_on.fencing_token == next_hold.fencing_token
    assert waits.queue_length == 1 and not waits.hold_id
    assert granted.owner_fingerprint != waits.owner_fingerprint == granted_on.owner_fingerprint


def test_a_prefix_and_a_namespace_choose_the_keys(watch, client):
    some, other, all_of_it = watch(prefix="jobs/"), watch(namespace="other"), watch()
    client.acquire("jobs/1")
    client.acquire("job")
    client.acquire("jobs/1", namespace="other")
    some.wait_for("granted jobs/1")
    other.wait_for("granted jobs/1")
    all_of_it.wait_for("granted jobs/1", "granted job")


def test_what_is_wrong_with_a_watch_is_said(watch):
    for fields, field in ((dict(prefix="x" * 513), "prefix"), (dict(namespace="No"), "namespace")):
        with pytest.raises(Refused) as refused:
            watch(**fields)
        assert refused.value == ("INVALID_ARGUMENT", "INVALID_FIELD") and refused.value.field == field


def test_the_end_of_a_bare_lease_is_told(watch, client):
    before = client.acquire("k", lease=1)
    watcher = watch(prefix="k")
    client.acquire("k2", lease=0.5)
    began = boot_now()
    watcher.wait_for("granted k2", "lost k2 LEASE_EXPIRED", "lost k LEASE_EXPIRED")
    assert boot_now() - began < 4
    assert watcher.events[2].hold_id == before.hold_id


def test_keys_of_a_set_are_told_when_all_are_held(watch, client, open_session):
    watcher = watch()
    other = client.acquire("b")
    session = open_session()
    waiting = session.begin_acquire_all(["a", "b"], wait=20)
    client.wait_queue("b", 1)
    client.wait_free("a", 5)
    tried = client.try_acquire_all(["a", "b"])
    assert tried.busy_key == "b"
    client.release(other)
    assert len(waiting.result(10).grants) == 2
    watcher.wait_for("granted b", "waiting b", "released b", "granted a", "granted b")
    session.close()
    until(lambda: len(watcher.events) == 7, 5, "both are lost")


def test_a_client_that_does_not_read_is_told_of_the_gap_and_harms_nobody(memory):
    keys = 12_800
    with Daemon(memory) as daemon, UnaryClient(daemon.address) as client:
        # Without what grows the buffers of the connection.
        channel = channel_to(daemon.address, ("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65536))
        lazy = lock_pb2_grpc.LockServiceStub(channel).Watch(lock_pb2.WatchRequest())
        assert not next(lazy).events
        keen = Watcher(daemon.address)
        for n in range(0, keys, 16):
            client.acquire_all([f"k{n + i}" for i in range(16)], note="x" * 1000)
        until(lambda: len(keen.events) == keys, 20, "the keen one hears everything")
        assert "gap" not in keen.heard()
        client.acquire("end")
        heard = []
        while "granted end" not in heard[-1:]:
            heard.extend(short(event) for event in next(lazy).events)
        assert heard.count("gap") == 1 and len(heard) < keys
        lazy.cancel()
        channel.close()
        keen.close()


def test_two_daemons_tell_each_other_in_order(redis_server, redis_daemon):
    with Daemon(redis_server.url, "--no-grace", "--max-lease=2s") as other, \
            UnaryClient(redis_daemon.address) as one, UnaryClient(other.address) as two:
        watchers = [Watcher(redis_daemon.address), Watcher(other.address)]
        rounds = 200

        def work(client):
            for _ in range(rounds):
                client.release(client.acquire("k", wait=60, lease=2))

        threads = [threading.Thread(target=work, args=(client,)) for client in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for watcher in watchers:
            until(lambda: len([e for e in watcher.heard() if e != "waiting k"]) >= 4 * rounds, 10, "all are heard")
            held, token = None, 0
            for event in watcher.events:
                name = short(event)
                if name == "granted k":
                    assert held is None and event.fencing_token > token
                    held, token = event.hold_id, event.fencing_token
                elif name == "released k":
                    assert event.hold_id == held
                    held = None
                else:
                    assert name == "waiting k"
            watcher.close()


def test_a_dead_daemons_hold_is_lost(redis_server, redis_daemon):
    watcher = Watcher(redis_daemon.address)
    with Daemon(redis_server.url, "--no-grace", "--max-lease=2s") as other:
        session = RawSession(other.address, lease=1)
        session.acquire("k")
        watcher.wait_for("granted k")
        other.kill()
        watcher.wait_for("granted k", "lost k LEASE_EXPIRED")
    watcher.close()


def test_another_daemons_loss_and_wait_are_told(redis_server, redis_daemon):
    watcher = Watcher(redis_daemon.address)
    with Daemon(redis_server.url, "--no-grace", "--max-lease=2s") as other, UnaryClient(other.address) as client:
        session = RawSession(other.address, lease=1)
        session.acquire("k", max_hold=1.5)
        waiting = client.begin_acquire("k", wait=20)
        waiting.result(10)
        watcher.wait_for("granted k", "waiting k", "lost k MAX_HOLD", "granted k")
        session.close()
    watcher.close()


def kill_subscriptions(server):
    server.client.client_kill_filter(_type="pubsub")


def restart(server):
    server.restart()


def flush(server):
    server.client.flushall()


@pytest.mark.parametrize("harm", [kill_subscriptions, restart, flush])
def test_what_may_have_been_missed_is_said(redis_server, redis_daemon, harm):
    watcher = Watcher(redis_daemon.address)
    with UnaryClient(redis_daemon.address) as client:
        client.acquire("k", lease=2)
        watcher.wait_for("granted k")
        harm(redis_server)
        with contextlib.suppress(Refused):
            client.try_acquire("seen")
        until(lambda: "gap" in watcher.heard(), 15, "the gap is told")
        redis_daemon.wait_serving()
        grant = client.acquire("after", lease=2, wait=20)
        until(lambda: watcher.heard()[-1] == "granted after", 10, "it goes on after that")
        assert watcher.heard().count("gap") <= 2 and grant.key == "after"
    watcher.close()


def test_nothing_is_published_while_nobody_watches(redis_server, redis_daemon):
    def published():
        stats = redis_server.client.info("commandstats")
        return stats.get("cmdstat_publish", {"calls": 0})["calls"]

    with UnaryClient(redis_daemon.address) as client:
        client.release(client.acquire("k"))
        assert published() == 0
        watcher = Watcher(redis_daemon.address)
        assert redis_server.client.pubsub_numsub("holdfast:#watch") == [(b"holdfast:#watch", 1)]
        client.release(client.acquire("k"))
        watcher.wait_for("granted k", "released k")
        assert published() == 2
        watcher.close()
        until(lambda: redis_server.client.pubsub_numsub("holdfast:#watch") == [(b"holdfast:#watch", 0)], 5,
              "it is unsubscribed")


def test_a_release_by_another_program_is_not_told_but_the_next_grant_tells_the_loss(redis_server, redis_daemon):
    watcher = Watcher(redis_daemon.address)
    with UnaryClient(redis_daemon.address) as client:
        client.acquire("k", lease=2)
        redis_server.client.delete("holdfast:default:k")
        client.acquire("k", lease=2)
        until(lambda: len(watcher.events) >= 3, 5, "three are heard")
        assert watcher.heard()[:3] == ["granted k", "lost k LEASE_EXPIRED", "granted k"]
    watcher.close()


def test_the_end_of_the_daemon_ends_a_watch(daemon, watch):
    watcher = watch()
    daemon.program.signal(signal.SIGTERM)
    assert watcher.ended.get(timeout=20).code == "UNAVAILABLE"


def test_the_command_line_shows_it_to_people_and_programs(daemon, client):
    people = start_holdfast(daemon.address, "watch", "jobs/")
    programs = start_holdfast(daemon.address, "watch", "--json")
    for program in (people, programs):
        program.err.wait_for(lambda line: "watching" in line, 10)
    grant = client.acquire("jobs/1", note="a job")
    client.release(grant)
    line = people.out.wait_for(lambda l: l.startswith("released"), 5)
    assert "jobs/1" in line and "(a job)" in line and f"token {grant.fencing_token}" in line
    event = json.loads(programs.out.wait_for(lambda l: "released" in l, 5))
    assert event == {"event": "released", "key": "jobs/1", "mode": "exclusive", "note": "a job",
                     "hold_id": grant.hold_id, "fencing_token": grant.fencing_token,
                     "owner_fingerprint": event["owner_fingerprint"]}
    for program in (people, programs):
        program.kill()
    assert holdfast(daemon.address, "watch", "a", "b").returncode == 64
