package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmadactl/karmadactl/pkg/cmd/examples"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// commandLimit ends a command that hangs, so that the others are tried.
const commandLimit = 2 * time.Minute

// An exception is what cannot be run here: calls whose arguments match, and why.
type exception struct{ calls, reason string }

func exceptions() []exception {
	const host = "it works on the control plane of this host, in its default place; test/e2e and test/chaos run it with a place of its own"
	const fleet = "it takes the fleet apart that the other examples need; test/fleet runs it"
	return []exception{
		{`^(init|deinit|start|stop|status)( |$)`, host},
		{`^(unjoin|unregister|register) `, fleet},
		{`^playground `, "it starts or stops members; the fleet of this test is made by it"},
		{`^completion (zsh|fish|powershell)`, "it is for a shell that is not at hand everywhere; pkg/cmd checks what is printed"},
	}
}

// elsewhere returns why an example is not run here, "" if it is.
func elsewhere(e examples.Example) string {
	for _, line := range e.Lines {
		for _, args := range examples.Calls(line, program) {
			for _, x := range exceptions() {
				if regexp.MustCompile(x.calls).MatchString(strings.Join(args, " ")) {
					return x.reason
				}
			}
		}
	}
	return ""
}

// follows tells whether a line goes on until it is interrupted.
func follows(line string) bool {
	return strings.Contains(line, " --watch") || strings.Contains(line, " logs -f ") || line == "karmadactl attach web-0 -C member1"
}

// refusals are what servers say to the examples that show how to be on the safe side, where the object is another one.
func refusals() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"karmadactl create clusterrolebinding cluster-admin --clusterrole=cluster-admin --user=user1 --user=user2 --group=group1":                       regexp.MustCompile(`already exists`),
		"karmadactl create token myapp --bound-object-kind Secret --bound-object-name mysecret --bound-object-uid 0d4691ed-659b-4935-a832-355f77ee47cc": regexp.MustCompile(`(?i)UID`),
		"karmadactl logs -p web-0 -C member1":                                                       regexp.MustCompile(`previous terminated container not found`),
		"karmadactl label pods foo status=unhealthy --resource-version=1":                           regexp.MustCompile(`has been modified`),
		"karmadactl annotate pods foo description='my frontend running nginx' --resource-version=1": regexp.MustCompile(`has been modified`),
	}
}

// before returns the script that has to succeed before an example is run.
func before(e examples.Example) string {
	args := examples.Calls(e.Lines[0], program)[0]
	const shop = `karmadactl apply -f shop-namespace.yaml
		karmadactl apply -f shop.yaml --kubeconfig=member1.config
		karmadactl demote --all -n shop || true
		karmadactl delete deployments,services --all -n shop --ignore-not-found
		karmadactl delete configmap settings -n shop --ignore-not-found
		`
	const promoted = shop + `karmadactl promote --all -n shop -C member1`
	switch args[0] {
	case "create":
		return beforeCreate(args[1:])
	case "delete":
		return `karmadactl apply -f pods.yaml -f services.yaml -f pod.json -f node.json
			karmadactl apply -k dir`
	case "label", "annotate":
		return `karmadactl delete pods --all --now
			karmadactl create -f pods.yaml -f pod.json`
	case "patch":
		return `karmadactl apply -f node.json
			karmadactl delete pod valid-pod --now --ignore-not-found
			karmadactl create -f valid-pod.yaml`
	case "apply":
		if strings.HasSuffix(args[1], "-last-applied") {
			return `karmadactl apply -f deploy.yaml`
		}
		return `karmadactl delete -f manifest.yaml -f pod.json --ignore-not-found
			karmadactl delete -k dir --ignore-not-found
			karmadactl delete propagationpolicies --all`
	case "token":
		return `karmadactl apply -f tokens.yaml`
	case "taint":
		const tainted = `karmadactl taint clusters member1 member2 dedicated=before:NoSchedule --overwrite`
		if strings.Contains(e.Lines[0], "=") && !strings.Contains(e.Lines[0], "--overwrite") {
			return tainted + ` && karmadactl taint clusters member1 member2 dedicated-`
		}
		return tainted
	case "promote":
		if len(args) > 1 && args[1] == "crd" {
			return shop + `karmadactl apply -f gadgets.yaml --kubeconfig=member1.config
				karmadactl apply -f gadget.yaml --kubeconfig=member1.config`
		}
		return shop
	case "demote", "why", "tree":
		return promoted
	}
	return ""
}

// beforeCreate removes what the example is to create, as a former one may have.
func beforeCreate(args []string) string {
	if strings.HasPrefix(args[0], "-") {
		return `karmadactl delete -f pod.json -f registry.yaml --now --ignore-not-found`
	}
	kind, name := args[0], args[1]
	switch kind {
	case "token", "clusterrolebinding": // makes no object; is refused
		return ""
	case "secret", "service":
		name = args[2]
	}
	return fmt.Sprintf("karmadactl delete %s %s --ignore-not-found", kind, name)
}

