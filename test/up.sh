#!/usr/bin/env bash
# Starts a control plane and three local member clusters on this host, makes the clusters members, and shows that it
# works. `make up` calls it; running it again changes nothing that is right.
#
#   test/up.sh BIN RUN    BIN: directory of karmadactl and karmada; RUN: directory for everything that is made
#
# KARMADA_PORT chooses the port of the API server. Without it a new control plane gets karmadactl's default, 32443,
# and one that is there already keeps its own.
set -euo pipefail

if [[ $# -ne 2 ]]; then
	echo "usage: $0 BIN RUN" >&2
	exit 2
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$(cd "$1" && pwd)
mkdir -p "$2"
run=$(cd "$2" && pwd)

karmadactl=$bin/karmadactl
data=$run/karmada
members=$run/members
agent=$run/agents/member3
kubeconfig=$data/karmada-apiserver.config

# step shows what is about to happen.
step() { printf '\n== %s\n' "$*"; }

install=(init "--data-dir=$data")
if [[ -n ${KARMADA_PORT:-} ]]; then
	install+=("--port=$KARMADA_PORT")
fi

step "karmadactl ${install[*]}"
"$karmadactl" "${install[@]}"

step "karmadactl status"
"$karmadactl" status "--data-dir=$data" --wait

step "karmadactl playground up"
"$karmadactl" playground up "--dir=$members" --members=3 --nodes=4

# By push: the control plane reaches the member.
for member in member1 member2; do
	step "karmadactl join $member"
	"$karmadactl" join "$member" "--kubeconfig=$kubeconfig" "--cluster-kubeconfig=$members/$member.config"
done

# By pull: an agent beside the member reaches the control plane, with a certificate that a token is good for once.
step "karmadactl token create, register member3"
read -r -a register < <("$karmadactl" token create --cluster=member3 --print-register-command "--kubeconfig=$kubeconfig")
"$karmadactl" "${register[@]:1}" "--kubeconfig=$members/member3.config" --agent=process "--agent-dir=$agent"

# No kubectl is needed: karmadactl has its verbs.
step "karmadactl get clusters"
"$karmadactl" get clusters "--kubeconfig=$kubeconfig"

# An application and its policies, in the control plane; nothing is created in the members by hand.
step "karmadactl apply: an application for all three members"
"$karmadactl" apply "--kubeconfig=$kubeconfig" -f "$root/test/sample"

# The status of the Deployment in the control plane sums up the members.
step "karmadactl get: its six replicas become ready, as the control plane sees it"
ready() { "$karmadactl" get "--kubeconfig=$kubeconfig" -n default deployment/hello -o 'jsonpath={.status.readyReplicas}'; }
patience=120
until [[ $(ready) == 6 ]]; do
	if ((patience-- == 0)); then
		"$karmadactl" get "--kubeconfig=$kubeconfig" -n default deployment/hello resourcebinding/hello-deployment -o yaml
		echo "$0: deployment/hello has $(ready) ready replicas after two minutes, and should have 6" >&2
		exit 1
	fi
	sleep 1
done
"$karmadactl" get "--kubeconfig=$kubeconfig" -n default deployment/hello resourcebinding/hello-deployment

for member in member1 member2 member3; do
	step "karmadactl get, in $member"
	"$karmadactl" get "--kubeconfig=$members/$member.config" -n default deployment/hello service/hello configmap/hello -o wide
done

cat <<EOF

The control plane is up, with three member clusters. Go on with:

  export KUBECONFIG=$kubeconfig
  $karmadactl get clusters
  $karmadactl get deployments,resourcebindings,propagationpolicies
  $karmadactl get works -A
  $karmadactl status --data-dir=$data

and remove it, with its data, with:

  make down
EOF
