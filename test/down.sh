#!/usr/bin/env bash
# Stops what test/up.sh started and removes it with its data. `make down` calls it; it is content with nothing there.
#
#   test/down.sh BIN RUN    as for test/up.sh
set -euo pipefail

if [[ $# -ne 2 ]]; then
	echo "usage: $0 BIN RUN" >&2
	exit 2
fi
if [[ ! -d $2 ]]; then
	echo "Nothing to remove: there is no $2."
	exit 0
fi
run=$(cd "$2" && pwd)
karmadactl=$1/karmadactl

if [[ -d $run/agents || -d $run/members || -d $run/karmada ]] && [[ ! -x $karmadactl ]]; then
	echo "$0: $karmadactl is missing, and it is needed to stop what runs in $run: run \`make build\`, then this again" >&2
	exit 1
fi
kubeconfig=$run/karmada/karmada-apiserver.config
if [[ -d $run/agents/member3 ]]; then
	# A control plane that is stopped or damaged does not keep the agent from being removed.
	"$karmadactl" unregister member3 "--karmada-config=$kubeconfig" "--cluster-kubeconfig=$run/members/member3.config" \
		"--agent-dir=$run/agents/member3" --cascade=delete || echo "$0: the agent of member3 could not be unregistered" >&2
fi
if [[ -d $run/members ]]; then
	"$karmadactl" playground down "--dir=$run/members" --purge
fi
if [[ -d $run/karmada ]]; then
	"$karmadactl" deinit "--data-dir=$run/karmada" --purge --yes
fi
# What others put there stays.
for dir in "$run/agents" "$run"; do
	[[ ! -d $dir ]] || rmdir --ignore-fail-on-non-empty "$dir"
done
