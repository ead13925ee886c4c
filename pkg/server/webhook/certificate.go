package webhook

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// A certificate is a serving certificate in two files. They are looked at when
// somebody connects, which is seldom, since API servers keep their connections:
// so nothing is to be done while nobody does.
type certificate struct {
	certFile, keyFile string
	// failed is told, once for each cause, why files that have changed cannot be
	// used. What was read before is served then: they may be half written.
	failed func(error)

	mu      sync.Mutex
	state   [2]fileState
	current *tls.Certificate
	cause   string // that failed was told last; none since the files were good
}

// A fileState changes when the file does.
type fileState struct {
	modified time.Time
	size     int64
}

// newCertificate reads the files, which have to be right now.
func newCertificate(certFile, keyFile string, failed func(error)) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, failed: failed}
	if err := c.refresh(); err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w: --cert-dir, --tls-cert-file-name and --tls-private-key-file-name say where it is", err)
	}
	return c, nil
}

// get returns the certificate that the files hold, for tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refresh()
	if err == nil {
		c.cause = ""
	} else if err.Error() != c.cause {
		c.cause = err.Error()
		c.failed(fmt.Errorf("read the serving certificate anew: %w", err))
	}
	return c.current, nil
}

// refresh reads the files if they are not those that were read last.
func (c *certificate) refresh() error {
	var state [2]fileState
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err // it names the file
		}
		state[i] = fileState{info.ModTime(), info.Size()}
	}
	if c.current != nil && state == c.state {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("%s: %w", c.certFile, err)
	}
	c.current, c.state = &pair, state
	return nil
}
