# SPDX-License-Identifier: Apache-2.0
"""Requests from plain arguments (durations in seconds), and errors as the contract describes them."""

import grpc
from google.protobuf.duration_pb2 import Duration
from holdfast.v1 import requests_pb2, types_pb2

_DURATIONS = ("lease", "wait", "max_hold", "min_hold", "feed", "ttl", "reconnect_grace")


def duration(seconds):
    """A Duration of a number of seconds; one that is one already stays."""
    if isinstance(seconds, Duration):
        return seconds
    result = Duration()
    result.FromNanoseconds(round(seconds * 1e9))
    return result


def seconds(duration_message):
    return duration_message.ToNanoseconds() / 1e9


def with_durations(fields):
    return {name: duration(value) if name in _DURATIONS else value
            for name, value in fields.items() if value is not None}


def acquire_request(key, **fields):
    return requests_pb2.AcquireRequest(key=key, **with_durations(fields))


def acquire_all_request(keys, **fields):
    """Keys are texts (EXCLUSIVE) or KeyAndMode messages."""
    wanted = [requests_pb2.KeyAndMode(key=key) if isinstance(key, str) else key for key in keys]
    return requests_pb2.AcquireAllRequest(keys=wanted, **with_durations(fields))


class Refused(Exception):
    """An error of the contract, from a stream or from a unary call."""

    def __init__(self, error):
        self.code = next(c.name for c in grpc.StatusCode if c.value[0] == error.code)
        self.reason = types_pb2.ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_")
        self.field = error.field
        self.message = error.message
        self.retry_after = seconds(error.retry_after) if error.HasField("retry_after") else None
        super().__init__(f"{self.code} {self.reason} {self.field}: {self.message}")

    def __eq__(self, other):
        return (self.code, self.reason) == other


def refusal_of(rpc_error):
    """What a failed call says in its trailing metadata, checked to say the same thing three times."""
    metadata = dict(rpc_error.trailing_metadata() or ())
    packed = metadata.get("holdfast-error-bin")
    if packed is None:
        error = types_pb2.Error(code=rpc_error.code().value[0], message=rpc_error.details() or "")
        return Refused(error)
    refused = Refused(types_pb2.Error.FromString(packed))
    assert refused.code == rpc_error.code().name
    assert metadata["holdfast-reason"] == refused.reason
    assert metadata.get("holdfast-field", "") == refused.field
    assert refused.message == rpc_error.details()
    return refused


def loss_name(lost):
    return types_pb2.LossReason.Name(lost.reason).removeprefix("LOSS_REASON_")


def outcome(response):
    """ACQUIRED, or why not."""
    granted = response.grants if hasattr(response, "grants") else response.HasField("grant")
    if response.outcome == types_pb2.OUTCOME_ACQUIRED:
        assert granted and not response.reason
        return "ACQUIRED"
    assert response.outcome == types_pb2.OUTCOME_NOT_ACQUIRED and not granted
    return types_pb2.NotAcquiredReason.Name(response.reason).removeprefix("NOT_ACQUIRED_REASON_")
