// Package kubeconfig builds and writes the kubeconfigs of a control plane.
//
// There are three forms. Components get files that name other files (FromFiles):
// client-go reads certificates again when those change, embedded ones never. People
// get a file that carries everything and can be copied (Embedded). Discovery by
// token gets the cluster alone (ClusterInfo).
package kubeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

// Mode of every kubeconfig: it is a credential, or says where one is.
const Mode fs.FileMode = 0o600

// Config is client-go's form of a kubeconfig.
type Config = clientcmdapi.Config

// Names are the names of the entries in a kubeconfig with one context.
type Names struct{ Cluster, User, Context string }

// Files say how to reach a server with credentials that stay in their files.
type Files struct {
	Server                    string // URL
	Cluster, User, Context    string // names of the entries
	CAFile, CertFile, KeyFile string // absolute paths
}

// FromFiles returns a kubeconfig that names files. It does not read them: they
// may be made later.
func FromFiles(f Files) Config {
	c := single(Names{Cluster: f.Cluster, User: f.User, Context: f.Context}, f.Server)
	c.Clusters[f.Cluster].CertificateAuthority = f.CAFile
	c.AuthInfos[f.User].ClientCertificate = f.CertFile
	c.AuthInfos[f.User].ClientKey = f.KeyFile
	return c
}

// Embedded returns a kubeconfig that carries the content of the three files.
func Embedded(n Names, server, caFile, certFile, keyFile string) (Config, error) {
	ca, errCA := os.ReadFile(caFile)
	cert, errCert := os.ReadFile(certFile)
	key, errKey := os.ReadFile(keyFile)
	if err := errors.Join(errCA, errCert, errKey); err != nil {
		return Config{}, fmt.Errorf("read the credentials for a kubeconfig: %w", err)
	}
	c := single(n, server)
	c.Clusters[n.Cluster].CertificateAuthorityData = ca
	c.AuthInfos[n.User].ClientCertificateData = cert
	c.AuthInfos[n.User].ClientKeyData = key
	return c, nil
}

// ClusterInfo returns what ConfigMap kube-public/cluster-info publishes: one
// cluster whose name is empty, and no user (spec: cli/commands.md 3.3, 3.4).
func ClusterInfo(server string, ca []byte) Config {
	c := clientcmdapi.NewConfig()
	c.Clusters[""] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	return *c
}

// Merge returns one kubeconfig with all entries of configs. The current context
// is current, or the first one's that has any when current is empty. Entries of
// the same name must be the same.
func Merge(current string, configs ...Config) (Config, error) {
	merged := *clientcmdapi.NewConfig()
	var errs []error
	for _, c := range configs {
		errs = append(errs,
			add("cluster", merged.Clusters, c.Clusters),
			add("user", merged.AuthInfos, c.AuthInfos),
			add("context", merged.Contexts, c.Contexts),
		)
		if current == "" {
			current = c.CurrentContext
		}
	}
	if current != "" && merged.Contexts[current] == nil {
		errs = append(errs, fmt.Errorf("there is no context %q to make the current one", current))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, fmt.Errorf("merge kubeconfigs: %w", err)
	}
	merged.CurrentContext = current
	return merged, nil
}

// Encode returns the YAML of c; the same content always gives the same bytes.
func Encode(c Config) ([]byte, error) {
	data, err := clientcmd.Write(c)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return data, nil
}

// WriteIfChanged makes path hold c with Mode, and says whether it wrote. A file
// that says the same in another order or layout stays. One that says something
// else, or does not parse, is replaced: it is for files that are ours alone, else
// use Upsert.
func WriteIfChanged(path string, c Config) (bool, error) {
	data, err := Encode(c)
	if err != nil {
		return false, err
	}
	old, err := read(path)
	if err != nil {
		return false, err
	}
	current, err := clientcmd.Load(old)
	if old == nil || err != nil {
		return true, atomicfile.WriteFile(path, data, Mode)
	}
	return replace(path, old, *current, data)
}

// Upsert puts the entries of c into the kubeconfig at path and leaves all others
// alone: people add contexts of their own to a file that we made. The current
// context stays, too, as long as there is one. It says whether it wrote. A file
// that does not parse is an error.
func Upsert(path string, c Config) (bool, error) {
	old, err := read(path)
	if err != nil {
		return false, err
	}
	merged, err := clientcmd.Load(old)
	if err != nil {
		return false, fmt.Errorf("%s is not a kubeconfig (%w): move it away, then run this again", path, err)
	}
	current := merged.DeepCopy()
	set(&merged.Clusters, c.Clusters)
	set(&merged.AuthInfos, c.AuthInfos)
	set(&merged.Contexts, c.Contexts)
	if merged.Contexts[merged.CurrentContext] == nil {
		merged.CurrentContext = c.CurrentContext
	}
	data, err := Encode(*merged)
	if err != nil {
		return false, err
	}
	if old == nil {
		return true, atomicfile.WriteFile(path, data, Mode)
	}
	return replace(path, old, *current, data)
}

// replace writes data unless path, which holds old and means current, says the
// same. Its mode is put right in any case.
func replace(path string, old []byte, current Config, data []byte) (bool, error) {
	same, err := Encode(current)
	if err != nil {
		return false, err
	}
	if bytes.Equal(same, data) {
		data = old
	}
	return atomicfile.WriteIfChanged(path, data, Mode)
}

// read returns nil for a file that does not exist.
func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return data, nil
}

func single(n Names, server string) Config {
	c := clientcmdapi.NewConfig()
	c.Clusters[n.Cluster] = &clientcmdapi.Cluster{Server: server}
	c.AuthInfos[n.User] = &clientcmdapi.AuthInfo{}
	c.Contexts[n.Context] = &clientcmdapi.Context{Cluster: n.Cluster, AuthInfo: n.User}
	c.CurrentContext = n.Context
	return *c
}

// copied is an entry of a kubeconfig.
type copied[T any] interface {
	*T
	DeepCopy() *T
}

// set copies entries from one map into another, over what is there.
func set[T any, P copied[T]](into *map[string]P, from map[string]P) {
	if *into == nil {
		*into = map[string]P{}
	}
	for name, entry := range from {
		(*into)[name] = entry.DeepCopy()
	}
}

// add is set that refuses to replace an entry by a different one.
func add[T any, P copied[T]](kind string, into, from map[string]P) error {
	var errs []error
	for name, entry := range from {
		same, err := sameEntry(into[name], entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("compare %s %q: %w", kind, name, err))
			continue
		}
		if into[name] != nil && !same {
			errs = append(errs, fmt.Errorf("two of them have a different %s %q", kind, name))
			continue
		}
		into[name] = entry.DeepCopy()
	}
	return errors.Join(errs...)
}

// sameEntry compares what would be written.
func sameEntry(a, b any) (bool, error) {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return bytes.Equal(x, y), errors.Join(errX, errY)
}
