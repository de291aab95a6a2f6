# SPDX-License-Identifier: Apache-2.0
"""A holdfastd: started on an address that it chose or on a socket, ready when it serves."""

import os

from support import health
from support.process import Program
from support.waiting import until

BIN = os.environ.get("HOLDFAST_BIN", "build/bin")


class Daemon:
    """`store` is a URL. With `ready`, it is started when its health says that it grants."""

    def __init__(self, store, *options, listen="127.0.0.1:0", env=None, ready=True):
        self.store = store
        self._options = options
        self._listen = listen if isinstance(listen, (list, tuple)) else [listen]
        self._env = env
        self.program = None
        self.start(ready)

    def start(self, ready=True):
        listen = [f"--listen={address}" for address in self._listen]
        self.program = Program([f"{BIN}/holdfastd", *listen, f"--store={self.store}", *self._options], env=self._env)
        self.addresses = []
        for _ in self._listen:
            line = self.program.out.wait_for(
                lambda l: l.startswith("serving: ") and l[9:] not in self.addresses, 15)
            self.addresses.append(line[len("serving: "):])
        self.address = self.addresses[0]
        # From now on the same address: clients come back to it.
        self._listen = list(self.addresses)
        if ready:
            self.wait_serving()

    def wait_serving(self, within=15):
        until(lambda: self.health() == "SERVING", within, f"{self.address} grants locks")

    def health(self, service="holdfast.v1.LockService"):
        return health.check(self.address, service)

    @property
    def log(self):
        return self.program.err

    def kill(self):
        self.program.kill()

    def restart(self, ready=True):
        self.kill()
        self.start(ready)

    def close(self):
        self.program.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
