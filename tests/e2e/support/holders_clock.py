# SPDX-License-Identifier: Apache-2.0
"""Until when a holder may believe that it holds: arithmetic on the boot clock, always from when it sent something."""

import math

from support.requests import seconds
from support.waiting import boot_now


class SessionClock:
    """The client counts as alive until the send time of its last answered ping (or `open`) + ttl - margin."""

    def __init__(self, open_sent):
        self.ttl = None
        self.until = math.inf
        self._open_sent = open_sent

    def on_opened(self, ttl, margin):
        self.ttl, self._margin = ttl, margin
        if ttl:
            self.until = self._open_sent + ttl - margin

    def on_pong(self, ping_sent):
        if self.ttl:
            self.until = max(self.until, ping_sent + self.ttl - self._margin)


class Hold:
    """What was granted, and the two limits of each grant."""

    def __init__(self, session_clock, acquire_sent, grant):
        self._session_clock = session_clock
        self.key, self.owner, self.hold_id = grant.key, grant.owner, grant.hold_id
        self.namespace, self.token = grant.namespace, grant.fencing_token
        self.lost = None  # the daemon's reason
        self.given_back = False
        self._until = self._never_past = -math.inf
        self.on_grant(acquire_sent, grant)

    def on_grant(self, acquire_sent, grant):
        self.count = grant.hold_count
        self.lease = seconds(grant.lease)
        self.margin = seconds(grant.safety_margin)
        granted = acquire_sent + seconds(grant.waited)
        self._until = max(self._until, granted + self.lease - self.margin)
        if not grant.HasField("max_hold_remaining"):
            self._never_past = math.inf
        else:
            self._never_past = max(self._never_past, granted + seconds(grant.max_hold_remaining) - self.margin)

    def on_pong(self, ping_sent, valid_for):
        self._until = max(self._until, ping_sent + valid_for - self.margin)

    @property
    def valid_until(self):
        return min(self._until, self._never_past, self._session_clock.until)

    def is_valid(self, now=None):
        """Looked at before each use, not only by a timer."""
        over = self.lost or self.given_back
        return not over and (boot_now() if now is None else now) < self.valid_until
