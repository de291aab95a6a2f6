# SPDX-License-Identifier: Apache-2.0
"""holder.py, run: what it says as dictionaries."""

import json
import os
import pathlib
import subprocess
import sys

from support.process import Program

_FOLDER = str(pathlib.Path(__file__).resolve().parents[1])


class HolderProcess(Program):
    def __init__(self, address, key, **options):
        path = os.pathsep.join([_FOLDER, os.environ.get("PYTHONPATH", "")])
        words = [f"{name}={value}" for name, value in options.items()]
        super().__init__([sys.executable, "-m", "support.holder", address, key, *words],
                         env={"PYTHONPATH": path}, stdin=subprocess.PIPE)

    def said(self):
        return [json.loads(line) for line in self.out.all()]

    def wait_said(self, what, within=15, after=0, **fields):
        """The first thing it says from number `after` on that is `what`."""

        def wanted(line):
            said = json.loads(line)
            return said["what"] == what and all(said.get(k) == v for k, v in fields.items())

        return json.loads(self.out.wait_for(wanted, within, after))

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
