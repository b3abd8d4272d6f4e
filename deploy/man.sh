#!/usr/bin/env bash
# Writes a manual page for each command into a folder: deploy/man.sh DIR
#
#   VERSION  the release, such as 0.1.0; empty for other builds
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
GOFLAGS='' go run -trimpath -tags man -ldflags "-X ashlar/app.Version=${VERSION:-}" ./cmd/ashlar man "$out"
