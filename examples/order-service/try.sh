#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration, with and without the lock, on a daemon of its own.
# HOLDFASTD, PYTHON: other programs than the ones below.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
holdfastd=${HOLDFASTD:-$root/build/bin/holdfastd}
python=${PYTHON:-/usr/bin/python3}

folder=$(mktemp -d)
daemon=
trap '[[ -z $daemon ]] || kill "$daemon"; wait; rm -rf "$folder"' EXIT

protoc -I "$root/proto" --python_out="$folder" --grpc_python_out="$folder" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" "$root"/proto/holdfast/v1/*.proto

mkfifo "$folder/said"
"$holdfastd" --listen=127.0.0.1:0 --store="memory:$folder/state" >"$folder/said" 2>"$folder/log" &
daemon=$!
read -r _ HOLDFAST_ADDRESS <"$folder/said"
export HOLDFAST_ADDRESS PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1

for lock in on off; do
  LOCK=$lock "$python" "$here/demo.py" 2>>"$folder/log"
done
