#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the source tree for what the compiler cannot refuse.

Floors include only what lies below them, link only what is listed here, take time only from the clock,
and say their licence. Each rule carries an offending line of its own, which must be caught before
the rule is believed about the tree.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (files that it is about, files that it is not about, what no line may match, why, a line that does)
INCLUDES = [
    (r"src/", None, r'"(server|client|tests)/', "src/ lies below server/, client/ and tests/",
     'src/base/a.h: #include "server/options.h"'),
    (r"src/base/", None, r'"src/(engine|store)/', "base is the lowest floor",
     'src/base/a.h: #include "src/store/store.h"'),
    (r"src/engine/", None, r'"src/store/', "the engine knows no store; shared types lie in src/base/",
     'src/engine/a.cc: #include "src/store/store.h"'),
    (r"src/store/", None, r'"src/engine/', "a store knows no engine",
     'src/store/memory/a.cc: #include "src/engine/engine.h"'),
    (r"src/store/memory/", None, r'"src/store/redis/', "a store knows no other store",
     'src/store/memory/a.cc: #include "src/store/redis/scripts.h"'),
    (r"src/store/redis/", None, r'"src/store/memory/', "a store knows no other store",
     'src/store/redis/a.cc: #include "src/store/memory/memory_store.h"'),
    (r"src/(base|engine)/", None,
     r"<(grpc|google/protobuf|hiredis|spdlog|uv\.h|thread|mutex|shared_mutex|condition_variable|future"
     r"|random|fstream|filesystem)|absl/(synchronization|random)/",
     "base and engine have no sockets, threads, locks, chance or files",
     "src/engine/a.cc: #include <mutex>"),
    (r"src/", None, r"<(grpc|google/protobuf|spdlog)|\"holdfast/v1/",
     "the contract's generated code stays in server/, client/ and tests/",
     'src/store/redis/a.cc: #include "holdfast/v1/lock.pb.h"'),
    (r"", r"(src/store/redis|tests/bench)/", r"[<\"]hiredis",
     "only the Redis store speaks Redis, and the benchmark's floor",
     "server/main.cc: #include <hiredis/async.h>"),
    (r"server/", None, r'"client/', "the server knows no client",
     'server/main.cc: #include "client/lib/client.h"'),
    (r"server/", r"server/store_factory\.cc", r'"src/store/\w+/',
     "only server/store_factory.cc knows which stores there are",
     'server/main.cc: #include "src/store/memory/memory_store.h"'),
    (r"client/", None, r'"(server|src/(engine|store))/',
     "a client sees the contract and src/base/ only",
     'client/cli/main.cc: #include "src/engine/engine.h"'),
]

CALLS = [
    (r"", None, r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b",
     "nothing waits for time to pass: wait for the event, or step a clock",
     "tests/sim/a.cc: std::this_thread::sleep_for(d);"),
    (r"", r"src/base/clock\w*\.cc",
     r"\babsl::Now\b|_clock::now\b|\b(clock_gettime|gettimeofday)\b|\btime\((nullptr|NULL|0)\)",
     "time comes from src/base/clock.h",
     "server/main.cc: auto t = std::chrono::steady_clock::now();"),
]

# What each library of ours may link. Packages are listed too: a new one is a decision.
EDGES = {
    "holdfast_base": "absl::flat_hash_map absl::status absl::statusor absl::strings absl::time"
                     " OpenSSL::Crypto",
    "holdfast_engine": "holdfast_base",
    "holdfast_store": "holdfast_base",
    "holdfast_store_memory": "holdfast_store holdfast_base PkgConfig::lmdb PkgConfig::libuv"
                             " nlohmann_json::nlohmann_json",
    "holdfast_store_redis": "holdfast_store holdfast_base hiredis PkgConfig::libuv",
    "holdfast_server": "holdfast_engine holdfast_store holdfast_store_memory holdfast_store_redis"
                       " holdfast_proto holdfast_base gRPC::grpc++ gRPC::grpc++_reflection"
                       " spdlog::spdlog CLI11::CLI11 yaml-cpp::yaml-cpp nlohmann_json::nlohmann_json"
                       " PkgConfig::libuv",
    "holdfast_client": "holdfast_proto holdfast_base gRPC::grpc++",
    "holdfast_cli": "holdfast_client holdfast_base CLI11::CLI11 nlohmann_json::nlohmann_json",
}

LICENCE = "SPDX-License-Identifier: Apache-2.0"


def code_of(line):
    """The line without string contents and comments."""
    return re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"', '""', line))


def line_faults(path, line):
    """Why this line may not stand in this file."""
    if line.lstrip().startswith("#include"):
        rules, text = INCLUDES, line
    else:
        rules, text = CALLS, code_of(line)
    for where, but_not, pattern, why, _ in rules:
        if re.match(where, path) and not (but_not and re.match(but_not, path)) and re.search(pattern, text):
            yield why


def file_faults(path, text):
    lines = text.splitlines()
    if not any(LICENCE in line for line in lines[:2]):
        yield f"{path}:1: the first line says `{LICENCE}`"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield f"{path}:1: a header has `#pragma once`"
    if path.endswith((".h", ".cc")):
        for number, line in enumerate(lines, 1):
            for why in line_faults(path, line):
                yield f"{path}:{number}: {why}: {line.strip()}"


def edge_faults(path, text):
    text = re.sub(r"#.*", "", text)
    for name, arguments in re.findall(r"holdfast_library\((\w+)([^)]*)\)", text):
        deps = set(arguments.partition("DEPS")[2].split())
        for dep in sorted(deps - set(EDGES.get(name, "").split())):
            yield f"{path}: {name} may not link {dep}"
    for name in re.findall(r"target_link_libraries\((holdfast\w*)", text):
        yield f"{path}: what {name} links is said in its holdfast_library"


def tree_files():
    folders = ("proto", "src", "server", "client", "tests", "examples", "cmake", "scripts", ".ci")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "node_modules" not in path.parts and "__pycache__" not in path.parts:
                yield path


def main():
    for rule in INCLUDES + CALLS:
        path, _, line = rule[4].partition(": ")
        if rule[3] not in line_faults(path, line):
            sys.exit(f"layout: the rule does not catch its own example: {rule[4]}")

    faults = []
    for file in tree_files():
        path = file.relative_to(ROOT).as_posix()
        licensed = (".h", ".cc", ".cmake", ".lua", ".proto", ".py", ".js", ".mjs", ".sh", "CMakeLists.txt")
        if path.endswith(licensed) or path.startswith((".ci/", "scripts/")) and file.suffix == "":
            text = file.read_text(encoding="utf-8")
            faults += file_faults(path, text)
            if file.name == "CMakeLists.txt":
                faults += edge_faults(path, text)
                if not (file.parent / "README.md").exists():
                    faults.append(f"{path}: the folder has no README.md")
    print("\n".join(faults) or "layout: clean")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
