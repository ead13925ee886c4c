package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	utilexec "k8s.io/utils/exec"

	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

// Main runs karmadactl with args, the program's own name first, and returns
// the process's exit code. An error is printed here, once.
func Main(args []string, s genericiooptions.IOStreams) int {
	defer klog.Flush()
	// client-go reports what it retries or gives up through these handlers,
	// before it returns the error that is printed below.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, err error, msg string, keysAndValues ...any) {
			klog.FromContext(ctx).V(1).Info(msg, append(keysAndValues, "err", err)...)
		},
	}

	argv0, rest := "karmadactl", []string{}
	if len(args) > 0 {
		argv0, rest = args[0], args[1:]
	}
	root, f, err := New(argv0, s)
	if err == nil {
		root.SetArgs(rest)
		stop := cancelOnSignal(root)
		defer stop()
		err = f.Explain(root.Execute())
	}
	message, code := describe(err)
	if message != "" {
		fmt.Fprintln(s.ErrOut, strings.TrimSuffix(message, "\n"))
	}
	return code
}

// cancelOnSignal makes the first SIGINT or SIGTERM cancel the context of the
// command that runs; the second one ends the process. kubectl's verbs know no
// context: they end with the first, as kubectl does.
func cancelOnSignal(root *cobra.Command) (stop func()) {
	release := func() {}
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if !kubectl.Owns(cmd) {
			ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, cancel)
			cmd.SetContext(ctx)
			release = cancel
		}
		return before(cmd, args)
	}
	return func() { release() }
}

// describe returns what to print for err, and the exit code. Errors of the API
// server read as kubectl's do, also when they come wrapped in what was tried;
// an error with an ExitStatus (k8s.io/utils/exec.CodeExitError) chooses its code.
func describe(err error) (message string, code int) {
	if err == nil {
		return "", 0
	}
	// Not errors.As: an explained error keeps what it explains as its cause.
	exit, ok := err.(*kubectl.Exit)
	if !ok {
		caught := kubectl.Catch(func() { cmdutil.CheckErr(err) })
		if !errors.As(caught, &exit) {
			return "error: " + err.Error(), cmdutil.DefaultErrorExitCode
		}
	}
	message, code = exit.Message, exit.Code

	var status apierrors.APIStatus
	if strings.HasPrefix(message, "error: ") && errors.As(err, &status) && status.Status().Reason != "" {
		message = fmt.Sprintf("Error from server (%s): %s", status.Status().Reason, strings.TrimPrefix(message, "error: "))
	}
	var chosen utilexec.ExitError
	if errors.As(err, &chosen) {
		code = chosen.ExitStatus()
	}
	return message, code
}
