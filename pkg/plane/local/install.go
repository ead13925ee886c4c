package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/bootstrap"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

// A Request is what the user asks of an installation. A nil field keeps what is installed, or takes the default.
type Request struct {
	DataDir          string
	PKI              *string
	BindAddress      *string
	AdvertiseAddress *string
	Port             *int
	CertValidity     *time.Duration
	ExternalIPs      *[]string
	ExternalDNS      *[]string
	// CACert and CAKey are files of the user's own authority; both or none.
	CACert, CAKey string
	// Timeout bounds the wait for components; 0 waits for ever.
	Timeout time.Duration
	// Supervisor is the command that starts the plane and keeps it.
	Supervisor []string
}

// A Step is one part of an installation, for the user to see.
type Step struct {
	Name   string        `json:"name"`
	Detail string        `json:"detail,omitempty"`
	Took   time.Duration `json:"took"`
}

// A Reporter shows progress.
type Reporter interface {
	Begin(step string)
	// Progress tells what a step waits for.
	Progress(text string)
	End(Step)
}

// A Result is what an installation came to.
type Result struct {
	DataDir    string   `json:"dataDir"`
	Server     string   `json:"server"`
	Kubeconfig string   `json:"kubeconfig"`
	Context    string   `json:"context"`
	CAHash     string   `json:"caCertHash"`
	ValidFor   []string `json:"serverCertificateNames"`
	Log        string   `json:"log"`
	PID        int      `json:"pid"`
	Changed    bool     `json:"changed"`
	Steps      []Step   `json:"steps"`
}

// An Installation is an intended control plane on this host: what Plan found out without changing anything.
type Installation struct {
	Plane plane.Plane
	// Certificates is what will happen to each of them.
	Certificates []certs.Change

	request   Request
	installed plane.Config // as Plan found it
	authority *certs.Authority
	fresh     bool // nothing is installed yet
	running   Holders
	preflight Step // what Plan came to
	restart   bool // what runs was started with other flags
}

// Apply carries the installation out. It may be interrupted at any point: planning and applying again completes it.
// When the very first start fails, what was made is removed again.
func (i *Installation) Apply(ctx context.Context, r Reporter) (result Result, err error) {
	l := i.Plane.Layout
	made := missing(l.Dir, l.PKI)
	lock, err := LockCommands(l)
	if err != nil {
		return Result{}, err
	}
	if err := i.confirm(); err != nil {
		return Result{}, errors.Join(err, lock.Release())
	}
	run := &stepper{reporter: r, steps: []Step{i.preflight}}
	r.End(i.preflight)
	defer func() {
		result.Steps = run.steps
		if err != nil && i.fresh && !leaveRunning(err) {
			var start *StartError
			if errors.As(err, &start) {
				start.keepTail()
			}
			err = errors.Join(err, i.undo(made))
		}
		err = errors.Join(err, lock.Release())
	}()

	i.do(ctx, run)
	if run.err != nil {
		return Result{}, run.err
	}
	h, err := FindProcesses(l)
	if err != nil {
		return Result{}, err
	}
	hash, err := caHash(i.Plane)
	if err != nil {
		return Result{}, err
	}
	return Result{
		DataDir:    l.Dir,
		Server:     i.Plane.Config.Server(),
		Kubeconfig: l.AdminKubeconfig(),
		Context:    adminNames().Context,
		CAHash:     hash,
		ValidFor:   i.Plane.Config.ServerNames(),
		Log:        l.LogFile(),
		PID:        h.Plane,
		Changed:    run.changed,
	}, nil
}

// confirm makes sure, now that no other command can change it, that the installation still is what Plan has seen.
func (i *Installation) confirm() error {
	now, err := plane.Load(i.Plane.Layout.Dir)
	if err != nil && !errors.Is(err, plane.ErrNotInstalled) {
		return err
	}
	if !reflect.DeepEqual(now, i.installed) {
		return fmt.Errorf("another command has changed the installation in %s meanwhile: run this again", i.Plane.Layout.Dir)
	}
	return nil
}

