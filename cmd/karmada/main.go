// Command karmada is every server of Karmada: its first argument, or the name by which it is called, says which.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // hosts and images need not have time zones

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/server"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := run(streams)
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(streams genericiooptions.IOStreams) error {
	cmd, err := server.NewCommand(os.Args, streams)
	if err != nil {
		return err
	}
	return cmd.Execute()
}
