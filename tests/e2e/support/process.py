# SPDX-License-Identifier: Apache-2.0
"""A program under test: its lines as they come, signals, and an end that comes whatever happens."""

import os
import signal
import subprocess
import threading

from support.waiting import boot_now


class Lines:
    """What a pipe said so far, and a wait for what it will say."""

    def __init__(self, pipe, explain=lambda: ""):
        """`explain` is asked what else there is to say when a line does not come."""
        self._explain = explain
        self._changed = threading.Condition()
        self._lines = []
        self._over = False
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                with self._changed:
                    self._lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def all(self):
        with self._changed:
            return list(self._lines)

    def text(self):
        return "\n".join(self.all())

    def wait_end(self, within=10):
        with self._changed:
            assert self._changed.wait_for(lambda: self._over, within), "the pipe stays open"
            return "\n".join(self._lines)

    def wait_for(self, wanted, within, after=0):
        """The first line from number `after` on for which `wanted` (a part of it, or a function) is true."""
        matches = wanted if callable(wanted) else lambda line: wanted in line
        limit = boot_now() + within
        with self._changed:
            seen = after
            while True:
                for line in self._lines[seen:]:
                    if matches(line):
                        return line
                seen = len(self._lines)
                if self._over or not self._changed.wait(max(0, limit - boot_now())):
                    if seen == len(self._lines):
                        break
            said = "\n".join(self._lines[-20:])
            how = "before the pipe was closed" if self._over else f"within {within} s"
        raise AssertionError(f"no line {wanted!r} {how}; the last ones:\n{said}\n{self._explain()}")


class Program:
    """A child with pipes. Ends with the test's process, even when that is killed."""

    def __init__(self, arguments, env=None, stdin=subprocess.DEVNULL, dies_with_us=True):
        # Only for children of the main thread: the kernel looks at the thread that made them.
        assert threading.current_thread() is threading.main_thread()
        prefix = ["setpriv", "--pdeathsig", "KILL", "--"] if dies_with_us else []
        self.process = subprocess.Popen(
            prefix + [str(a) for a in arguments], stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, **(env or {})})
        self.out = Lines(self.process.stdout, self._how_it_is)
        self.err = Lines(self.process.stderr, self._how_it_is)

    def _how_it_is(self):
        try:
            state = f"exit code {self.process.wait(1)}"  # a pipe closes a little before its process is gone
        except subprocess.TimeoutExpired:
            state = "still running"
        errors = "\n".join(self.err.all()[-20:])
        return f"{self.process.args}: {state}; on standard error:\n{errors}"

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Stops it in its tracks, and returns when it stands still."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self):
        self.signal(signal.SIGCONT)

    def wait(self, within=15):
        """The exit code; -N for a signal N."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {within} s: {self.process.args}\n{self.out.text()}\n{self.err.text()}") from None

    def kill(self):
        """kill -9, and nothing is left of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.process.stdin:
            self.process.stdin.close()
