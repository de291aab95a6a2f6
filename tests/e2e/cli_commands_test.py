# SPDX-License-Identifier: Apache-2.0
"""holdfast acquire, renew, release, inspect, ls and ping: for people, and as JSON for programs."""

import json
import os
import subprocess

from support.cli import HOLDFAST, holdfast
from support.daemon import Daemon
from support.redis_server import RedisServer
from support.shared_daemon import daemon, folder, session  # noqa: F401


def as_json(ran):
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_acquire_renew_and_release_with_json(daemon, client):
    grant = as_json(holdfast(daemon.address, "acquire", "json", "--lease=20s", "--json"))
    assert grant["acquired"] is True and grant["key"] == "json" and grant["fencing_token"] > 0
    state = client.inspect("json")
    assert state.holders[0].hold_id == grant["hold_id"] and not state.holders[0].has_session
    who = [f"--owner={grant['owner']}", f"--hold-id={grant['hold_id']}"]
    renewed = as_json(holdfast(daemon.address, "renew", "json", "--lease=30s", "--json", *who))
    assert renewed["renewed"] is True and 25_000 < renewed["valid_for_ms"] < 30_000
    released = as_json(holdfast(daemon.address, "--json", "release", "json", *who))
    assert released == {"released": True, "key": "json", "remaining_count": 0}
    again = holdfast(daemon.address, "release", "json", *who)
    assert again.returncode == 125 and "not held any more" in again.stderr


def test_owner_and_hold_come_from_the_environment_too(daemon, client):
    grant = client.acquire("env")
    env = {"HOLDFAST_OWNER": grant.owner, "HOLDFAST_HOLD_ID": grant.hold_id}
    assert holdfast(daemon.address, "release", "env", env=env).returncode == 0
    assert client.inspect("env").free


def test_a_busy_key_is_124_and_says_who_holds_it(daemon, client):
    client.acquire("taken", note="job 7")
    ran = holdfast(daemon.address, "acquire", "taken", "--json")
    assert ran.returncode == 124
    answer = json.loads(ran.stdout)
    assert answer["acquired"] is False and answer["reason"] == "BUSY" and answer["holders"][0]["note"] == "job 7"
    text = holdfast(daemon.address, "acquire", "taken")
    assert text.returncode == 124 and "job 7" in text.stderr


def test_inspect_says_who_holds_and_who_waits(daemon, client, session):
    assert as_json(holdfast(daemon.address, "inspect", "seen", "--json"))["free"] is True
    hold = session.acquire("seen", note="ünïcode")
    state = as_json(holdfast(daemon.address, "inspect", "seen", "--json"))
    assert state["free"] is False and state["fencing_token"] == hold.token
    (holder,) = state["holders"]
    assert holder["note"] == "ünïcode" and holder["has_session"] and holder["hold_count"] == 1
    assert 0 < holder["expires_in_ms"] <= 30_000 and hold.owner not in json.dumps(state)
    text = holdfast(daemon.address, "inspect", "seen").stdout
    assert "ünïcode" in text and str(hold.token) in text


def test_ls_lists_what_is_held_below_a_prefix(daemon, client):
    for key in ("list/a", "list/b", "elsewhere"):
        client.acquire(key)
    ran = holdfast(daemon.address, "ls", "list/", "--json")
    states = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(s["key"] for s in states) == ["list/a", "list/b"] and not any(s["free"] for s in states)
    text = holdfast(daemon.address, "ls", "list/").stdout
    assert "list/a" in text and "list/b" in text and "elsewhere" not in text


def test_namespaces_are_told_apart(daemon, client):
    client.acquire("ns", namespace="team-a")
    assert as_json(holdfast(daemon.address, "inspect", "ns", "--json"))["free"] is True
    assert as_json(holdfast(daemon.address, "--namespace=team-a", "inspect", "ns", "--json"))["free"] is False
    env = {"HOLDFAST_NAMESPACE": "team-a"}
    assert as_json(holdfast(daemon.address, "inspect", "ns", "--json", env=env))["free"] is False


def test_ping_says_whether_it_serves(daemon, folder):
    answer = as_json(holdfast(daemon.address, "ping", "--json"))
    assert answer["serving"] is True and answer["address"] == daemon.address and answer["round_trip_us"] > 0
    assert "serving" in holdfast(daemon.address, "ping").stdout
    nobody = holdfast(f"unix://{folder}/nobody.sock", "ping")
    assert nobody.returncode == 69 and "holdfastd" in nobody.stderr


def test_ping_says_how_long_a_grace_period_lasts(folder):
    with RedisServer(folder) as server, Daemon(server.url, "--max-lease=20s", ready=False) as young:
        young.log.wait_for("grace period", 5)
        ran = holdfast(young.address, "ping", "--json")
        answer = json.loads(ran.stdout)
        assert ran.returncode == 69 and answer["serving"] is False and answer["reason"] == "GRACE_PERIOD"
        assert 0 < answer["retry_after_ms"] <= 20_000
        run = holdfast(young.address, "run", "k", "--wait=0", "--", "echo", "ran")
        assert run.returncode == 69 and "grace period" in run.stderr and run.stdout == ""


def test_an_error_as_json_names_code_reason_and_field(daemon):
    ran = holdfast(daemon.address, "--json", "release", "k", "--owner=an-owner-nobody-guesses", "--hold-id=" + "h" * 65)
    error = json.loads(ran.stderr)["error"]
    assert ran.returncode == 64 and error["reason"] == "INVALID_FIELD" and error["field"] == "hold_id"


def test_the_address_comes_from_the_environment(daemon):
    ran = subprocess.run([HOLDFAST, "ping"], env={**os.environ, "HOLDFAST_ADDRESS": daemon.address},
                         capture_output=True, text=True, timeout=20)
    assert ran.returncode == 0 and daemon.address in ran.stdout