// after returns the script that puts right what would be in the way of others.
func after(e examples.Example) string {
	switch args := examples.Calls(e.Lines[0], program)[0]; args[0] {
	case "cordon", "uncordon":
		return "karmadactl uncordon member1"
	case "taint":
		return "karmadactl taint clusters member1 member2 dedicated=after:NoSchedule --overwrite && karmadactl taint clusters member1 member2 dedicated-"
	case "promote":
		if len(args) > 1 && args[1] == "crd" {
			return `karmadactl demote gadget/one -n shop
				karmadactl demote crd/gadgets.example.com
				karmadactl delete crd gadgets.example.com --kubeconfig=member1.config`
		}
	}
	return ""
}

// A world is a folder with all that examples name, and the fleet.
type world struct {
	dir, kubeconfig string
	translations    *strings.Replacer
}

// translate puts names of this fleet for those that an example has made up.
func (w *world) translate(line string) string {
	if regexp.MustCompile(`^karmadactl (un)?cordon |^karmadactl taint `).MatchString(line) {
		line = strings.NewReplacer(" foo", " member1", " bar", " member2").Replace(line)
	}
	return w.translations.Replace(line)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	member := shared.Members[0]
	nodes, err := member.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("nodes of %s: %v", member.Name, err)
	}
	w := &world{dir: t.TempDir(), kubeconfig: shared.Kubeconfig()}
	w.translations = strings.NewReplacer(" node1 ", " "+nodes.Items[0].GetName()+" ", "=/path/to/", "=path/to/")
	if err := errors.Join(os.CopyFS(w.dir, os.DirFS("testdata/world")), w.addPrograms(), w.addKubeconfigs(), w.addKeys(), w.addSample()); err != nil {
		t.Fatal(err)
	}

	for _, script := range []string{
		"karmadactl apply -f plane.yaml",
		"for m in member1 member2 member3; do karmadactl apply -f member.yaml --kubeconfig=$m.config; done",
		"karmadactl apply -f shop.yaml --kubeconfig=member1.config",
		// Pods of members are simulated, and measured, a moment after they are made.
		`for m in member1 member2 member3; do
			test "$(karmadactl get pod web-0 -C $m -o jsonpath='{.status.phase}')" = Running
		done
		karmadactl exec web-0 -C member1 -- true
		karmadactl top pod web-0 -C member1
		karmadactl top node`,
	} {
		fleetrig.Eventually(t, "the world of the examples is there", func() error {
			_, err := w.run(t.Context(), script, "")
			return err
		})
	}
	return w
}

// addPrograms puts karmadactl into PATH, and an editor that changes nothing.
func (w *world) addPrograms() error {
	bin := filepath.Join(w.dir, "bin")
	return errors.Join(
		os.MkdirAll(filepath.Join(w.dir, "home"), 0o700),
		os.MkdirAll(bin, 0o700),
		os.Symlink(shared.Plane.Karmadactl.Path, filepath.Join(bin, program)),
		os.WriteFile(filepath.Join(bin, "nano"), []byte("#!/bin/sh\n"), 0o700),
	)
}

// addKubeconfigs puts those of the members where examples look for them.
func (w *world) addKubeconfigs() error {
	if err := os.MkdirAll(filepath.Join(w.dir, "playground"), 0o700); err != nil {
		return err
	}
	together := clientcmdapi.NewConfig()
	for _, m := range shared.Members {
		config, err := clientcmd.LoadFromFile(shared.Playground.Kubeconfig(m.Name))
		if err != nil {
			return err
		}
		for _, file := range []string{m.Name + ".config", filepath.Join("playground", m.Name+".config")} {
			if err := clientcmd.WriteToFile(*config, filepath.Join(w.dir, file)); err != nil {
				return err
			}
		}
		current := config.Contexts[config.CurrentContext]
		together.Clusters[m.Name] = config.Clusters[current.Cluster]
		together.AuthInfos[m.Name] = config.AuthInfos[current.AuthInfo]
		together.Contexts[m.Name] = &clientcmdapi.Context{Cluster: m.Name, AuthInfo: m.Name}
	}
	return clientcmd.WriteToFile(*together, filepath.Join(w.dir, "all.config"))
}

// addKeys puts a certificate and its key where examples look for them: any will do.
func (w *world) addKeys() error {
	var errs []error
	for from, to := range map[string]string{"ca.crt": "tls.crt", "ca.key": "tls.key"} {
		data, err := os.ReadFile(filepath.Join(shared.Dir, "pki", from))
		errs = append(errs, err, os.WriteFile(filepath.Join(w.dir, "path", "to", to), data, 0o600))
	}
	return errors.Join(errs...)
}

// addSample makes the folder look like the repository to the README.
func (w *world) addSample() error {
	root, err := rig.ModuleRoot()
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(w.dir, "test"), 0o700),
		os.CopyFS(filepath.Join(w.dir, "test", "sample"), os.DirFS(filepath.Join(root, "test", "sample"))),
	)
}
