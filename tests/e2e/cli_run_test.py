# SPDX-License-Identifier: Apache-2.0
"""holdfast run: exit codes, what the command is given, and that two never run at once."""

import os
import signal
import stat

import pytest

from support.cli import HOLDFAST, holdfast, start_holdfast
from support.daemon import Daemon
from support.requests import outcome
from support.shared_daemon import daemon, folder, session  # noqa: F401
from support.waiting import boot_now, boot_to, until

PRINT = 'echo "$HOLDFAST_TOKEN|$HOLDFAST_KEY|$HOLDFAST_OWNER"'


def test_the_command_s_own_exit_code_is_passed_on(daemon, client):
    for code in (0, 1, 7, 42, 124, 255):
        assert holdfast(daemon.address, "run", "code", "--", "sh", "-c", f"exit {code}").returncode == code
    assert holdfast(daemon.address, "run", "code", "--", "sh", "-c", "kill -KILL $$").returncode == 128 + 9
    assert client.inspect("code").free


def test_the_command_is_given_token_key_and_owner(daemon, client):
    ran = holdfast(daemon.address, "run", "given", "--", "sh", "-c", PRINT)
    token, key, owner = ran.stdout.strip().split("|")
    assert ran.returncode == 0 and key == "given" and int(token) > 0 and len(owner) >= 16
    again = holdfast(daemon.address, "run", "given", "--", "sh", "-c", PRINT)
    assert int(again.stdout.split("|")[0]) > int(token)


def test_a_busy_lock_is_124_or_what_was_asked_for(daemon, client):
    held = client.acquire("busy", note="job 7")
    for options, code in (([], 124), (["--conflict-exit-code=9"], 9), (["--conflict-exit-code=0"], 0)):
        ran = holdfast(daemon.address, "run", "busy", "--wait=0", *options, "--", "echo", "ran")
        assert ran.returncode == code and ran.stdout == ""
        assert "busy" in ran.stderr and "job 7" in ran.stderr
    asked = boot_now()
    ran = holdfast(daemon.address, "run", "busy", "--wait=400ms", "--", "echo", "ran")
    assert ran.returncode == 124 and ran.stdout == "" and 0.4 <= boot_now() - asked < 3
    client.release(held)


def test_a_command_that_cannot_run_or_is_not_there_is_126_and_127(daemon, client, folder):
    path = f"{folder}/not-executable"
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    assert holdfast(daemon.address, "run", "cannot", "--", path).returncode == 126
    ran = holdfast(daemon.address, "run", "cannot", "--", "no-such-command-anywhere")
    assert ran.returncode == 127 and "no-such-command-anywhere" in ran.stderr
    assert client.inspect("cannot").free


def test_a_daemon_with_short_leases_is_no_wrong_usage(folder):
    with Daemon(f"memory:{folder}/short", "--max-lease=5s") as short:
        for command in (["run", "k", "--", "true"], ["acquire", "k"]):
            ran = holdfast(short.address, *command)
            assert ran.returncode == 0, ran.stderr
        assert holdfast(short.address, "run", "k", "--lease=6s", "--", "true").returncode == 64


def test_no_daemon_is_69_and_says_what_to_do(folder):
    ran = holdfast(f"unix://{folder}/nobody.sock", "run", "k", "--wait=1s", "--", "echo", "ran")
    assert ran.returncode == 69 and ran.stdout == ""
    assert "holdfastd" in ran.stderr and "nobody.sock" in ran.stderr


@pytest.mark.parametrize("arguments", [
    ["run"], ["run", "k"], ["run", "k", "--"], ["run", "k", "--wait=soon", "--", "true"], ["run", "", "--", "true"],
    ["run", "k", "--on-lost=panic", "--", "true"], ["run", "k", "--conflict-exit-code=256", "--", "true"],
    ["run", "k", "--lease=0", "--", "true"], ["run", "k", "--lease=2h", "--", "true"], ["run", "k\n", "--", "true"],
    ["rum", "k", "--", "true"], [], ["inspect"], ["inspect", "k", "--", "true"]])
def test_wrong_usage_is_64(daemon, arguments):
    ran = holdfast(daemon.address, *arguments)
    assert ran.returncode == 64 and ran.stderr.startswith("holdfast: ") and ran.stdout == ""


def test_two_at_once_run_one_after_the_other_and_the_token_grows(daemon, folder):
    log = f"{folder}/serial"
    work = f'echo "in $HOLDFAST_TOKEN" >>{log}; read -t 0.3 _ <>{folder}/never; echo "out $HOLDFAST_TOKEN" >>{log}'
    os.mkfifo(f"{folder}/never")
    runs = [start_holdfast(daemon.address, "run", "serial", "--wait=30s", "--", "bash", "-c", work) for _ in range(5)]
    assert [ran.wait(30) for ran in runs] == [0] * 5
    words = [line.split() for line in open(log)]
    tokens = [int(token) for word, token in words if word == "in"]
    assert [word for word, _ in words] == ["in", "out"] * 5 and tokens == sorted(set(tokens))
    assert [int(token) for word, token in words if word == "out"] == tokens


def test_standard_input_and_output_pass_through(daemon):
    ran = holdfast(daemon.address, "run", "pipe", "--", "sh", "-c", "cat; echo err >&2", stdin="line 1\nline 2\n")
    assert ran.stdout == "line 1\nline 2\n" and ran.stderr == "err\n"