// prepare makes what components read.
func (i *Installation) prepare(ctx context.Context, run *stepper) {
	l := i.Plane.Layout
	run.step("configuration", func() (string, bool, error) {
		// It marks the directory as ours, so it comes before anything that would need the mark.
		changed, err := i.Plane.Config.Save(l.Dir)
		if err == nil {
			err = makeDirs(l)
		}
		return l.ConfigFile(), changed, err
	})
	run.step("certificates", func() (string, bool, error) {
		changes, err := EnsureCertificates(ctx, i.Plane, i.authority)
		return describeCertificates(changes), slices.ContainsFunc(changes, certs.Change.Changed), err
	})
	run.step("component files", func() (string, bool, error) {
		changed, err := WriteFiles(i.Plane)
		return countFiles(changed), len(changed) > 0, err
	})
}

// do is the installation, step by step.
func (i *Installation) do(ctx context.Context, run *stepper) {
	l := i.Plane.Layout
	i.prepare(ctx, run)
	var client dynamic.Interface
	var documents openapi.Client
	run.step("start", func() (string, bool, error) {
		if i.restart {
			if _, err := Stop(ctx, l); err != nil {
				return "", false, err
			}
			i.running = Holders{}
		}
		return i.start(ctx, run.reporter)
	})
	run.step("kubeconfig", func() (string, bool, error) {
		changed, err := writeAdminKubeconfig(i.Plane)
		return l.AdminKubeconfig(), changed, err
	})
	run.step("namespaces", func() (string, bool, error) {
		config, err := adminClient(i.Plane)
		if err != nil {
			return "", false, err
		}
		if client, err = dynamic.NewForConfig(config); err != nil {
			return "", false, fmt.Errorf("make a client for the API server: %w", err)
		}
		discovery, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return "", false, fmt.Errorf("make a client for the API server: %w", err)
		}
		documents = discovery.OpenAPIV3()
		objects, err := bootstrap.Namespaces()
		return applyObjects(ctx, client, err, objects...)
	})
	// First of all, since the server of clusters asks the API server whom it may answer.
	run.step("access rules", func() (string, bool, error) {
		objects, err := bootstrap.RBAC()
		return applyObjects(ctx, client, err, objects...)
	})
	run.step("cluster API", func() (string, bool, error) {
		objects, err := aggregatedAPI(i.Plane)
		return applyObjects(ctx, client, err, objects...)
	})
	run.step("API types", func() (string, bool, error) {
		server, err := webhookServer(i.Plane)
		if err != nil {
			return "", false, err
		}
		definitions, err := bootstrap.CRDs(server)
		detail, changed, err := applyObjects(ctx, client, err, definitions...)
		if err != nil {
			return "", false, err
		}
		return detail, changed, bootstrap.WaitEstablished(ctx, client, definitions)
	})
	run.step("webhooks", func() (string, bool, error) {
		objects, err := webhooks(i.Plane)
		return applyObjects(ctx, client, err, objects...)
	})
	run.step("cluster-info", func() (string, bool, error) {
		info, err := clusterInfo(i.Plane)
		if err != nil {
			return "", false, err
		}
		return applyObjects(ctx, client, nil, bootstrap.ClusterInfo(info))
	})
	run.step("clusters", func() (string, bool, error) {
		// The API server has had the steps above to find out that they are served.
		return "served", false, bootstrap.WaitAvailable(ctx, client, documents)
	})
}

// Start starts the control plane that is installed, with the ports of loopback moved where others took them, and waits
// until it is ready. It reports whether it had to.
func Start(ctx context.Context, r Request, reporter Reporter) (started bool, err error) {
	i, err := Plan(r)
	if err != nil {
		return false, err
	}
	lock, err := LockCommands(i.Plane.Layout)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := i.confirm(); err != nil {
		return false, err
	}

	run := &stepper{reporter: reporter}
	i.prepare(ctx, run)
	run.step("start", func() (string, bool, error) {
		detail, did, err := i.start(ctx, reporter)
		started = did
		return detail, did, err
	})
	return started, run.err
}

