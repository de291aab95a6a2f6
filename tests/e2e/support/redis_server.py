# SPDX-License-Identifier: Apache-2.0
"""A redis-server on a Unix socket in a folder of its own."""

import redis

from support.process import Program
from support.waiting import until


class RedisServer:
    def __init__(self, folder, *options):
        self._folder = folder
        self._options = options
        self.socket = f"{folder}/redis.sock"
        self.url = f"redis+unix://{self.socket}"
        self._program = None
        self.client = redis.Redis(unix_socket_path=self.socket, socket_timeout=10)
        self.start()

    def start(self):
        """A start is always empty: nothing is saved."""
        self._program = Program(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--dir", self._folder, "--enable-debug-command", "local", *self._options])
        until(self._answers, 10, "redis-server answers")

    def _answers(self):
        try:
            return self.client.ping()
        except redis.exceptions.ConnectionError:
            return False

    def kill(self):
        self._program.kill()

    def restart(self):
        self.kill()
        self.start()

    def stop(self):
        self._program.stop()

    def go_on(self):
        self._program.go_on()

    def close(self):
        self.client.close()
        self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
