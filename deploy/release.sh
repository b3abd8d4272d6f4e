#!/usr/bin/env bash
# Makes the files of a release in OUT: deploy/release.sh OUT VERSION [ARCH...]. For each
# architecture (amd64 and arm64 if none is given) an archive and a Debian package; a list of
# components (SBOM), the licences of all of them, and SHA256SUMS. The same commit gives the
# same bytes. Needs nfpm, and a C compiler for each architecture.
set -euo pipefail
if [ $# -lt 2 ]; then
	sed -n '2,5s/^# //p' "$0" && exit 2
fi
out=$(realpath -m "$1")
version=$2
shift 2
cd "$(dirname "$0")/.."
export VERSION=$version PACKAGE_VERSION=$version
# The files' time in archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -r "$stage"' EXIT
tool=$stage/ashlar-host
deploy/build.sh "$tool"
STAGE=$stage/files
export STAGE
mkdir -p "$STAGE/completion"
deploy/man.sh "$STAGE/man"
for shell in bash zsh fish; do "$tool" completion "$shell" >"$STAGE/completion/$shell"; done
"$tool" config example >"$STAGE/ashlar.yaml"
go run ./internal/licences >"$STAGE/licences.txt"
cp LICENSE README.md CHANGELOG.md SECURITY.md "$STAGE"
"$tool" version --sbom >"$out/ashlar-$version.cdx.json"
cp "$STAGE/licences.txt" "$out/ashlar-$version-licences.txt"
[ $# -gt 0 ] || set -- amd64 arm64
for ARCH in "$@"; do
	deploy/build.sh "$STAGE/ashlar" "$ARCH"
	chmod -R u=rwX,go=rX "$STAGE"
	tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		--directory "$stage" --transform "s,^files,ashlar-$version," files | gzip -n -9 >"$out/ashlar-$version-linux-$ARCH.tar.gz"
	sed -e "s,\${STAGE},$STAGE,; s,\${ARCH},$ARCH,; s,\${PACKAGE_VERSION},$PACKAGE_VERSION," deploy/nfpm.yaml >"$stage/nfpm.yaml"
	"${ASHLAR_NFPM:-nfpm}" package --config "$stage/nfpm.yaml" --packager deb --target "$out/ashlar_${version}_$ARCH.deb"
done
cd "$out"
sha256sum -- *.tar.gz *.deb *.json *.txt >SHA256SUMS
