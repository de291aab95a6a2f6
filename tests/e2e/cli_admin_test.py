# SPDX-License-Identifier: Apache-2.0
"""holdfast sessions, close-session, force-release and check-token: for people, and as JSON for programs."""

import json

from support.cli import holdfast, start_holdfast
from support.shared_daemon import daemon, folder, session  # noqa: F401
from support.waiting import until


def as_json(ran, code=0):
    assert ran.returncode == code, (ran.stdout, ran.stderr)
    return json.loads(ran.stdout)


def sessions(daemon):
    ran = holdfast(daemon.address, "sessions", "--json")
    assert ran.returncode == 0, ran.stderr
    return {one["session_id"]: one for one in map(json.loads, ran.stdout.splitlines())}


def test_check_token_says_whether_a_token_is_still_the_current_one(daemon, session):
    hold = session.acquire("token")
    current = as_json(holdfast(daemon.address, "check-token", "token", str(hold.token), "--json"))
    assert current == {"key": "token", "current": True, "current_token": hold.token}
    stale = holdfast(daemon.address, "check-token", "token", str(hold.token - 1))
    assert stale.returncode == 125 and str(hold.token) in stale.stdout
    session.release(hold)
    over = holdfast(daemon.address, "check-token", "token", str(hold.token))
    assert over.returncode == 125 and "nobody holds it" in over.stdout
    for wrong in ("0", "9007199254740992", "x"):
        assert holdfast(daemon.address, "check-token", "token", wrong).returncode == 64


def test_sessions_are_listed_and_can_be_closed(daemon, session):
    session.acquire("listed")
    assert sessions(daemon)[session.session_id]["holds"] == 1
    assert "1 hold," in holdfast(daemon.address, "sessions").stdout
    closed = as_json(holdfast(daemon.address, "close-session", session.session_id, "--json"))
    assert closed["closed"] is True and closed["ended"] == 1 and 0 < closed["free_within_ms"] <= 30_000
    until(lambda: session.session_id not in sessions(daemon), 5, "it has ended")
    again = holdfast(daemon.address, "close-session", session.session_id)
    assert again.returncode == 125 and "holdfast sessions" in again.stderr


def test_a_forced_run_is_stopped_and_exits_with_125(daemon, client):
    with start_holdfast(daemon.address, "run", "forced", "--", "sh", "-c", "echo ready; exec sleep 60") as ran:
        ran.out.wait_for("ready", 10)
        forced = holdfast(daemon.address, "force-release", "forced", "--note=it hangs")
        assert forced.returncode == 0 and "sleep" not in forced.stderr and "free as soon as" in forced.stdout
        assert ran.wait(10) == 125
        assert "FORCED" in ran.err.wait_end()
    client.wait_free("forced", 2)


def test_force_release_at_once_says_that_two_may_work(daemon, client):
    client.acquire("at-once", note="job 7")
    answer = as_json(holdfast(daemon.address, "force-release", "at-once", "--immediate", "--json"))
    assert answer["ended"] == 1 and answer["overlap_possible"] is True and answer["holders"][0]["note"] == "job 7"
    assert client.inspect("at-once").free
    client.acquire("at-once", note="job 8")
    text = holdfast(daemon.address, "force-release", "at-once", "--immediate").stdout
    assert "job 8" in text and "may still be working" in text
    nobody = holdfast(daemon.address, "force-release", "at-once")
    assert nobody.returncode == 0 and "nothing to do" in nobody.stdout