// ServeClusters leads the API server of a control plane that runs to the servers beside it, those of Clusters and of
// webhooks, whose ports may have moved since it ran last, and returns when Clusters are served.
func ServeClusters(ctx context.Context, p plane.Plane, timeout time.Duration) error {
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	cfg, err := plane.Load(p.Layout.Dir)
	if err != nil {
		return err
	}
	p = plane.ControlPlane(cfg, p.Layout)
	config, err := adminClient(p)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	for _, server := range []func(plane.Plane) ([]*unstructured.Unstructured, error){aggregatedAPI, webhooks, conversions} {
		objects, err := server(p)
		if _, _, err := applyObjects(ctx, client, err, objects...); err != nil {
			return err
		}
	}
	return bootstrap.WaitAvailable(ctx, client, nil)
}

// start starts the plane, or waits for the one that another command has started.
func (i *Installation) start(ctx context.Context, r Reporter) (string, bool, error) {
	ctx, cancel := withTimeout(ctx, i.request.Timeout)
	defer cancel()
	show := func(s State) { r.Progress(waitText(s)) }
	var err error
	if i.running.Running() {
		err = WaitReady(ctx, i.Plane.Layout, show)
		if err != nil && ctx.Err() == nil {
			// What ran may have been on its way out, because its supervisor was killed.
			h, findErr := FindProcesses(i.Plane.Layout)
			if findErr != nil {
				return "", false, errors.Join(err, findErr)
			}
			i.running = h
		}
	}
	if !i.running.Running() {
		err = start(ctx, i.Plane.Layout, i.request.Supervisor, i.Plane.Layout.SupervisorLog(), show)
		if err != nil && !leaveRunning(err) {
			// What does not start would be tried for ever, with nobody to see it.
			_, stopErr := Stop(ctx, i.Plane.Layout)
			err = errors.Join(err, stopErr)
		}
	}
	if err != nil {
		return "", false, err
	}
	if i.running.Running() {
		return "it runs already", false, nil
	}
	state, err := readState[State](i.Plane.Layout.PlaneState())
	return readyText(state), true, err
}

// undo takes a first installation back that did not succeed: its processes, then its files.
func (i *Installation) undo(made []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := Stop(ctx, i.Plane.Layout); err != nil {
		return fmt.Errorf("stop what was started: %w", err)
	}
	var theirs []string
	for _, dir := range []string{i.Plane.Layout.PKI, i.Plane.Layout.Dir} {
		if !slices.Contains(made, dir) {
			theirs = append(theirs, dir)
		}
	}
	if _, err := removeFiles(i.Plane, true, theirs...); err != nil {
		return fmt.Errorf("remove what was made: %w", err)
	}
	for _, dir := range made {
		if _, _, err := removeIfEmpty(dir); err != nil {
			return fmt.Errorf("remove what was made: %w", err)
		}
	}
	return nil
}

