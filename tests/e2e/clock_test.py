# SPDX-License-Identifier: Apache-2.0
"""The daemon's machine is told another time of day: no lock notices."""

import datetime
import pathlib
import struct
import subprocess

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession
from support.requests import outcome, seconds
from support.unary_client import UnaryClient
from support.waiting import boot_now, stays

HOUR = 3600


class WallClock:
    """The daemon's time of day, which jumps."""

    def __init__(self, folder):
        self._file = pathlib.Path(folder, "shift")
        self.jump(0)
        library = f"{folder}/clock_shim.so"
        source = pathlib.Path(__file__).parent / "support/clock_shim.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.env = {"LD_PRELOAD": library, "HOLDFAST_TEST_SHIFT": str(self._file)}

    def jump(self, by):
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", by))


@pytest.fixture
def wall(folder):
    return WallClock(folder)


@pytest.fixture
def daemon(store, wall):
    with Daemon(store, "--no-grace", env=wall.env) as running:
        yield running


def logged_time(line):
    return datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_jump_of_the_time_of_day_changes_nothing(daemon, client, wall, open_session, hours):
    session = open_session(ttl=2, lease=1)
    hold = session.acquire("k")
    bare = client.acquire("bare", lease=1.5)
    asked = boot_now()
    waiting = open_session(ttl=2).begin_acquire("k", wait=3)
    client.wait_queue("k", 1)
    wall.jump(hours * HOUR)
    stays(lambda: hold.is_valid() and not client.inspect("bare").free, 1, "what is held")
    assert seconds(client.renew(bare, lease=1.5).lease) == pytest.approx(1.5, abs=0.05)
    renewed = boot_now()
    assert not waiting.done()
    assert outcome(waiting.result(5)) == "WAIT_EXPIRED" and boot_now() - asked == pytest.approx(3, abs=0.5)
    client.wait_free("bare", renewed + 2 - boot_now())
    assert boot_now() - renewed > 1.3
    assert hold.is_valid() and session.release(hold) == 0
    assert client.acquire("k").fencing_token > hold.token
    # That the daemon did see another time of day:
    daemon.program.signal(15)
    line = daemon.log.wait_for("draining", 5)
    assert logged_time(line) - datetime.datetime.now().timestamp() == pytest.approx(hours * HOUR, abs=60)


def test_tokens_grow_over_a_jump_back_and_a_restart(memory, wall, folder):
    wall.jump(HOUR)
    with Daemon(memory, env=wall.env, listen=f"unix://{folder}/holdfast.sock") as daemon:
        with UnaryClient(daemon.address) as client, RawSession(daemon.address) as session:
            before = client.acquire("k").fencing_token
            wall.jump(-HOUR)
            client.acquire("other")
            session.acquire("third")
            daemon.kill()
        daemon.start()
        with UnaryClient(daemon.address) as client:
            assert client.acquire("fourth").fencing_token > before
