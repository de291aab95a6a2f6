# SPDX-License-Identifier: Apache-2.0
"""Fixtures: every test has servers of its own, in a folder of its own, and none is left behind."""

import tempfile

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.redis_server import RedisServer
from support.unary_client import UnaryClient


@pytest.fixture
def folder():
    # Short, because the path of a Unix socket is.
    with tempfile.TemporaryDirectory(prefix="holdfast-") as path:
        yield path


@pytest.fixture
def memory(folder):
    """An embedded store's URL, with a state folder that a restart finds again."""
    return f"memory:{folder}/state"


@pytest.fixture
def redis_server(folder):
    with RedisServer(folder) as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def store(request):
    """The URL of a store; each test that uses it runs once a store."""
    if request.param == "memory":
        return request.getfixturevalue("memory")
    return request.getfixturevalue("redis_server").url


@pytest.fixture
def daemon(store):
    with Daemon(store, "--no-grace") as running:
        yield running


@pytest.fixture
def client(daemon):
    with UnaryClient(daemon.address) as connected:
        yield connected


@pytest.fixture
def open_session(daemon):
    """Opens sessions on the daemon, which end with the test."""
    sessions = []

    def open_one(**fields):
        sessions.append(RawSession(daemon.address, **fields))
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()
