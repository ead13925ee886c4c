package kubectl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// An Exit is the error of a command that wants the process to end, with the
// message as it is to be shown, "error: " and all.
type Exit struct {
	Message string
	Code    int
}

// Interrupted is how a command ends that was told to, as shells see SIGINT.
func Interrupted() *Exit { return &Exit{Code: 130} }

// OrInterrupted returns err, or that the command was told to end, if it was and
// failed: whatever failed, that is why.
func OrInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return Interrupted()
	}
	return err
}

func (e *Exit) Error() string { return strings.TrimSuffix(e.Message, "\n") }

// returnErrors makes cmd and its sub-commands return their errors instead of
// printing them and ending the process.
func returnErrors(cmd *cobra.Command) {
	if run := cmd.Run; run != nil {
		cmd.Run = nil
		if cmd.Annotations == nil {
			cmd.Annotations = make(map[string]string)
		}
		cmd.Annotations[ownsAnnotation] = "true"
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return Catch(func() { run(cmd, args) })
		}
	}
	for _, sub := range cmd.Commands() {
		returnErrors(sub)
	}
}

// ownsAnnotation marks the commands that kubectl's code runs.
const ownsAnnotation = "karmadactl/kubectl"

// Owns tells whether cmd is one of kubectl's.
func Owns(cmd *cobra.Command) bool { return cmd.Annotations[ownsAnnotation] != "" }

// Catch runs code that ends with kubectl's CheckErr and returns what that
// would have ended the process with, an *Exit, or nil. kubectl knows one
// handler per process, so two calls must not overlap.
func Catch(run func()) (err error) {
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		panic(&Exit{Message: message, Code: code}) // caught below: CheckErr must not return
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Exit:
			err = r
		default:
			panic(r)
		}
	}()
	run()
	return nil
}
