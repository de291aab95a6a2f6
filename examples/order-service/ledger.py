# SPDX-License-Identifier: Apache-2.0
"""What must not happen twice: submissions to somebody who does what we say as often as we say it."""

import threading
import time

SUBMITTING_TAKES_SECONDS = 0.3


class StaleToken(Exception):
    """A writer with a newer token was here before: whoever brings this one has lost the lock."""


class Ledger:
    """Counts on its side, so that the demonstration can tell what really happened."""

    def __init__(self):
        self._guard = threading.Lock()  # for these numbers; it protects nobody from submitting twice
        self._submissions = {}
        self._last_token = {}
        self._inside = 0
        self.entries = 0
        self.most_inside = 0

    def submit_once(self, order, token=None):
        """Looks, then acts: right only for one at a time. Returns whether this call has submitted it."""
        with self._guard:
            if token is not None and token < self._last_token.get(order, 0):
                raise StaleToken(order)
            self._last_token[order] = token or 0
            self.entries += 1
            self._inside += 1
            self.most_inside = max(self.most_inside, self._inside)
            submitted = self._submissions.get(order, 0) > 0
        time.sleep(SUBMITTING_TAKES_SECONDS)  # the other side takes its time, also to say that it knows the order
        with self._guard:
            self._inside -= 1
            if not submitted:
                self._submissions[order] = self._submissions.get(order, 0) + 1
        return not submitted

    def numbers(self):
        with self._guard:
            return {"submissions": sum(self._submissions.values()), "entries": self.entries,
                    "most_inside": self.most_inside}
