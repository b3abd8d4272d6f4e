#!/usr/bin/env bash
# Writes a manual page for each command into a folder: deploy/man.sh DIR
#
#   VERSION  the release, such as 0.1.0; empty for other builds
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
# With the flags of build.sh, so that packages that it has compiled are not compiled again.
export CGO_ENABLED=1 GOFLAGS= CGO_CFLAGS="-O2 -ffile-prefix-map=$(go env GOMODCACHE)=/m"
go run -trimpath -buildvcs=false -tags man,netgo,osusergo -ldflags "-X ashlar/app.Version=${VERSION:-}" ./cmd/ashlar man "$out"
