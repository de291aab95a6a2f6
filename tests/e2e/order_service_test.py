# SPDX-License-Identifier: Apache-2.0
"""examples/order-service: with its lock it submits once, without it more often."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from support.daemon import BIN, Daemon

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/order-service"


@pytest.fixture
def daemon(memory):
    with Daemon(memory) as running:
        yield running


def demo(daemon, lock):
    ran = subprocess.run([sys.executable, EXAMPLE / "demo.py"], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "HOLDFAST_ADDRESS": daemon.address, "LOCK": lock})
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stderr.splitlines()[-1])


def test_with_the_lock_20_requests_submit_once_one_after_the_other(daemon):
    numbers = demo(daemon, "on")
    statuses = numbers["statuses"]
    assert numbers["submissions"] == 1 and numbers["most_inside"] == 1
    assert statuses["201"] == 1 and statuses["200"] == numbers["entries"] - 1
    assert statuses["409"] == 20 - numbers["entries"] > 0 and numbers["entries"] > 2
    assert sum(statuses.values()) == 20


def test_without_the_lock_the_order_is_submitted_more_than_once(daemon):
    numbers = demo(daemon, "off")
    assert numbers["submissions"] > 1 and numbers["most_inside"] > 1
    assert "409" not in numbers["statuses"]


def test_without_a_daemon_nothing_is_submitted(daemon):
    daemon.kill()
    numbers = demo(daemon, "on")
    assert numbers["submissions"] == 0 and numbers["statuses"] == {"503": 20}


def test_the_script_of_the_readme_runs(folder):
    env = {**os.environ, "HOLDFASTD": f"{BIN}/holdfastd", "PYTHON": sys.executable, "TMPDIR": folder}
    ran = subprocess.run([EXAMPLE / "try.sh"], capture_output=True, text=True, timeout=90, env=env)
    assert ran.returncode == 0, ran.stderr
    with_lock, without = ran.stdout.splitlines()
    assert with_lock.startswith("LOCK=on:") and " 1 submission;" in with_lock and "one after the other" in with_lock
    assert without.startswith("LOCK=off:") and "at once" in without
    assert os.listdir(folder) == [], "it leaves nothing behind"
