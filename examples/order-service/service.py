# SPDX-License-Identifier: Apache-2.0
"""POST /orders/<id> submits an order, once. GET /numbers says what happened so far."""

import contextlib
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

from ledger import SUBMITTING_TAKES_SECONDS, Ledger, StaleToken
from order_lock import Busy, Locks


class NoLock:
    """LOCK=off: everybody comes in."""

    token = None

    def seconds_left(self):
        return float("inf")


class Orders:
    def __init__(self, locks):
        self._locks = locks
        self.ledger = Ledger()

    def submit(self, order):
        """(status, what to say)."""
        lock = self._locks.hold(f"orders/{order}") if self._locks else contextlib.nullcontext(NoLock())
        try:
            with lock as hold:
                if hold.seconds_left() < SUBMITTING_TAKES_SECONDS:
                    return 503, "the lock would not last for it; try again"
                new = self.ledger.submit_once(order, hold.token)
        except Busy:
            return 409, "this order is being worked on; try again"
        except StaleToken:
            return 503, "the lock was lost; try again"
        except grpc.RpcError as error:
            return 503, f"no lock to be had: {error.details()}"
        return (201, "submitted") if new else (200, "submitted before")


def handler_for(orders):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            folder, _, order = self.path.lstrip("/").partition("/")
            if folder != "orders" or not order or "/" in order:
                return self._answer(404, {"error": "POST /orders/<id>"})
            status, said = orders.submit(order)
            self._answer(status, {"order": order, "status": said})

        def do_GET(self):
            if self.path != "/numbers":
                return self._answer(404, {"error": "GET /numbers"})
            self._answer(200, orders.ledger.numbers())

        def _answer(self, status, message):
            body = json.dumps(message).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def main():
    on = os.environ.get("LOCK", "on") != "off"
    locks = Locks(os.environ.get("HOLDFAST_ADDRESS", "127.0.0.1:7420")) if on else None
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "8080"))), handler_for(Orders(locks)))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
