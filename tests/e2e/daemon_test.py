# SPDX-License-Identifier: Apache-2.0
"""holdfastd as a program: addresses, options, services, and the state folder."""

import json
import os
import socket
import stat
import subprocess

import pytest

from support import health
from support.daemon import BIN, Daemon
from support.process import Program
from support.requests import outcome
from support.unary_client import UnaryClient
from support.waiting import until


def run(*arguments, env=None):
    return subprocess.run([f"{BIN}/holdfastd", *arguments], capture_output=True, text=True, timeout=20,
                          env={**os.environ, **(env or {})})


def test_it_says_where_it_serves_and_what_to_try(memory):
    with Daemon(memory) as daemon:
        daemon.program.out.wait_for("Try:", 5)
        host, port = daemon.address.rsplit(":", 1)
        assert host == "127.0.0.1" and int(port) > 0
        said = daemon.program.out.text()
        assert f"--address={daemon.address} run demo" in said and "memory:" in said


def test_a_unix_socket_serves_and_is_for_owner_and_group_only(memory, folder):
    path = f"{folder}/holdfast.sock"
    with Daemon(memory, listen=f"unix://{path}") as daemon, UnaryClient(daemon.address) as client:
        mode = os.stat(path).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660
        assert outcome(client.try_acquire("k")) == "ACQUIRED"


def test_several_addresses_serve_the_same_locks(memory, folder):
    listen = ["127.0.0.1:0", f"unix://{folder}/holdfast.sock", "127.0.0.1:0"]
    with Daemon(memory, listen=listen) as daemon:
        clients = [UnaryClient(address) for address in daemon.addresses]
        held = clients[0].acquire("k")
        assert [outcome(c.try_acquire("k")) for c in clients] == ["BUSY"] * 3
        assert clients[1].release(held) == 0
        for client in clients:
            client.close()


def test_a_socket_file_that_nobody_listens_at_is_replaced_and_one_in_use_is_not(memory, folder):
    listen = f"unix://{folder}/holdfast.sock"
    with Daemon(memory, listen=listen) as daemon:
        daemon.restart()  # kill -9 left the file behind
        refused = run(f"--listen={listen}", f"--store=memory:{folder}/other")
        assert refused.returncode == 69 and listen[len("unix://"):] in refused.stderr
        assert daemon.health() == "SERVING"


