package localagent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// behave is what the test binary does as a supervisor, or as the agent below it.
func behave() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 2 { // the agent has many arguments
		<-ctx.Done()
		return 0
	}
	if err := Supervise(ctx, Layout{Dir: os.Args[1]}, os.Args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
