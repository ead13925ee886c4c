package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
)

// A Status is what can be found out about an installed plane from outside.
type Status struct {
	DataDir   string `json:"dataDir"`
	Installed bool   `json:"installed"`
	// Healthy says that every component runs and answers its health check.
	Healthy bool   `json:"healthy"`
	Server  string `json:"server"`
	// Version is the one of the running process, KubernetesVersion that of the upstream components.
	Version           string            `json:"version,omitempty"`
	KubernetesVersion string            `json:"kubernetesVersion"`
	PID               int               `json:"pid,omitempty"`
	Started           time.Time         `json:"started,omitzero"`
	Supervisor        *SupervisorState  `json:"supervisor,omitempty"`
	Components        []ComponentStatus `json:"components"`
	Certificates      CertificateStatus `json:"certificates"`
	DataBytes         int64             `json:"dataBytes"`
	Kubeconfig        string            `json:"kubeconfig"`
	Log               string            `json:"log"`
}

// A ComponentStatus is the state of one component as seen now.
type ComponentStatus struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Phase   Phase  `json:"phase"`
	Healthy bool   `json:"healthy"`
	Message string `json:"message,omitempty"`
}

// A CertificateStatus tells of the certificates; DaysLeft is that of the one which ends first.
type CertificateStatus struct {
	DaysLeft  int    `json:"daysLeft"`
	NextToEnd string `json:"nextToEnd"`
	// Broken names certificates that are missing or cannot be read.
	Broken []string `json:"broken,omitempty"`
}

// GetStatus asks every component for its health and looks at files and processes. It changes nothing.
func GetStatus(ctx context.Context, p plane.Plane) (Status, error) {
	l := p.Layout
	h, err := FindProcesses(l)
	if err != nil {
		return Status{}, err
	}
	state, err := readState[State](l.PlaneState())
	if err != nil {
		return Status{}, err
	}
	s := Status{
		DataDir:           l.Dir,
		Installed:         true,
		Server:            p.Config.Server(),
		KubernetesVersion: plane.KubernetesVersion,
		PID:               h.Plane,
		Kubeconfig:        l.AdminKubeconfig(),
		Log:               l.LogFile(),
		Certificates:      certificateStatus(p, time.Now()),
	}
	if s.Supervisor, err = supervisorStatus(l, h); err != nil {
		return Status{}, err
	}
	if s.DataBytes, err = size(l.EtcdData()); err != nil {
		return Status{}, err
	}
	live := h.Plane != 0 && state.PID == h.Plane
	if live {
		s.Version, s.Started = state.Version, state.Started
	}
	s.Healthy = live
	// All at once: one that hangs must not keep the answers of the others.
	s.Components = make([]ComponentStatus, len(p.Components))
	var asked sync.WaitGroup
	for i, c := range p.Components {
		asked.Go(func() { s.Components[i] = componentStatus(ctx, c, state, live) })
	}
	asked.Wait()
	for _, c := range s.Components {
		s.Healthy = s.Healthy && c.Healthy
	}
	return s, nil
}

func supervisorStatus(l plane.Layout, h Holders) (*SupervisorState, error) {
	if h.Supervisor == 0 {
		return nil, nil
	}
	state, err := readState[SupervisorState](l.SupervisorState())
	if err != nil || state.PID != h.Supervisor {
		return nil, err
	}
	return &state, nil
}

func componentStatus(ctx context.Context, c plane.Component, state State, live bool) ComponentStatus {
	cs := ComponentStatus{Name: c.Name, Phase: Stopped}
	if len(c.Listen) > 0 {
		cs.Address = c.Listen[0].Address()
	}
	for _, reported := range state.Components {
		if reported.Name == c.Name && (live || reported.Phase == Failed) {
			cs.Phase, cs.Message = reported.Phase, reported.Message
		}
	}
	if !live || cs.Phase != Ready {
		return cs
	}
	if err := AskHealth(ctx, c.Health); err != nil {
		cs.Message = err.Error()
		return cs
	}
	cs.Healthy = true
	return cs
}

func certificateStatus(p plane.Plane, now time.Time) CertificateStatus {
	var s CertificateStatus
	dir := certs.Dir{Path: p.Layout.PKI}
	var ends time.Time
	for _, spec := range p.Certificates {
		info := dir.Inspect(spec.Name)
		if info.Problem != "" {
			s.Broken = append(s.Broken, fmt.Sprintf("%s: %s", spec.Name, info.Problem))
			continue
		}
		if ends.IsZero() || info.NotAfter.Before(ends) {
			ends, s.NextToEnd, s.DaysLeft = info.NotAfter, spec.Name, info.DaysLeft(now)
		}
	}
	return s
}

// size adds up the files below dir. Files that go while it looks do not count.
func size(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("measure the data: %w", err)
	}
	return total, nil
}