def test_an_address_in_use_is_an_error_that_names_it(memory, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run(f"--listen={address}", f"--store={memory}")
    assert refused.returncode == 69 and address in refused.stderr and "another process" in refused.stderr


def test_two_daemons_on_one_state_folder_are_refused(memory, folder):
    with Daemon(memory) as daemon:
        refused = run("--listen=127.0.0.1:0", f"--store={memory}")
        assert refused.returncode == 69
        assert f"{folder}/state" in refused.stderr
        assert daemon.health() == "SERVING"
        daemon.kill()
        daemon.start()


@pytest.mark.parametrize("arguments, said", [
    (["--max-leese=5s"], ["--max-leese", "did you mean --max-lease?"]),
    (["--lisen", "x"], ["--lisen", "did you mean --listen?"]),
    (["serve"], ["serve", "options only"]),
    (["--max-lease=5"], ["--max-lease", "'5'", "5s"]),
    (["--max-lease=2h"], ["--max-lease", "'2h'", "1h"]),
    (["--max-lease="], ["--max-lease"]),
    (["--listen=nowhere"], ["--listen", "nowhere", "unix://"]),
    (["--store=postgres://x"], ["--store", "postgres", "redis://"]),
    (["--store=etcd://x"], ["etcd", "not supported by this version"]),
    (["--namespace=Big"], ["--namespace", "'Big'"]),
    (["--no-grace=perhaps"], ["--no-grace", "true or false"]),
    (["--config=/no/such/file"], ["/no/such/file"])])
def test_a_wrong_option_is_exit_code_64_and_one_line_that_helps(arguments, said):
    refused = run(*arguments)
    assert refused.returncode == 64 and refused.stdout == ""
    assert all(part in refused.stderr for part in said), refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_password_is_not_repeated_in_an_error(folder):
    for arguments in (["--store=redis://user:secret-word@:x:/", "--listen=127.0.0.1:0"],
                      ["--store=redis://:secret-word@127.0.0.1:1", "--print-config"]):
        said = run(*arguments)
        assert "secret-word" not in said.stdout + said.stderr


@pytest.mark.parametrize("text, line, said", [
    ("max-lease: 30s\nmax-leese: 5s\n", 2, "did you mean max-lease?"),
    ("listen:\n  - 127.0.0.1:0\nmax-lease: soon\n", 3, "'soon'"),
    ("max-lease: 30s\n  broken: [\n", 2, ""),
    ("- a\n- b\n", 1, "mapping"),
    ("max-lease: 30s\n\nmax-lease: 40s\n", 3, "twice")])
def test_a_wrong_line_of_the_file_is_named(folder, text, line, said):
    path = f"{folder}/holdfast.yaml"
    with open(path, "w") as file:
        file.write(text)
    refused = run(f"--config={path}", "--check-config")
    assert refused.returncode == 64 and f"{path}:{line}:" in refused.stderr and said in refused.stderr


def test_flags_outweigh_the_environment_and_the_environment_the_file(folder):
    path = f"{folder}/holdfast.yaml"
    with open(path, "w") as file:
        file.write("max-lease: 10s\ndefault-max-hold: 11s\nnamespace: file\nlisten: [127.0.0.1:1, 127.0.0.1:2]\n")
    env = {"HOLDFAST_CONFIG": path, "HOLDFAST_MAX_LEASE": "20s", "HOLDFAST_NAMESPACE": "environment"}
    said = run("--namespace=flag", "--print-config", env=env).stdout
    for wanted in ("namespace: flag", "max-lease: 20s", "default-max-hold: 11s", "127.0.0.1:1", "127.0.0.1:2"):
        assert wanted in said
    assert run(f"--config={path}", "--check-config").returncode == 0


def test_what_print_config_prints_is_a_file_that_gives_the_same(folder):
    first = run("--max-lease=42s", "--behind-proxy", f"--store=memory:{folder}", "--print-config").stdout
    with open(f"{folder}/again.yaml", "w") as file:
        file.write(first)
    assert run(f"--config={folder}/again.yaml", "--print-config").stdout == first


def test_help_names_every_option_of_the_contract():
    said = run("--help").stdout
    for option in ("listen", "store", "namespace", "redis-prefix", "max-lease", "default-max-hold", "default-ordering", "no-grace",
                   "behind-proxy", "config", "check-config", "print-config"):
        assert f"--{option}" in said
    assert run("--version").stdout.startswith("holdfastd ")


def test_the_default_namespace_is_the_daemon_s(memory):
    with Daemon(memory, "--namespace=team-a") as daemon, UnaryClient(daemon.address) as client:
        assert client.acquire("k").namespace == "team-a"
        assert outcome(client.try_acquire("k", namespace="team-a")) == "BUSY"


def test_a_lease_longer_than_max_lease_is_refused_and_the_default_fits(memory):
    with Daemon(memory, "--max-lease=2s") as daemon, UnaryClient(daemon.address) as client:
        assert client.acquire("k").lease.seconds == 2
        with pytest.raises(Exception, match="2s"):
            client.acquire("other", lease=3)


def test_health_and_reflection_know_the_services(daemon):
    assert daemon.health("") == daemon.health("holdfast.v1.LockService") == "SERVING"
    assert daemon.health("no.such.Service") in ("SERVICE_UNKNOWN", "NOT_FOUND")
    said = health.reflected(daemon.address)
    for service in (b"holdfast.v1.LockService", b"holdfast.v1.AdminService", b"grpc.health.v1.Health"):
        assert service in said


def test_log_lines_are_json_where_asked_for_and_never_show_an_owner(memory):
    with Daemon(memory, "--log-format=json", "--log-level=debug") as daemon, UnaryClient(daemon.address) as client:
        grant = client.acquire("k", owner="a-secret-that-nobody-sees")
        client.release(grant)
        daemon.program.signal(15)
        daemon.program.wait(5)
        lines = daemon.log.wait_end().splitlines()
    assert any("draining" in json.loads(line)["message"] for line in lines)
    assert "a-secret-that-nobody-sees" not in "\n".join(lines)


def test_without_a_folder_of_its_own_state_goes_where_the_environment_says(folder):
    env = {"STATE_DIRECTORY": f"{folder}/managed", "XDG_STATE_HOME": f"{folder}/xdg", "HOME": f"{folder}/home"}
    with Daemon("memory:", env=env):
        assert os.path.isdir(f"{folder}/managed")
    with Daemon("memory:", env={**env, "STATE_DIRECTORY": ""}):
        assert os.path.isdir(f"{folder}/xdg/holdfast")
    assert not os.path.exists(f"{folder}/home")


def test_an_unreadable_state_is_waited_out_and_said(folder):
    state = f"{folder}/state"
    with Daemon(f"memory:{state}") as daemon, UnaryClient(daemon.address) as client:
        client.acquire("k")
        daemon.kill()
        with open(f"{state}/state.json", "w") as file:
            file.write("not what was there")
    program = Program([f"{BIN}/holdfastd", "--listen=127.0.0.1:0", f"--store=memory:{state}", "--max-lease=1s"])
    with program:
        line = program.err.wait_for("grace period", 5)
        assert "--no-grace" in line
        address = program.out.wait_for("serving: ", 5)[len("serving: "):]
        until(lambda: health.check(address, "holdfast.v1.LockService") == "SERVING", 5, "the grace is over")
