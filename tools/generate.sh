#!/usr/bin/env bash
# Regenerates what is generated from the types in pkg/apis: the deep copies beside
# them, and their CustomResourceDefinitions. It needs Go, and nothing else that is
# not in tools/go.mod.
#
#   tools/generate.sh            regenerates, in the working tree
#   tools/generate.sh --check    fails if that would change anything; changes nothing
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# generate works on the module in the current directory.
generate() {
	local dir installed=() aggregated=()

	for dir in pkg/apis/*/v*/; do
		case $dir in
		# Served by aggregated API servers: no definition of these is ever
		# installed, a test compares them.
		pkg/apis/cluster/* | pkg/apis/search/*) aggregated+=("paths=./${dir%/}") ;;
		*) installed+=("paths=./${dir%/}") ;;
		esac
	done

	# Nothing may survive that is not generated any more.
	rm -rf pkg/apis/crds/bases pkg/apis/crds/testdata/aggregated pkg/apis/*/v*/zz_generated.*.go

	controller_gen object crd "${installed[@]}" output:crd:dir=pkg/apis/crds/bases
	controller_gen object crd "${aggregated[@]}" output:crd:dir=pkg/apis/crds/testdata/aggregated
}

controller_gen() {
	go tool -modfile=tools/go.mod controller-gen "$@"
}

# check generates in a copy and compares.
check() {
	local root=$PWD copy
	copy=$(mktemp -d)
	# shellcheck disable=SC2064 # the directory is known now, and not at the end
	trap "rm -rf '$copy'" EXIT

	mkdir "$copy/pkg"
	cp go.mod go.sum "$copy"
	cp -R tools "$copy"
	cp -R pkg/apis "$copy/pkg"
	(cd "$copy" && generate)

	if ! (cd "$copy" && diff -ruN "$root/pkg/apis" pkg/apis); then
		echo "generated files are stale: run tools/generate.sh and commit what it changes" >&2
		return 1
	fi
}

case ${1-} in
'') generate ;;
--check) check ;;
*)
	echo "usage: tools/generate.sh [--check]" >&2
	exit 2
	;;
esac
