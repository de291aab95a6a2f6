# SPDX-License-Identifier: Apache-2.0
"""A holder in a process of its own, which a test can kill or stop.

Usage: python3 -m support.holder ADDRESS KEY [name=seconds...]

Says on standard output, a JSON object a line, what it is told and when its belief that it holds changes; stamped with
the boot clock, which is the same in all processes. Reads `release` and `acquire` from standard input.
"""

import json
import queue
import sys
import threading

from support.raw_session import RawSession
from support.requests import Refused
from support.waiting import boot_now

_LOOK = 0.01


def say(what, **fields):
    print(json.dumps({"what": what, "at": boot_now(), **fields}), flush=True)


def watch(session, commands):
    """Looks at the hold again and again, as a program does that checks before each piece of its work."""
    hold, last_valid, said, told = None, None, None, 0
    while True:
        now = boot_now()
        for one in list(session.holds.values()):
            if one is not hold:
                hold, said = one, None
        valid = hold is not None and hold.is_valid(now)
        if valid:
            last_valid = now
        if hold is not None and valid != said:
            say("believes" if valid else "doubts", last_valid=last_valid, hold_id=hold.hold_id, token=hold.token,
                owner=hold.owner, lost=hold.lost)
            said = valid
        for event in session.arrived[told:]:
            say("heard", event=event.WhichOneof("event"))
            told += 1
        if session.ended.done():
            say("ended", status=str(session.ended.result()))
            return
        try:
            command = commands.get(timeout=_LOOK)
        except queue.Empty:
            continue
        if command == "release":
            try:
                say("released", remaining=session.release(hold))
            except Refused as refused:
                say("refused", status=str(refused))


def main():
    address, key = sys.argv[1:3]
    options = {name: float(value) for name, value in (a.split("=") for a in sys.argv[3:])}
    fields = {name: options.pop(name) for name in ("wait", "lease", "max_hold") if name in options}
    session = RawSession(address, **options)
    commands = queue.SimpleQueue()
    threading.Thread(target=lambda: [commands.put(line.strip()) for line in sys.stdin], daemon=True).start()
    future = session.begin_acquire(key, **fields)
    say("asked", session_id=session.session_id)
    watch(session, commands)
    assert future.done()


if __name__ == "__main__":
    main()
