# SPDX-License-Identifier: Apache-2.0
"""Two who look for what must never be: two valid holders of a key, and a token that is not newer than the last."""

import threading

from support.waiting import boot_now


class Witness:
    """Told of every grant as its client hears of it; asks all earlier holders of the key whether they still believe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._holds = {}  # key -> those that may still be valid
        self._last_token = {}
        self.grants = 0
        self.faults = []

    def granted(self, hold):
        with self._lock:
            now = boot_now()
            still = [h for h in self._holds.get(hold.key, ()) if h.is_valid(now)]
            if still and hold.is_valid(now):
                self.faults.append(f"two hold {hold.key}: tokens {still[0].token} and {hold.token}")
            self._holds[hold.key] = still + [hold]
            if hold.token <= self._last_token.get(hold.key, 0):
                self.faults.append(f"{hold.key}: token {hold.token} after {self._last_token[hold.key]}")
            self._last_token[hold.key] = hold.token
            self.grants += 1


class FencedResource:
    """Takes writes under a token, and counts those that come late or meet another one inside."""

    def __init__(self):
        self._lock = threading.Lock()
        self._last = 0
        self._inside = None
        self.writes = 0
        self.faults = []

    def enter(self, token):
        with self._lock:
            if self._inside is not None:
                self.faults.append(f"{token} comes in while {self._inside} is inside")
            if token <= self._last:
                self.faults.append(f"{token} comes after {self._last}")
            self._last, self._inside = token, token
            self.writes += 1

    def leave(self, token):
        with self._lock:
            if self._inside != token:
                self.faults.append(f"{token} leaves, but {self._inside} is inside")
            self._inside = None
