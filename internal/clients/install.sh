#!/usr/bin/env bash
# Installs the client libraries into a folder, unless they are there:
#
#   internal/clients/install.sh DIR
set -euo pipefail
from=$(cd "$(dirname "$0")/scripts" && pwd)
mkdir -p "$1"
cd "$1"
if cmp -s "$from/package.json" package.json && cmp -s "$from/requirements.txt" requirements.txt && [ -e installed ]; then
	exit 0
fi
rm -f installed
cp "$from/package.json" "$from/requirements.txt" .
npm install --no-audit --no-fund --silent
python3 -m venv venv
venv/bin/pip install --quiet -r requirements.txt
touch installed
