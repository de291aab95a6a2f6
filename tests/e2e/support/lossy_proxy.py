# SPDX-License-Identifier: Apache-2.0
"""Stands between a client and a server on Unix sockets, and can lose the server's answers."""

import os
import socket
import threading

_CHUNK = 65536


class LossyProxy:
    """What clients send always arrives. Answers do, until `lose_answers`; `cut` then ends all connections."""

    def __init__(self, path, target):
        self.path, self._target = path, target
        self._losing = threading.Event()
        self._lock = threading.Lock()
        self._sockets = []
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def lose_answers(self):
        """From now on, on the connections that there are."""
        self._losing.set()

    def cut(self):
        """Ends the connections that there are; new ones work again."""
        with self._lock:
            gone, self._sockets = self._sockets, []
            self._losing.clear()
        for one in gone:
            _shut(one)

    def _accept(self):
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, to, is_answer):
        try:
            while data := source.recv(_CHUNK):
                if not (is_answer and self._losing.is_set()):
                    to.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(to)

    def close(self):
        self._closed = True
        _shut(self._listener)
        self._listener.close()
        self.cut()
        os.unlink(self.path)


def _shut(one):
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
