package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/kubeconfig"
	"github.com/karmadactl/karmadactl/pkg/util/preflight"
)

// memberPrefix begins the names of a playground's members: member1, member2, …
const memberPrefix = "member"

// A Playground is a directory of local member clusters, each a process of its own.
type Playground struct {
	Dir string
	// Karmada is the path of the karmada binary.
	Karmada string
}

// A MemberStatus is the state of one member of a playground.
type MemberStatus struct {
	Name       string `json:"name"`
	Running    bool   `json:"running"`
	Ready      bool   `json:"ready"`
	PID        int    `json:"pid,omitempty"`
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	Nodes      int    `json:"nodes"`
	Log        string `json:"log"`
	// Message says what is wrong with a member that is not ready.
	Message string `json:"message,omitempty"`
	// StartedIn is how long it took to become ready, zero when it was already.
	StartedIn time.Duration `json:"startedIn,omitempty"`
}

func (p Playground) memberDir(name string) string { return filepath.Join(p.Dir, name) }

// Kubeconfig is the kubeconfig of one member, with its name as context.
func (p Playground) Kubeconfig(name string) string { return filepath.Join(p.Dir, name+".config") }

// AllKubeconfig is the kubeconfig that has every member as a context.
func (p Playground) AllKubeconfig() string { return filepath.Join(p.Dir, "members.config") }

// Up brings the playground to have members member1 to member<count>, each with that many simulated nodes, all
// running. Members that are there already keep their data; more nodes are added to them, none removed. started is
// told of each one as it becomes ready.
func (p Playground) Up(ctx context.Context, count, nodes int, started func(MemberStatus)) ([]MemberStatus, error) {
	if err := p.check(count); err != nil {
		return nil, err
	}
	var names []string
	var plans []plane.Plane
	planned := map[int]bool{}
	inUse := func(host string, port int) bool { return planned[port] || preflight.PortInUse(host, port) }
	for i := 1; i <= count; i++ {
		name := memberPrefix + strconv.Itoa(i)
		one, err := p.plan(name, i, nodes, inUse)
		if err != nil {
			return nil, fmt.Errorf("member cluster %s: %w", name, err)
		}
		names, plans = append(names, name), append(plans, one)
		for _, e := range one.Endpoints() {
			planned[e.Port] = true
		}
	}
	// One after the other: starting is bound by the processor, and the first is of use while the next one starts.
	var errs []error
	for i, one := range plans {
		status, err := p.start(ctx, names[i], one)
		if err != nil {
			errs = append(errs, fmt.Errorf("member cluster %s: %w", names[i], err))
			continue
		}
		started(status)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	return all, p.writeAllKubeconfig(all)
}

// check refuses a directory that is not a playground's before anything is made in it.
func (p Playground) check(count int) error {
	if count < 1 {
		return fmt.Errorf("%d members: a playground has at least one", count)
	}
	if err := errors.Join(preflight.WritableDir(p.Dir), preflight.FreeSpace(p.Dir, uint64(count)*minFreeBytes/2)); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the playground: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), memberPrefix) && !strings.HasPrefix(e.Name(), ".") {
			return &plane.ForeignDirectoryError{Dir: p.Dir, Reason: fmt.Sprintf("it holds %q, which is not part of a playground: choose another directory", e.Name())}
		}
	}
	return nil
}

// plan describes a member: the one that is installed, or a new one with ports that are free by inUse.
func (p Playground) plan(name string, index, nodes int, inUse func(host string, port int) bool) (plane.Plane, error) {
	dir, err := filepath.Abs(p.memberDir(name))
	if err != nil {
		return plane.Plane{}, fmt.Errorf("find its directory: %w", err)
	}
	l := plane.NewLayout(dir, "")
	h, err := FindProcesses(l)
	if err != nil {
		return plane.Plane{}, err
	}
	cfg, err := plane.Load(dir)
	switch {
	case errors.Is(err, plane.ErrNotInstalled):
		if cfg, err = plane.NewMemberConfig(name, index, nodes); err != nil {
			return plane.Plane{}, err
		}
		for inUse(cfg.BindAddress, cfg.Port) {
			cfg.Port += 1000
			if cfg.Port > 65535 {
				return plane.Plane{}, fmt.Errorf("no free port for its API server: free one of %d, %d, …", 20000+10*index, 21000+10*index)
			}
		}
	case err != nil:
		return plane.Plane{}, err
	case h.Running():
		// It keeps its ports, also when it has to be started anew for more nodes.
		cfg.Nodes = max(cfg.Nodes, nodes)
		return plane.Member(cfg, l), nil
	default:
		if err := preflight.PortFree(cfg.BindAddress, cfg.Port); err != nil {
			return plane.Plane{}, err
		}
	}
	cfg.Nodes = max(cfg.Nodes, nodes)
	if err := cfg.ChoosePorts(inUse); err != nil {
		return plane.Plane{}, err
	}
	return plane.Member(cfg, l), cfg.Validate()
}

