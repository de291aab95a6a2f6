# SPDX-License-Identifier: Apache-2.0
"""The boot clock, and waits for a condition that nobody announces: polls that end at a deadline."""

import os
import select
import threading
import time

_POLL = 0.005
_never = threading.Event()


def boot_now():
    """Seconds on the clock that the contract names: monotonic, counting a suspended machine's sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_to(moment):
    """Waits for a moment on the boot clock: for tests about what happens at a time, or not before it."""
    while (left := moment - boot_now()) > 0:
        _never.wait(left)


def until(condition, within, what):
    """Polls until the condition's result is true, and returns that; fails when `within` seconds are over."""
    limit = boot_now() + within
    while True:
        result = condition()
        if result:
            return result
        if boot_now() >= limit:
            raise AssertionError(f"not within {within} s: {what}")
        _never.wait(_POLL)


def stays(condition, during, what):
    """Fails as soon as the condition is false within `during` seconds."""
    limit = boot_now() + during
    while boot_now() < limit:
        assert condition(), f"within {during} s it was over: {what}"
        _never.wait(_POLL)


def process_ends(pid, within):
    """Waits for a process that need not be a child of ours; returns whether it ended in time."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within)[0])
    finally:
        os.close(fd)
