# SPDX-License-Identifier: Apache-2.0
"""A session from bare stubs: what a language without a library of ours has to do, and no more.

Everything goes out through one generator, which also sends the pings, and comes in through one thread, in order.
Until when the client may believe what it was told is in holders_clock.py.
"""

import itertools
import queue
import threading
from concurrent.futures import Future
from contextlib import contextmanager

import grpc
from holdfast.v1 import lock_pb2_grpc, requests_pb2, session_pb2

from support.channels import channel_to
from support.holders_clock import Hold, SessionClock
from support.requests import (Refused, acquire_all_request, acquire_request, loss_name, outcome, refusal_of, seconds,
                              with_durations)
from support.waiting import boot_now, until

_END = object()


class RawSession:
    """`pings=False`: a client that falls silent. `acks=False`: one that never says lost_ack."""

    def __init__(self, address, pings=True, acks=True, channel=None, **open_fields):
        self._own_channel = channel is None
        self.channel = channel or channel_to(address)
        self._outgoing = queue.SimpleQueue()
        self._ids = itertools.count(1)
        self._pings = pings
        self._acks = acks
        self._lock = threading.Lock()
        self._batch = None  # commands that wait for the end of `batched`
        self._pending = {}  # request id -> (future, sent at)
        self._ping_sent = {}
        self.holds = {}  # hold id -> Hold, also of holds that are over
        self.arrived = []  # every event, in order
        self.lost = queue.SimpleQueue()
        self.contended = queue.SimpleQueue()
        self.draining = Future()
        self.ended = Future()  # the Refused that the stream ended with, or None

        open_message = session_pb2.SessionOpen(protocol=1, **with_durations(open_fields))
        self.clock = SessionClock(boot_now())
        self._opened = Future()
        self._outgoing.put(session_pb2.SessionRequest(open=open_message))
        self.call = lock_pb2_grpc.LockServiceStub(self.channel).Session(self._requests())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.opened = self._opened.result(10)
        self.session_id = self.opened.session_id

    # ---- Out

    def _requests(self):
        last_ping = boot_now()
        while True:
            try:
                message = self._outgoing.get(timeout=max(0.0, last_ping + self._ping_every() - boot_now()))
            except queue.Empty:
                last_ping = boot_now()
                if not self._pings or not self.clock.ttl:
                    continue
                message = self._ping()
            if message is _END:
                return
            yield message

    def _ping_every(self):
        """A third of what runs out first: a pong is also what tells of renewals."""
        if not self._pings:
            return 1
        leases = [hold.lease for hold in list(self.holds.values()) if not (hold.lost or hold.given_back)]
        return min([self.clock.ttl or 1, *leases]) / 3

    def _ping(self):
        request_id = next(self._ids)
        with self._lock:
            self._ping_sent[request_id] = boot_now()
        command = session_pb2.SessionCommand(request_id=request_id, ping=session_pb2.Ping())
        return session_pb2.SessionRequest(commands=[command])

    def ping(self):
        self._outgoing.put(self._ping())

    def begin(self, request_id=None, **command):
        """Sends one command, e.g. begin(release=...); a future with `request_id` that gets its reply."""
        future = Future()
        future.request_id = next(self._ids) if request_id is None else request_id
        message = session_pb2.SessionCommand(request_id=future.request_id, **command)
        with self._lock:
            if self.ended.done():
                future.set_exception(self.ended.result() or AssertionError("the session has ended"))
                return future
            self._pending[future.request_id] = (future, boot_now())
        if self._batch is not None:
            self._batch.append(message)
        else:
            self._outgoing.put(session_pb2.SessionRequest(commands=[message]))
        return future

    @contextmanager
    def batched(self):
        """The commands that are begun inside go out together, in messages of a thousand."""
        self._batch = []
        try:
            yield
        finally:
            commands, self._batch = self._batch, None
            for start in range(0, len(commands), 1000):
                self._outgoing.put(session_pb2.SessionRequest(commands=commands[start:start + 1000]))

    def send(self, message):
        """A message as it is, right or wrong."""
        self._outgoing.put(message)

    def begin_acquire(self, key, **fields):
        return self.begin(acquire=acquire_request(key, **fields))

    def try_acquire(self, key, within=30, **fields):
        """The answer."""
        return self.begin_acquire(key, **fields).result(within)

    def acquire(self, key, within=30, **fields):
        """The hold."""
        response = self.try_acquire(key, within, **fields)
        assert outcome(response) == "ACQUIRED", response
        return self.holds[response.grant.hold_id]

    def begin_acquire_all(self, keys, **fields):
        return self.begin(acquire_all=acquire_all_request(keys, **fields))

    def acquire_all(self, keys, within=30, **fields):
        """The holds, in the order of the keys."""
        response = self.begin_acquire_all(keys, **fields).result(within)
        assert outcome(response) == "ACQUIRED", response
        return [self.holds[grant.hold_id] for grant in response.grants]

    def begin_release(self, hold, **fields):
        claim = {"namespace": hold.namespace, "key": hold.key, "owner": hold.owner, "hold_id": hold.hold_id}
        return self.begin(release=requests_pb2.ReleaseRequest(**{**claim, **fields}))

    def release(self, hold, within=30, **fields):
        """Gives one acquire back; how often the owner still holds the key."""
        if hold.count <= 1:
            hold.given_back = True  # before the daemon can grant it on
        remaining = self.begin_release(hold, **fields).result(within).remaining_count
        hold.count -= 1
        return remaining

    def renew(self, hold, within=30, **fields):
        claim = {"namespace": hold.namespace, "key": hold.key, "owner": hold.owner, "hold_id": hold.hold_id}
        request = requests_pb2.RenewRequest(**{**claim, **with_durations(fields)})
        return self.begin(renew=request).result(within)

    def feed(self, hold, within=30):
        return self.begin(feed=session_pb2.Feed(hold_id=hold.hold_id)).result(within)

    def lost_ack(self, hold_id, within=30):
        return self.begin(lost_ack=session_pb2.LostAck(hold_id=hold_id)).result(within)

    def cancel(self, future):
        """Gives up a command in flight."""
        cancel = session_pb2.Cancel(cancelled_request_id=future.request_id)
        command = session_pb2.SessionCommand(request_id=next(self._ids), cancel=cancel)
        self._outgoing.put(session_pb2.SessionRequest(commands=[command]))

    def stop_pinging(self):
        self._pings = False

    # ---- In

    def _read(self):
        ended = None
        try:
            for message in self.call:
                for event in message.events:
                    self._on_event(event)
        except grpc.RpcError as error:
            ended = refusal_of(error)
        except Exception as error:  # a bug of the test's own: tell whoever waits
            ended = error
        if not self._opened.done():
            self._opened.set_exception(ended or AssertionError("the stream ended before it was opened"))
        with self._lock:
            pending, self._pending = self._pending, {}
            self.ended.set_result(ended)
        for future, _ in pending.values():
            future.set_exception(ended or AssertionError("the session has ended"))
        self._outgoing.put(_END)

    def _on_event(self, event):
        self.arrived.append(event)
        kind = event.WhichOneof("event")
        if kind == "opened":
            self.clock.on_opened(seconds(event.opened.ttl), seconds(event.opened.safety_margin))
            self._opened.set_result(event.opened)
        elif kind == "pong":
            self._on_pong(event.pong)
        elif kind == "lost":
            if event.lost.hold_id in self.holds:
                self.holds[event.lost.hold_id].lost = loss_name(event.lost)
            self.lost.put(event.lost)
            if self._acks:
                self.begin(lost_ack=session_pb2.LostAck(hold_id=event.lost.hold_id))
        elif kind == "contended":
            self.contended.put(event.contended)
        elif kind == "draining":
            self.draining.set_result(event.draining)
        else:
            self._on_reply(event.reply)

    def _on_pong(self, pong):
        with self._lock:
            sent = self._ping_sent.pop(pong.request_id)
        self.clock.on_pong(sent)
        if pong.HasField("valid_for"):
            for hold in self.holds.values():
                hold.on_pong(sent, seconds(pong.valid_for))

    def _on_reply(self, reply):
        with self._lock:
            future, sent = self._pending.pop(reply.request_id)
        kind = reply.WhichOneof("outcome")
        if kind == "error":
            return future.set_exception(Refused(reply.error))
        answer = getattr(reply, kind)
        if kind == "acquire" and outcome(answer) == "ACQUIRED":
            self._on_grant(sent, answer.grant)
        if kind == "acquire_all" and outcome(answer) == "ACQUIRED":
            for grant in answer.grants:
                self._on_grant(sent, grant)
        future.set_result(answer)

    def _on_grant(self, sent, grant):
        known = self.holds.get(grant.hold_id)
        if known:
            known.on_grant(sent, grant)
        else:
            self.holds[grant.hold_id] = Hold(self.clock, sent, grant)
            self._outgoing.put(session_pb2.SessionRequest())  # the next ping may be due earlier now

    # ---- The end

    def wait_lost(self, hold, within):
        """The reason of its loss, once the daemon has said it."""
        until(lambda: hold.lost, within, f"lost {hold.key}")
        return hold.lost

    def half_close(self):
        """Says that no more comes: the session's end."""
        self._outgoing.put(_END)

    def break_off(self):
        self.call.cancel()

    def close(self):
        self.half_close()
        self.call.cancel()
        self._reader.join(10)
        if self._own_channel:
            self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
