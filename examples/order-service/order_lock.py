# SPDX-License-Identifier: Apache-2.0
"""A lock around a short piece of work: a bare lease, taken and given back with one call each."""

import time
import uuid

import grpc
from google.protobuf.duration_pb2 import Duration
from holdfast.v1 import lock_pb2_grpc, requests_pb2, types_pb2

WAIT_SECONDS = 2
LEASE_SECONDS = 10


class Busy(Exception):
    """Somebody else held the lock for as long as we were willing to wait."""


def boot_clock():
    """Monotonic, and counts the time that the machine sleeps: a lease does not wait for us to wake up."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def to_seconds(duration):
    return duration.seconds + duration.nanos / 1e9


class Locks:
    def __init__(self, address):
        self._stub = lock_pb2_grpc.LockServiceStub(grpc.insecure_channel(address))

    def hold(self, key):
        """`with locks.hold(key) as hold:`; raises Busy, or grpc.RpcError when there is no daemon."""
        return _Hold(self._stub, key)


class _Hold:
    def __init__(self, stub, key):
        self._stub, self._key = stub, key

    def __enter__(self):
        request = requests_pb2.AcquireRequest(
            key=self._key, wait=Duration(seconds=WAIT_SECONDS), lease=Duration(seconds=LEASE_SECONDS),
            command_id=uuid.uuid4().hex)
        sent = boot_clock()
        answer = self._stub.Acquire(request, timeout=WAIT_SECONDS + 3)
        if answer.outcome != types_pb2.OUTCOME_ACQUIRED:
            raise Busy(self._key)
        self._grant = answer.grant
        # From when we asked, not from when we heard: the answer may have been on its way for a while.
        self._valid_until = sent + to_seconds(answer.grant.waited) + to_seconds(answer.grant.lease) - to_seconds(
            answer.grant.safety_margin)
        return self

    @property
    def token(self):
        return self._grant.fencing_token

    def seconds_left(self):
        """Look at it before each step that relies on the lock."""
        return self._valid_until - boot_clock()

    def __exit__(self, *_):
        claim = requests_pb2.ReleaseRequest(
            namespace=self._grant.namespace, key=self._grant.key, owner=self._grant.owner, hold_id=self._grant.hold_id)
        try:
            self._stub.Release(claim, timeout=3)
        except grpc.RpcError:
            pass  # over already, or the daemon is gone: it ends with its lease
