#!/usr/bin/env bash
# Regenerates what is generated from the types in pkg/apis: the deep copies beside
# them, their CustomResourceDefinitions, and the OpenAPI schema of those that an
# aggregated API server serves. And, from karmadactl's commands, their reference in
# docs/cli and docs/man. It needs Go, and nothing else that is not in tools/go.mod.
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
	openapi_gen pkg/apis/cluster/v1alpha1
}

# reference works in the current directory, and writes into the given folder.
reference() {
	go run ./pkg/cmd/clidocs "$1"
}

controller_gen() {
	go tool -modfile=tools/go.mod controller-gen "$@"
}

# openapi_gen makes pkg/generated/openapi from the packages in the given folders.
openapi_gen() {
	local root=$PWD copy dir
	copy=$(mktemp -d)

	# The generator takes packages that ask for it only, by a tag that means
	# nothing to anybody else. It is shown copies that do.
	cp go.mod go.sum "$copy"
	for dir in "$@"; do
		mkdir -p "$copy/$dir"
		cp "$dir"/*.go "$copy/$dir"
		sed 's,^package ,// +k8s:openapi-gen=true\n&,' "$dir/doc.go" >"$copy/$dir/doc.go"
	done
	: >"$copy/header"

	mkdir -p pkg/generated/openapi
	rm -f pkg/generated/openapi/zz_generated.*.go
	# The report is of what Kubernetes asks of names in its own types.
	(cd "$copy" && go tool -modfile="$root/tools/go.mod" openapi-gen \
		--output-dir "$root/pkg/generated/openapi" --output-pkg github.com/karmadactl/karmadactl/pkg/generated/openapi \
		--output-file zz_generated.openapi.go --go-header-file header --report-filename report "${@/#/./}")
	rm -rf "$copy"
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
	cp -R pkg/apis pkg/generated "$copy/pkg"
	(cd "$copy" && generate)
	reference "$copy/docs"

	if ! (cd "$copy" && for folder in pkg/apis pkg/generated docs/cli docs/man; do
		diff -ruN "$root/$folder" "$folder" || exit
	done); then
		echo "generated files are stale: run tools/generate.sh and commit what it changes" >&2
		return 1
	fi
}

case ${1-} in
'')
	generate
	reference docs
	;;
--check) check ;;
*)
	echo "usage: tools/generate.sh [--check]" >&2
	exit 2
	;;
esac
