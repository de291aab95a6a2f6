# SPDX-License-Identifier: Apache-2.0
"""--release-delay: a key is kept back after an abnormal end, and only then."""

import pytest

from support.daemon import Daemon
from support.requests import outcome, seconds
from support.waiting import boot_now

DELAY = 0.8


@pytest.fixture
def daemon(store):
    with Daemon(store, "--no-grace", f"--release-delay=default:printer/={int(DELAY * 1000)}ms") as running:
        yield running


def test_a_session_that_ends_without_a_release_keeps_its_key_back(client, open_session):
    session = open_session()
    session.acquire("printer/1")
    session.acquire("disk/1")
    ended = boot_now()
    session.close()
    client.wait_free("disk/1", 2)
    state = client.inspect("printer/1")
    assert not state.free and not state.holders and 0 < seconds(state.kept_for) <= DELAY
    assert outcome(client.try_acquire("printer/1")) == "BUSY"
    client.acquire("printer/1", wait=10)
    assert DELAY <= boot_now() - ended < DELAY + 3


def test_a_bare_lease_that_runs_out_keeps_its_key_back(client):
    client.acquire("printer/1", lease=0.3)
    granted = boot_now()
    client.acquire("printer/1", wait=10)
    assert boot_now() - granted >= 0.3 + DELAY - 0.1


def test_a_release_is_not_delayed(client):
    client.release(client.acquire("printer/1"))
    client.release(client.acquire("printer/1"))
    assert client.inspect("printer/1").free
