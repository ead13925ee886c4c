package kubectl

import (
	"slices"

	"github.com/spf13/pflag"
)

// flagsOf lists the flags of fs, so that fs may change while they are walked.
func flagsOf(fs *pflag.FlagSet) []*pflag.Flag {
	var flags []*pflag.Flag
	fs.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

func (v verb) drops(flag string) bool { return slices.Contains(v.drop, flag) }
