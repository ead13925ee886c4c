#!/usr/bin/env bash
# Makes what a release needs for krew, the plugin manager of kubectl: an archive for each platform, and the manifest with
# their checksums. The same source and version make the same archives.
#
#   tools/krew.sh build VERSION DIR [LDFLAGS]    builds the archives and karmada.yaml in DIR
#   tools/krew.sh fill VERSION DIR               makes karmada.yaml for the archives that are in DIR
#
# HOMEPAGE and RELEASES say where the project and its releases are, KREW_PLATFORMS which archives are built ("linux/amd64 …").
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
platforms="linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"
homepage=${HOMEPAGE:-https://github.com/karmadactl/karmadactl}
releases=${RELEASES:-$homepage/releases/download}

usage() {
	sed -n '/^#   /s/^#   //p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

archive() {
	echo "$dir/kubectl-karmada-${1/\//-}.tar.gz"
}

build() {
	local platform stage exe
	for platform in ${KREW_PLATFORMS:-$platforms}; do
		stage=$(mktemp -d)
		exe=kubectl-karmada
		cp "$root/LICENSE" "$stage"
		case $platform in
		windows/*) exe+=.exe ;;
		*) cp "$root/plugins/kubectl_complete-karmada" "$stage" ;;
		esac
		(cd "$root" && CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
			go build -trimpath -ldflags "$ldflags" -o "$stage/$exe" ./cmd/karmadactl)
		# Nothing of this machine goes in: no time, no user.
		tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C "$stage" -cf - . | gzip -n >"$(archive "$platform")"
		rm -rf "$stage"
	done
}

fill() {
	local platform sum script
	script="s|@VERSION@|$version|g; s|@HOME@|$homepage|g; s|@RELEASES@|$releases|g"
	for platform in $platforms; do
		sum=$(sha256sum "$(archive "$platform")")
		script+="; s|@SHA256_${platform/\//_}@|${sum%% *}|"
	done
	sed -e '/^#/d' -e "$script" "$root/plugins/karmada.yaml" >"$dir/karmada.yaml"
}

[ $# -ge 3 ] || usage
command=$1 version=$2 dir=$3 ldflags=${4-}
case $version in
v[0-9]*.[0-9]*.[0-9]*) ;;
*)
	echo "krew takes versions like v1.2.3, not $version" >&2
	exit 1
	;;
esac
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
case $command in
build)
	build
	[ -n "${KREW_PLATFORMS-}" ] || fill
	;;
fill) fill ;;
*) usage ;;
esac
