# SPDX-License-Identifier: Apache-2.0
"""64 clients and one key: one at a time, in the order of their tokens, and everybody's turn comes."""

import threading

from support.raw_session import RawSession
from support.unary_client import UnaryClient
from support.waiting import boot_now
from support.witness import FencedResource, Witness

CLIENTS = 64
SECONDS = 10


class Crowd:
    """Half of them keep sessions, half take bare leases; all write to one resource under their tokens."""

    def __init__(self, address, until):
        self.address, self.until = address, until
        self.resource, self.witness = FencedResource(), Witness()
        self.turns = [0] * CLIENTS
        self.errors = []
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(CLIENTS)]

    def run(self):
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"

    def _work(self, number):
        try:
            with UnaryClient(self.address) if number % 2 else RawSession(self.address) as client:
                while boot_now() < self.until:
                    hold = client.acquire("k", wait=30)
                    if number % 2 == 0:
                        self.witness.granted(hold)
                    token = hold.fencing_token if number % 2 else hold.token
                    self.resource.enter(token)
                    self.resource.leave(token)
                    client.release(hold)
                    self.turns[number] += 1
        except Exception as error:
            self.errors.append(f"client {number}: {error!r}")


def test_64_clients_never_overlap_and_tokens_grow(daemon, client):
    crowd = Crowd(daemon.address, boot_now() + SECONDS)
    crowd.run()
    assert crowd.errors == []
    assert crowd.resource.faults == [] and crowd.witness.faults == []
    assert crowd.resource.writes == sum(crowd.turns) > CLIENTS * 5
    assert min(crowd.turns) > 0, f"somebody never had a turn: {crowd.turns}"
    state = client.inspect("k")
    assert state.free and state.queue_length == 0
