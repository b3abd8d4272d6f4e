#!/usr/bin/env bash
# Installs the client libraries into a folder, unless they are there:
#
#   internal/clients/install.sh DIR
set -euo pipefail
from=$(cd "$(dirname "$0")/scripts" && pwd)
mkdir -p "$1/ponder"
cd "$1"
lists=(package.json requirements.txt starknet-requirements.txt starknet-versions.txt tracing-requirements.txt consensus-requirements.txt ponder/package.json)
if [ -e installed ] && cmp -s installed <(cd "$from" && cat "${lists[@]}"); then
	exit 0
fi
rm -f installed
for list in "${lists[@]}"; do
	cp "$from/$list" "$list"
done
npm install --no-audit --no-fund --silent
(cd ponder && npm install --no-audit --no-fund --silent)
# A folder each: web3.py, starknet.py and ethereum-etl exclude each other's dependencies. The
# wheel of cryo is for Python 3.11.
for python in venv:requirements.txt starknet-venv:starknet-requirements.txt tracing-venv:tracing-requirements.txt consensus-venv:consensus-requirements.txt; do
	python3 -m venv "${python%%:*}"
	"${python%%:*}/bin/pip" install --quiet -r "${python##*:}"
done
# Older versions of starknet.py share the other packages of the newest one.
while read -r version; do
	starknet-venv/bin/pip install --quiet --no-deps --target "starknet-py-$version" "starknet-py==$version"
done <starknet-versions.txt
cat "${lists[@]}" >installed
