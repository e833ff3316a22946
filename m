#!/bin/sh
# Morel's one command: `./m help` lists what it does. The work is in tools/m.py; this file only finds a Python.
set -e
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
  # A minimal Debian has no Python at all.
  echo "m: no $python here; installing Debian's python3"
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3
  python=python3
fi
exec "$python" "$(dirname "$0")/tools/m.py" "$@"