// start prepares a member's files and starts it unless it runs.
func (p Playground) start(ctx context.Context, name string, one plane.Plane) (MemberStatus, error) {
	l := one.Layout
	h, err := FindProcesses(l)
	if err != nil {
		return MemberStatus{}, err
	}
	begin := time.Now()
	ignore := func(State) {}
	if h.Running() {
		installed, err := plane.Load(l.Dir)
		if err != nil {
			return MemberStatus{}, err
		}
		if installed.Nodes < one.Config.Nodes {
			if _, err := Stop(ctx, l); err != nil {
				return MemberStatus{}, err
			}
			h = Holders{}
		}
	}
	if h.Running() {
		err = WaitReady(ctx, l, ignore)
	} else {
		if err := Prepare(ctx, one); err != nil {
			return MemberStatus{}, err
		}
		err = start(ctx, l, []string{p.Karmada, "member", "--data-dir=" + l.Dir}, l.LogFile(), ignore)
	}
	if err != nil {
		return MemberStatus{}, err
	}
	if _, err := writeKubeconfig(one, p.Kubeconfig(name), kubeconfig.Names{Cluster: name, User: name, Context: name}); err != nil {
		return MemberStatus{}, err
	}
	status, err := p.status(ctx, name)
	if !h.Running() {
		status.StartedIn = time.Since(begin)
	}
	return status, err
}

// List tells of every member of the playground.
func (p Playground) List(ctx context.Context) ([]MemberStatus, error) {
	names, err := p.names()
	if err != nil {
		return nil, err
	}
	all := []MemberStatus{}
	for _, name := range names {
		s, err := p.status(ctx, name)
		if err != nil {
			s = MemberStatus{Name: name, Message: err.Error()}
		}
		all = append(all, s)
	}
	return all, nil
}

// names lists the members that have a directory, in order of their number.
func (p Playground) names() ([]string, error) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into the playground: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), memberPrefix)
		if n, err := strconv.Atoi(rest); ok && err == nil && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var names []string
	for _, n := range numbers {
		names = append(names, memberPrefix+strconv.Itoa(n))
	}
	return names, nil
}

func (p Playground) status(ctx context.Context, name string) (MemberStatus, error) {
	dir, err := filepath.Abs(p.memberDir(name))
	if err != nil {
		return MemberStatus{}, fmt.Errorf("find its directory: %w", err)
	}
	cfg, err := plane.Load(dir)
	if err != nil {
		return MemberStatus{}, err
	}
	s, err := GetStatus(ctx, plane.Member(cfg, plane.NewLayout(dir, "")))
	if err != nil {
		return MemberStatus{}, err
	}
	m := MemberStatus{
		Name: name, Running: s.PID != 0, Ready: s.Healthy, PID: s.PID, Server: s.Server,
		Kubeconfig: p.Kubeconfig(name), Nodes: cfg.Nodes, Log: s.Log,
	}
	if !m.Running {
		m.Message = "not running: `playground up` starts it again"
	}
	for _, c := range s.Components {
		if !c.Healthy && c.Message != "" && m.Message == "" {
			m.Message = fmt.Sprintf("component %s: %s", c.Name, c.Message)
		}
	}
	return m, nil
}

// Down stops every member and, when purge is set, removes them with their data. It returns what it stopped.
func (p Playground) Down(ctx context.Context, purge bool) ([]string, error) {
	names, err := p.names()
	if err != nil {
		return nil, err
	}
	// All at once: each waits for its own clients to let go.
	did, errs := make([]bool, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if did[i], errs[i] = p.down(ctx, name, purge); errs[i] != nil {
				errs[i] = fmt.Errorf("member cluster %s: %w", name, errs[i])
			}
		})
	}
	all.Wait()
	stopped := []string{}
	for i, name := range names {
		if did[i] {
			stopped = append(stopped, name)
		}
	}
	if err := errors.Join(errs...); err != nil || !purge {
		return stopped, err
	}
	if _, _, err := removePath(p.AllKubeconfig()); err != nil {
		return stopped, fmt.Errorf("remove the kubeconfig of all members: %w", err)
	}
	_, _, err = removeIfEmpty(p.Dir)
	return stopped, err
}

func (p Playground) down(ctx context.Context, name string, purge bool) (bool, error) {
	dir, err := filepath.Abs(p.memberDir(name))
	if err != nil {
		return false, fmt.Errorf("find its directory: %w", err)
	}
	l := plane.NewLayout(dir, "")
	stopped, err := Stop(ctx, l)
	if err != nil || !purge {
		return stopped, err
	}
	cfg, err := plane.Load(dir)
	if errors.Is(err, plane.ErrNotInstalled) {
		cfg, err = plane.NewConfig(plane.KindMember, name), nil
	}
	if err != nil {
		return stopped, err
	}
	if _, err := removeFiles(plane.Member(cfg, l), true); err != nil {
		return stopped, err
	}
	_, _, err = removePath(p.Kubeconfig(name))
	return stopped, err
}

func (p Playground) writeAllKubeconfig(members []MemberStatus) error {
	var configs []kubeconfig.Config
	for _, m := range members {
		c, err := clientcmd.LoadFromFile(m.Kubeconfig)
		if err != nil {
			return fmt.Errorf("read the kubeconfig of member cluster %s: %w", m.Name, err)
		}
		configs = append(configs, *c)
	}
	merged, err := kubeconfig.Merge("", configs...)
	if err != nil {
		return err
	}
	if _, err := kubeconfig.Upsert(p.AllKubeconfig(), merged); err != nil {
		return fmt.Errorf("write the kubeconfig of all members: %w", err)
	}
	return nil
}
