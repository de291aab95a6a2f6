# SPDX-License-Identifier: Apache-2.0
"""Bare leases and questions: what a client without a session can do."""

import grpc
from holdfast.v1 import lock_pb2, lock_pb2_grpc, requests_pb2

from support.channels import channel_to
from support.requests import acquire_all_request, acquire_request, outcome, refusal_of, with_durations
from support.waiting import until


class UnaryClient:
    def __init__(self, address):
        self.channel = channel_to(address)
        self.stub = lock_pb2_grpc.LockServiceStub(self.channel)

    def call(self, method, request, timeout=30):
        """The answer; raises Refused for the contract's errors."""
        try:
            return getattr(self.stub, method)(request, timeout=timeout)
        except grpc.RpcError as error:
            raise refusal_of(error) from None

    def try_acquire(self, key, timeout=30, **fields):
        return self.call("Acquire", acquire_request(key, **fields), timeout)

    def acquire(self, key, **fields):
        """The grant."""
        response = self.try_acquire(key, **fields)
        assert outcome(response) == "ACQUIRED", response
        return response.grant

    def begin_acquire(self, key, timeout=30, **fields):
        return self.stub.Acquire.future(acquire_request(key, **fields), timeout=timeout)

    def try_acquire_all(self, keys, timeout=30, **fields):
        return self.call("AcquireAll", acquire_all_request(keys, **fields), timeout)

    def acquire_all(self, keys, **fields):
        """The grants, in the order of the keys."""
        response = self.try_acquire_all(keys, **fields)
        assert outcome(response) == "ACQUIRED", response
        return response.grants

    def release(self, grant, **fields):
        """How often the owner still holds the key."""
        return self.call("Release", _claim(requests_pb2.ReleaseRequest, grant, fields)).remaining_count

    def begin_release(self, grant, timeout=30, **fields):
        return self.stub.Release.future(_claim(requests_pb2.ReleaseRequest, grant, fields), timeout=timeout)

    def renew(self, grant, **fields):
        return self.call("Renew", _claim(requests_pb2.RenewRequest, grant, fields))

    def inspect(self, key, namespace=""):
        return self.call("Inspect", lock_pb2.InspectRequest(key=key, namespace=namespace)).state

    def list(self, prefix="", namespace=""):
        call = self.stub.List(lock_pb2.ListRequest(prefix=prefix, namespace=namespace), timeout=30)
        return [state for page in call for state in page.keys]

    def wait_free(self, key, within):
        until(lambda: self.inspect(key).free, within, f"{key} is free")

    def wait_queue(self, key, length, within=5):
        """Until so many stand in line."""
        until(lambda: self.inspect(key).queue_length == length, within, f"{length} wait for {key}")

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _claim(kind, grant, changed):
    fields = {"namespace": grant.namespace, "key": grant.key, "owner": grant.owner, "hold_id": grant.hold_id}
    return kind(**{**fields, **with_durations(changed)})