// missing lists the directories that making dirs will make, innermost first.
func missing(dirs ...string) []string {
	var list []string
	for _, dir := range dirs {
		for d := dir; ; d = filepath.Dir(d) {
			if _, err := os.Lstat(d); err == nil || d == filepath.Dir(d) {
				break
			}
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(list)
}

// A stepper runs steps until one fails, and tells the reporter.
type stepper struct {
	reporter Reporter
	steps    []Step
	changed  bool
	err      error
}

func (s *stepper) step(name string, do func() (detail string, changed bool, err error)) {
	if s.err != nil {
		return
	}
	begin := time.Now()
	s.reporter.Begin(name)
	detail, changed, err := do()
	if err != nil {
		s.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	s.changed = s.changed || changed
	done := Step{Name: name, Detail: detail, Took: time.Since(begin)}
	s.steps = append(s.steps, done)
	s.reporter.End(done)
}

// LockCommands keeps other commands from changing the installation at the same time.
func LockCommands(l plane.Layout) (*pidlock.Lock, error) {
	if err := os.MkdirAll(l.RunDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	lock, err := pidlock.Acquire(l.CommandLock())
	if errors.Is(err, syscall.ENOSPC) {
		// Stopping and removing make room, and are safe without the lock.
		return &pidlock.Lock{}, nil
	}
	var held *pidlock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("another karmadactl (process %d) is working on %s: wait until it is done, then run this again", held.PID, l.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	return lock, nil
}

// aggregatedAPI leads the API server to the server of Clusters. Its port may have moved since it was last started.
func aggregatedAPI(p plane.Plane) ([]*unstructured.Unstructured, error) {
	bundle, err := caBundle(p)
	if err != nil {
		return nil, err
	}
	return bootstrap.AggregatedAPI(p.Config.Ports[plane.PortKarmadaAggregatedAPIServer], bundle), nil
}

// webhooks leads the API server to the server of webhooks, whose port may have moved as well.
func webhooks(p plane.Plane) ([]*unstructured.Unstructured, error) {
	server, err := webhookServer(p)
	if err != nil {
		return nil, err
	}
	return bootstrap.Webhooks(server)
}

// conversions are done by the same server.
func conversions(p plane.Plane) ([]*unstructured.Unstructured, error) {
	server, err := webhookServer(p)
	if err != nil {
		return nil, err
	}
	return bootstrap.Conversions(server)
}

func webhookServer(p plane.Plane) (bootstrap.WebhookServer, error) {
	bundle, err := caBundle(p)
	return bootstrap.WebhookServer{URL: p.WebhookServer(), CA: bundle}, err
}

// caBundle reads the certificate of the authority that has signed what components serve with.
func caBundle(p plane.Plane) ([]byte, error) {
	ca, _, _ := p.Layout.AdminFiles()
	bundle, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	return bundle, nil
}

// applyObjects applies what a function of package bootstrap returned.
func applyObjects(ctx context.Context, c dynamic.Interface, err error, objects ...*unstructured.Unstructured) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	summary, err := bootstrap.Apply(ctx, c, objects)
	return summary.String(), summary.Created+summary.Updated > 0, err
}

// adminClient reaches the API server as admin.
func adminClient(p plane.Plane) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Layout.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the admin's kubeconfig: %w", err)
	}
	// The installer sits on the same host: it does not depend on the advertised address being reachable from here.
	config.Host = p.Config.LocalServer()
	config.QPS = -1
	return config, nil
}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func describeCertificates(changes []certs.Change) string {
	counts := map[certs.Action]int{}
	for _, c := range changes {
		counts[c.Action]++
	}
	var parts []string
	for _, action := range []certs.Action{certs.Created, certs.Imported, certs.Completed, certs.Renewed, certs.Tightened, certs.Kept} {
		if n := counts[action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	return strings.Join(parts, ", ")
}

func countFiles(changed []string) string {
	if len(changed) == 0 {
		return "unchanged"
	}
	return fmt.Sprintf("%d written", len(changed))
}

// waitText names what is not ready yet.
func waitText(s State) string {
	var names []string
	for _, c := range s.Components {
		if c.Phase != Ready {
			names = append(names, c.Name)
		}
	}
	return "waiting for " + strings.Join(names, ", ")
}

func readyText(s State) string {
	var parts []string
	for _, c := range s.Components {
		parts = append(parts, fmt.Sprintf("%s %.1fs", c.Name, c.StartedIn.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// sameComponents reports whether two descriptions run the same way.
func sameComponents(a, b plane.Plane) bool {
	return reflect.DeepEqual(a.Components, b.Components) && reflect.DeepEqual(a.Files, b.Files)
}
