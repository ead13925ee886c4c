package factory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// pipePatience is how long the other end of a pipe may take to say all of a kubeconfig.
const pipePatience = 10 * time.Second

// Within has waits for files end when ctx does. Without it they end by time alone.
func (f *Factory) Within(ctx context.Context) { f.conn.within = ctx.Done() }

// ReadWithin has all requests to the control plane end with ctx, too, those of kubectl's packages among them, which know
// no context. It is for commands that change nothing: others may have to put something right after they are told to end.
func (f *Factory) ReadWithin(ctx context.Context) {
	f.Within(ctx)
	f.conn.reads = ctx
}

// readPipes returns what comes through the one of files that is a pipe, as shells make them of <(command). It can be read
// once, and nobody may be at its other end. nil means that all are files.
func (c *connection) readPipes(files []string) ([]byte, error) {
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return nil, c.unreadable(file, err)
		case info.Mode()&fs.ModeNamedPipe == 0:
			continue
		case len(files) > 1:
			return nil, &Error{Reason: KubeconfigInvalid, text: fmt.Sprintf("kubeconfig %s is a pipe, which cannot be read together with files; pass it alone, with %s", file, c.end.kubeconfigFlag)}
		}
		return c.readPipe(file)
	}
	return nil, nil
}

func (c *connection) readPipe(file string) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	read := make(chan result, 1)
	go func() { // to open a pipe can take for ever, and cannot be ended
		content, err := readAtMost(file, maxSize+1)
		read <- result{content, err}
	}()
	patience := c.pipePatience
	if patience <= 0 {
		patience = pipePatience
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case r := <-read:
		switch {
		case r.err != nil:
			return nil, c.unreadable(file, r.err)
		case len(r.content) > maxSize:
			return nil, c.tooBig(file, fmt.Sprintf("more than %d MiB", maxSize>>20))
		}
		return r.content, nil
	case <-c.within:
		return nil, c.unreadable(file, errors.New("it is a pipe, and the wait for its other end was interrupted"))
	case <-limit.C:
		return nil, c.unreadable(file, fmt.Errorf("it is a pipe, and nobody has written a whole kubeconfig into it in %s", patience))
	}
}

// readAtMost returns the beginning of what a file says; it is not nil.
func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	content := []byte{}
	more, err := io.ReadAll(io.LimitReader(f, most))
	return append(content, more...), errors.Join(err, f.Close())
}
