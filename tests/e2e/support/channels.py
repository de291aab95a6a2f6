# SPDX-License-Identifier: Apache-2.0
"""Channels as a client of its own has them: not shared with other clients of the same process."""

import grpc

_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
]


def channel_to(address, *options):
    return grpc.insecure_channel(address, options=[*_OPTIONS, *options])
