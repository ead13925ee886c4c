package local

import (
	"context"
	"fmt"
	"os"
	"time"

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

// makeDirs makes the directories of a plane, closed to other users.
func makeDirs(l plane.Layout) error {
	for _, dir := range []string{l.Dir, l.PKI, l.RunDir(), l.LogDir(), l.ConfigDir(), l.KubeconfigDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// EnsureCertificates makes and renews what is missing or not right, and leaves the rest alone.
func EnsureCertificates(ctx context.Context, p plane.Plane, ca *certs.Authority) ([]certs.Change, error) {
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
