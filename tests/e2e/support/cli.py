# SPDX-License-Identifier: Apache-2.0
"""The command line, run to its end or left running."""

import os
import subprocess

from support.daemon import BIN
from support.process import Program

HOLDFAST = f"{BIN}/holdfast"


def holdfast(address, *arguments, env=None, stdin=None, within=30):
    """Runs it to its end."""
    return subprocess.run([HOLDFAST, f"--address={address}", *arguments], input=stdin, capture_output=True, text=True,
                          timeout=within, env={**os.environ, **(env or {})})


def start_holdfast(address, *arguments, env=None):
    """Leaves it running. It may outlive a killed test: what it starts has to end by itself, too."""
    return Program([HOLDFAST, f"--address={address}", *arguments], env=env)
