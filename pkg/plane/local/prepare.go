package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
	"github.com/karmadactl/karmadactl/pkg/util/kubeconfig"
)

// renewBefore is how much of its life a leaf certificate may have left when a command renews it on the way.
const renewBefore = 30 * 24 * time.Hour

// certOptions are the options under which certificates of a plane are judged and made. ca may be nil.
func certOptions(p plane.Plane, ca *certs.Authority) certs.Options {
	return certs.Options{
		RenewBefore: renewBefore,
		KeyPairs:    p.KeyPairs,
		Supplied:    map[string]*certs.Authority{"ca": ca},
	}
}

// makeDirs makes the directories of a plane, closed to other users. Those that were there are closed, too.
func makeDirs(l plane.Layout) error {
	for _, dir := range []string{l.Dir, l.PKI, l.RunDir(), l.LogDir(), l.ConfigDir(), l.KubeconfigDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(dir, 0o700)
		}
		if err != nil {
			return fmt.Errorf("close directory to other users: %w", err)
		}
	}
	return nil
}

// An owner says in a PKI directory which installation it belongs to: two that shared one would be each other's admins,
// and removing one would end the other.
type owner struct {
	ID      string `json:"id"`
	DataDir string `json:"dataDir"`
}

// checkOwner refuses a PKI directory that belongs to another installation.
func checkOwner(l plane.Layout, id string) error {
	data, err := os.ReadFile(l.PKIOwner())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var o owner
	if err == nil {
		err = yaml.Unmarshal(data, &o)
	}
	if err != nil {
		return fmt.Errorf("find out whose certificates %s holds: %w", l.PKI, err)
	}
	if o.ID != id {
		return fmt.Errorf("%s holds the certificates of the control plane in %s: two cannot share them; choose another directory for certificates", l.PKI, o.DataDir)
	}
	return nil
}

// claimPKI marks a PKI directory outside the data directory as this installation's.
func claimPKI(p plane.Plane) error {
	if p.Config.PKI == "" {
		return nil
	}
	data, err := yaml.Marshal(owner{ID: p.Config.ID, DataDir: p.Layout.Dir})
	if err != nil {
		return fmt.Errorf("encode whose certificates these are: %w", err)
	}
	if _, err := atomicfile.WriteIfChanged(p.Layout.PKIOwner(), data, 0o600); err != nil {
		return fmt.Errorf("mark the certificate directory: %w", err)
	}
	return nil
}

// planCertificates says what EnsureCertificates would do. An authority or a service account key that is gone is not made
// anew where data stands that lives by it: every kubeconfig, agent and token would be worthless, without a word.
func planCertificates(p plane.Plane, ca *certs.Authority) ([]certs.Change, error) {
	changes, err := certs.Dir{Path: p.Layout.PKI}.Plan(p.Certificates, certOptions(p, ca))
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(p.Layout.EtcdData()); err != nil {
		return changes, nil
	}
	var errs []error
	for _, c := range changes {
		if c.Action == certs.Created && irreplaceable(p, c.Name) {
			errs = append(errs, fmt.Errorf("%s is gone from %s, and the data in %s lives by it: restore its files from a backup, or remove the control plane with its data (deinit --purge)",
				c.Name, p.Layout.PKI, p.Layout.EtcdData()))
		}
	}
	return changes, errors.Join(errs...)
}

// irreplaceable reports whether name is an authority or a bare key pair.
func irreplaceable(p plane.Plane, name string) bool {
	isCA := func(s certs.Spec) bool { return s.Name == name && s.IsCA() }
	return slices.Contains(p.KeyPairs, name) || slices.ContainsFunc(p.Certificates, isCA)
}

// EnsureCertificates makes and renews what is missing or not right, and leaves the rest alone.
func EnsureCertificates(ctx context.Context, p plane.Plane, ca *certs.Authority) ([]certs.Change, error) {
	if _, err := planCertificates(p, ca); err != nil {
		return nil, err
	}
	if err := claimPKI(p); err != nil {
		return nil, err
	}
	return certs.Dir{Path: p.Layout.PKI}.Ensure(ctx, p.Certificates, certOptions(p, ca))
}

// WriteFiles writes the kubeconfigs and configuration files of components. It returns the paths that changed.
func WriteFiles(p plane.Plane) ([]string, error) {
	var changed []string
	note := func(path string, wrote bool, err error) error {
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if wrote {
			changed = append(changed, path)
		}
		return nil
	}
	for _, k := range p.Kubeconfigs {
		wrote, err := kubeconfig.WriteIfChanged(k.Path, kubeconfig.FromFiles(kubeconfig.Files{
			Server: k.Server, Cluster: k.Cluster, User: k.User, Context: k.Cluster,
			CAFile: k.CAFile, CertFile: k.CertFile, KeyFile: k.KeyFile,
		}))
		if err := note(k.Path, wrote, err); err != nil {
			return changed, err
		}
	}
	for _, f := range p.Files {
		wrote, err := atomicfile.WriteIfChanged(f.Path, f.Content, 0o600)
		if err := note(f.Path, wrote, err); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// Prepare makes everything that the components of p need before they start. What is right stays as it is.
func Prepare(ctx context.Context, p plane.Plane) error {
	if err := os.MkdirAll(p.Layout.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	// The configuration marks the directory as ours, so it comes before anything that would need the mark.
	if _, err := p.Config.Save(p.Layout.Dir); err != nil {
		return err
	}
	if err := makeDirs(p.Layout); err != nil {
		return err
	}
	if _, err := EnsureCertificates(ctx, p, nil); err != nil {
		return err
	}
	if _, err := WriteFiles(p); err != nil || p.Config.Kind != plane.KindControlPlane {
		return err
	}
	// It carries the admin's certificate, which may have been renewed just now.
	_, err := writeAdminKubeconfig(p)
	return err
}