def test_arguments_pass_through_as_they_are(daemon):
    words = ["a b", "", "*", "--json", "-x", "--", "'\"$"]
    ran = holdfast(daemon.address, "run", "words", "--", "printf", "%s\\n", *words)
    assert ran.stdout.splitlines() == words


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(daemon, client, number):
    name = signal.Signals(number).name[3:]
    script = f"trap 'kill $!; echo got {name}; exit 5' {name}; echo ready; while :; do sleep 60 & wait $!; done"
    with start_holdfast(daemon.address, "run", "signal", "--", "bash", "-c", script) as ran:
        ran.out.wait_for("ready", 10)
        ran.signal(number)
        assert ran.wait(10) == 5
        assert "got" in ran.out.wait_end()
    assert client.inspect("signal").free


def test_a_nested_run_on_the_same_key_does_not_wait_for_itself(daemon, client):
    inner = [HOLDFAST, f"--address={daemon.address}", "run", "nest", "--wait=0", "--", "sh", "-c", PRINT]
    ran = holdfast(daemon.address, "run", "nest", "--", "sh", "-c", PRINT + '; exec "$@"', "sh", *inner)
    assert ran.returncode == 0, ran.stderr
    outer_line, inner_line = ran.stdout.splitlines()
    assert outer_line == inner_line
    assert client.inspect("nest").free


def test_a_nested_run_on_another_key_holds_both(daemon, client):
    inner = [HOLDFAST, f"--address={daemon.address}", "run", "inner", "--wait=0", "--", "sh", "-c",
             "echo inside; exec sleep 60"]
    with start_holdfast(daemon.address, "run", "outer", "--", "sh", "-c", 'exec "$@"', "sh", *inner) as ran:
        ran.out.wait_for("inside", 10)
        assert [outcome(client.try_acquire(key)) for key in ("outer", "inner")] == ["BUSY"] * 2
        ran.signal(signal.SIGTERM)
        ran.wait(10)
    client.wait_free("outer", 2)
    client.wait_free("inner", 2)


def test_two_nested_runs_side_by_side_still_exclude_each_other(daemon, folder):
    log = f"{folder}/side-by-side"
    work = f'echo in >>{log}; sleep 0.2; echo out >>{log}'
    one = f"{HOLDFAST} --address={daemon.address} run inner-side --wait=20s -- bash -c '{work}' 2>/dev/null"
    ran = holdfast(daemon.address, "run", "outer-side", "--", "bash", "-c", f"{one} & {one} & wait")
    assert ran.returncode == 0
    assert open(log).read().split() == ["in", "out"] * 2


def test_at_least_keeps_the_key_after_a_quick_command(daemon, client):
    asked = boot_now()
    assert holdfast(daemon.address, "run", "quick", "--at-least=1500ms", "--", "true").returncode == 0
    assert boot_now() - asked < 1.4
    ran = holdfast(daemon.address, "run", "quick", "--wait=0", "--", "echo", "again")
    assert ran.returncode == 124 and ran.stdout == ""
    client.wait_free("quick", asked + 2.5 - boot_now())
    assert boot_now() - asked > 1.45


def test_a_failing_command_is_run_again_under_the_same_lock(daemon, folder):
    count = f"{folder}/count"
    script = f"echo $HOLDFAST_TOKEN >>{count}; test $(wc -l <{count}) = 3"
    assert holdfast(daemon.address, "run", "retry", "--retry=5", "--", "sh", "-c", script).returncode == 0
    tokens = open(count).read().split()
    assert len(tokens) == 3 and len(set(tokens)) == 1


def test_a_signal_while_it_waits_ends_it_and_leaves_the_line(daemon, client):
    held = client.acquire("waits")
    with start_holdfast(daemon.address, "run", "waits", "--wait=30s", "--", "echo", "ran") as ran:
        client.wait_queue("waits", 1)
        ran.signal(signal.SIGTERM)
        assert ran.wait(5) == -signal.SIGTERM and ran.out.text() == ""
    client.wait_queue("waits", 0)
    client.release(held)
    assert client.inspect("waits").free


def test_a_stop_while_it_waits_is_not_taken_for_a_daemon_that_does_not_answer(daemon, client):
    held = client.acquire("stands-still", lease=30)
    with start_holdfast(daemon.address, "run", "stands-still", "--wait=500ms", "--", "echo", "ran") as ran:
        client.wait_queue("stands-still", 1)
        ran.stop()
        boot_to(boot_now() + 6)  # its wait and its patience, 5 s, are over
        ran.go_on()
        assert ran.wait(5) == 124, ran.err.text()
        assert "waited in vain" in ran.err.wait_end()
    client.release(held)


def test_others_see_who_runs_it_but_not_its_arguments(daemon, client):
    with start_holdfast(daemon.address, "run", "note", "--", "sh", "-c", "exec sleep 60", "pass-word"):
        until(lambda: client.inspect("note").holders, 10, "it holds")
        (holder,) = client.inspect("note").holders
        assert "sh" in holder.note and "pass-word" not in holder.note and holder.has_session
    client.wait_free("note", 3)


def test_a_file_of_its_own_cannot_be_executed_by_mistake(daemon, folder):
    path = f"{folder}/script"
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho script\n")
    os.chmod(path, stat.S_IRWXU)
    assert holdfast(daemon.address, "run", "script", "--", path).stdout == "script\n"
