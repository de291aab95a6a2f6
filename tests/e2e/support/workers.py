# SPDX-License-Identifier: Apache-2.0
"""Clients that work without pause while a test breaks things: each takes a key in a session, works under it for a
while, looks at its validity before each piece of work, and starts anew whatever happened."""

import random
import threading
from concurrent.futures import TimeoutError as FutureTimeout

from support.raw_session import RawSession
from support.requests import Refused, outcome
from support.waiting import boot_now
from support.witness import Witness


class Workers:
    """`lease` bounds what a fault can cost; `keys` are shared by all."""

    def __init__(self, address, keys=("a", "b", "c"), count=9, lease=1.0):
        self._address, self._keys, self._lease = address, keys, lease
        self._stop = threading.Event()
        self.witness = Witness()
        self.losses = []  # (when, reason)
        self.refusals = []  # (when, Refused)
        self.granted_at = []
        self.bugs = []
        self._threads = [threading.Thread(target=self._live, args=(n,)) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _live(self, number):
        chance = random.Random(number)
        try:
            while not self._stop.is_set():
                try:
                    with RawSession(self._address, ttl=3, lease=self._lease) as session:
                        while not self._stop.is_set() and not session.ended.done():
                            self._turn(session, chance)
                except Refused as refused:
                    self.refusals.append((boot_now(), refused))
                    self._stop.wait(0.05)
        except Exception as error:
            self.bugs.append(f"worker {number}: {error!r}")

    def _turn(self, session, chance):
        try:
            answer = session.try_acquire(chance.choice(self._keys), wait=1, within=20)
        except Refused as refused:
            self.refusals.append((boot_now(), refused))
            self._stop.wait(0.02)
            return
        if outcome(answer) != "ACQUIRED":
            return
        hold = session.holds[answer.grant.hold_id]
        self.witness.granted(hold)
        self.granted_at.append(boot_now())
        until = boot_now() + chance.uniform(0, 0.3)
        while boot_now() < until and hold.is_valid():
            self._stop.wait(0.005)
        if hold.lost:
            self.losses.append((boot_now(), hold.lost))
        else:
            self._give_back(session, hold)

    def _give_back(self, session, hold):
        try:
            session.release(hold, within=20)
        except Refused as refused:
            self.refusals.append((boot_now(), refused))
        except FutureTimeout:
            self.bugs.append("a release is never answered")

    def grants_after(self, moment):
        return [at for at in list(self.granted_at) if at > moment]

    def refused_after(self, moment, reason):
        return [refused for at, refused in list(self.refusals) if at > moment and refused.reason == reason]

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(40)
            assert not thread.is_alive(), "a worker hangs"

    def check(self):
        """Afterwards: never two valid holders, tokens grew, and nothing hung."""
        assert self.witness.faults == [] and self.bugs == []
        assert self.witness.grants > 0
