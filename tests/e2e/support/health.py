# SPDX-License-Identifier: Apache-2.0
"""gRPC's health and reflection services, in the few bytes of their protocols that the tests need."""

import grpc

from support.channels import channel_to

_STATES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


def _same(data):
    return data


def check(address, service=""):
    """SERVING, NOT_SERVING, or the name of the status that the call ended with."""
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name  # field 1: the service
    with channel_to(address) as channel:
        call = channel.unary_unary("/grpc.health.v1.Health/Check", _same, _same)
        try:
            answer = call(request, timeout=5)
        except grpc.RpcError as error:
            return error.code().name
    return _STATES[answer[1] if answer else 0]  # field 1: the state


def reflected(address):
    """What the reflection service answers to the question which services there are."""
    with channel_to(address) as channel:
        method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        call = channel.stream_stream(method, _same, _same)(iter([b"\x3a\x00"]), timeout=5)  # list_services: ""
        return b"".join(call)
