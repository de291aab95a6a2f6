# SPDX-License-Identifier: Apache-2.0
"""holdfast run when the lock is lost, or the command line itself dies: no command works on without its lock."""

import os
import signal

import pytest

from support.cli import start_holdfast
from support.daemon import Daemon
from support.requests import outcome
from support.waiting import boot_now, boot_to, process_ends, until

# Says its pid; survives TERM, and says when it comes.
STUBBORN = "trap 'echo TERM' TERM; echo pid $$; while :; do sleep 60 & wait $!; done"
OBEDIENT = "trap 'echo TERM; exit 3' TERM; echo pid $$; sleep 60 & wait $!"


@pytest.fixture
def daemon(memory):
    with Daemon(memory) as running:
        yield running


def pid_of(ran):
    return int(ran.out.wait_for("pid ", 10).split()[1])


def is_there(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_kill_9_of_the_command_line_ends_the_command_and_frees_the_key(daemon, client, open_session):
    with start_holdfast(daemon.address, "run", "k", "--", "bash", "-c", STUBBORN) as ran:
        pid = pid_of(ran)
        waiting = open_session().begin_acquire("k", wait=20)
        killed = boot_now()
        ran.kill()
        assert outcome(waiting.result(10)) == "ACQUIRED"
        assert not is_there(pid), "the key was granted on while the command still ran"
        assert boot_now() - killed < 2


@pytest.mark.parametrize("script, says", [(STUBBORN, "survives TERM"), (OBEDIENT, "ends at TERM")])
def test_a_killed_daemon_ends_the_command_before_its_validity_ends(memory, folder, script, says):
    with Daemon(memory, listen=f"unix://{folder}/holdfast.sock") as daemon:
        lease = 3
        with start_holdfast(daemon.address, "run", "k", f"--lease={lease}s", "--", "bash", "-c", script) as ran:
            pid = pid_of(ran)
            killed = boot_now()
            daemon.kill()
            ran.out.wait_for("TERM", lease + 1)
            assert process_ends(pid, killed + lease - boot_now()), "it outlives the lock"
            assert boot_now() < killed + lease
            assert ran.wait(5) == 125
            assert "lost" in ran.err.wait_end()


def test_a_max_hold_ends_the_command_with_125(daemon, client):
    asked = boot_now()
    with start_holdfast(daemon.address, "run", "k", "--max-hold=2s", "--", "bash", "-c", STUBBORN) as ran:
        pid = pid_of(ran)
        ran.out.wait_for("TERM", 4)
        assert process_ends(pid, asked + 3 - boot_now())
        assert ran.wait(5) == 125
    client.wait_free("k", 2)


def test_on_lost_continue_only_says_so(daemon, client):
    with start_holdfast(daemon.address, "run", "k", "--max-hold=1s", "--on-lost=continue", "--", "bash", "-c",
                        "echo pid $$; exec sleep 60") as ran:
        pid = pid_of(ran)
        ran.err.wait_for("lost", 5)
        assert is_there(pid) and ran.process.poll() is None
        os.kill(pid, signal.SIGKILL)
        assert ran.wait(5) == 128 + 9


def test_a_stopped_command_line_does_not_let_the_command_outlive_the_lock(daemon, client, open_session):
    with start_holdfast(daemon.address, "run", "k", "--lease=2s", "--", "bash", "-c", STUBBORN) as ran:
        pid = pid_of(ran)
        waiting = open_session().begin_acquire("k", wait=30)
        ran.stop()
        try:
            assert outcome(waiting.result(20)) == "ACQUIRED"
            assert not is_there(pid), "the key was granted on while the command still ran"
        finally:
            ran.go_on()
        assert ran.wait(10) == 125


def test_a_restarted_redis_ends_the_command(redis_server):
    with Daemon(redis_server.url, "--no-grace", "--max-lease=2s") as daemon:
        with start_holdfast(daemon.address, "run", "k", "--lease=2s", "--", "bash", "-c", STUBBORN) as ran:
            pid = pid_of(ran)
            broken = boot_now()
            redis_server.restart()
            ran.out.wait_for("TERM", 4)
            assert process_ends(pid, broken + 2.5 - boot_now())
            assert ran.wait(5) == 125


def test_a_command_outlives_many_leases_while_the_daemon_lives(daemon, client):
    with start_holdfast(daemon.address, "run", "k", "--lease=1s", "--", "bash", "-c", STUBBORN) as ran:
        pid = pid_of(ran)
        token = client.inspect("k").fencing_token
        boot_to(boot_now() + 3)
        assert is_there(pid) and client.inspect("k").fencing_token == token
    until(lambda: not is_there(pid), 3, "the command ends with its command line")
