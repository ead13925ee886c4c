package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// The range lies below the ports that the kernel hands out by itself (32768 and up), and above those of local
	// member clusters.
	firstPort, lastPort = 23000, 32000
	// portsPerPlane is how many ports in a row a control plane takes, with some room.
	portsPerPlane = 10
	portAttempts  = 200
)

// FreePort finds a port that is free now, as are the ones that follow it. It tries at random, so that test binaries
// that run at the same time seldom meet.
func FreePort() (int, error) {
	var last error
	for range portAttempts {
		port := firstPort + portsPerPlane*rand.IntN((lastPort-firstPort)/portsPerPlane)
		if last = portsFree(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: tried %d times between %d and %d: %w", portAttempts, firstPort, lastPort, last)
}

func portsFree(first int) error {
	var errs []error
	for port := first; port < first+portsPerPlane; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err == nil {
			err = l.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
