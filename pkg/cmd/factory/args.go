package factory

import (
	"errors"

	"github.com/spf13/cobra"
)

// OneClusterName is the Args of the commands that take the name of a cluster and nothing else; the words are the
// contract's (spec: cli/commands.md 3.1).
func OneClusterName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("cluster name is required")
	case len(args) > 1:
		return errors.New("only the cluster name is allowed as an argument")
	}
	return nil
}
