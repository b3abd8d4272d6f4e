#!/usr/bin/env bash
# Builds a static binary into OUT: deploy/build.sh OUT [ARCH]. Two builds of a commit with
# the same compilers give the same bytes. Needs a C compiler for ARCH (amd64 or arm64; the
# machine's own if left out), for libsecp256k1.
#
#   VERSION  the release, such as 0.1.0; empty for other builds
#   COMMIT   the commit, where there is no repository to ask, as in a container
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
own=$(go env GOHOSTARCH)
arch=${2:-$own}
if [ "$arch" != "$own" ]; then
	case $arch in
	amd64) export CC=${CC:-x86_64-linux-gnu-gcc} ;;
	arm64) export CC=${CC:-aarch64-linux-gnu-gcc} ;;
	*) echo "unknown architecture $arch (want amd64 or arm64)" && exit 2 ;;
	esac
fi
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
# The tags replace the parts of the standard library that need shared libraries at run time.
# C code is compiled without paths and without a build ID, which would differ.
export CGO_ENABLED=1 GOOS=linux GOARCH=$arch GOFLAGS= CGO_CFLAGS="-O2 -ffile-prefix-map=$(go env GOMODCACHE)=/m"
go build -o "$out" -trimpath -buildvcs=false -tags netgo,osusergo \
	-ldflags "-s -w -buildid= -X ashlar/app.Version=${VERSION:-} -X ashlar/app.Commit=$commit -linkmode external -extldflags '-static -Wl,--build-id=none'" \
	./cmd/ashlar
