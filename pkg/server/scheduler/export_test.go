package scheduler

import "github.com/karmadactl/karmadactl/pkg/features"

// Unread is unread, for the test that its flags exist.
func Unread() []string { return unread() }

// Uses says whether the flags of args choose a plugin.
func Uses(args []string, plugin string, p Process) (bool, error) {
	c, err := Parse(args, p)
	if err != nil {
		return false, err
	}
	return c.flags.usesPlugin(plugin), nil
}

// CountsPending says whether the flags of args count what does not show yet.
func CountsPending(args []string, p Process) (bool, error) {
	c, err := Parse(args, p)
	if err != nil {
		return false, err
	}
	return c.gate.Enabled(features.SchedulingOvercommitProtection), nil
}
