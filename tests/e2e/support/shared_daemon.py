# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the files whose tests leave no trace: one daemon for all of a file."""

import tempfile

import pytest

from support.daemon import Daemon
from support.raw_session import RawSession


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="holdfast-") as path:
        yield path


@pytest.fixture(scope="module")
def daemon(folder):
    with Daemon(f"memory:{folder}/state") as running:
        yield running


@pytest.fixture
def session(daemon):
    with RawSession(daemon.address) as opened:
        yield opened
