# SPDX-License-Identifier: Apache-2.0
"""Starts the service (LOCK=on|off), sends 20 requests for one order at once, and says what came of it."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.request

REQUESTS = 20


def post(url, statuses, start):
    start.wait()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=30) as answer:
            statuses.append(answer.status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)


def send_all(base):
    statuses, start = [], threading.Barrier(REQUESTS)
    threads = [threading.Thread(target=post, args=(f"{base}/orders/4711", statuses, start)) for _ in range(REQUESTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with urllib.request.urlopen(f"{base}/numbers", timeout=30) as answer:
        return collections.Counter(statuses), json.load(answer)


def main():
    lock = os.environ.get("LOCK", "on")
    service = pathlib.Path(__file__).with_name("service.py")
    with subprocess.Popen([sys.executable, service], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LOCK": lock, "PORT": "0"}) as process:
        try:
            statuses, numbers = send_all(process.stdout.readline().strip())
        finally:
            process.kill()
    many = numbers["submissions"]
    text = f"LOCK={lock}:".ljust(10) + f"{REQUESTS} requests, {many} submission{'s' * (many != 1)}; "
    if numbers["most_inside"] <= 1:
        text += f"{numbers['entries']} entered one after the other, {statuses[409]} were told 409"
    else:
        text += f"up to {numbers['most_inside']} were inside at once"
    print(text)
    print(json.dumps({"lock": lock, "statuses": statuses, **numbers}), file=sys.stderr)


if __name__ == "__main__":
    main()
