// Package karmadactl is the root of the module and holds no code: its tests keep the rules of the source tree.
//
// cmd has the two programs, pkg/cmd the commands of karmadactl and pkg/server the roles of karmada. A control plane is
// described as data in pkg/plane and run on a host by pkg/plane/local. The wire contract is in pkg/apis and pkg/names.
package karmadactl
