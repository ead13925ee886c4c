package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

func TestWhatIsWaitedOut(t *testing.T) {
	clusters := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	cases := map[string]struct {
		reason    string
		err       error
		permanent bool
		hint      string
	}{
		"Taken":     {"The name is another cluster's, and stays so.", &registration.TakenError{By: &clusterv1alpha1.Cluster{}}, true, ""},
		"TakenID":   {"So the server says, which knows all Clusters.", apierrors.NewForbidden(clusters, "m", &registration.TakenError{By: &clusterv1alpha1.Cluster{}}), true, ""},
		"Invalid":   {"The server does not take what the flags say.", apierrors.NewInvalid(schema.GroupKind{Kind: "Cluster"}, "m", nil), true, ""},
		"Away":      {"A control plane that restarts.", apierrors.NewServiceUnavailable("x"), false, "trying again"},
		"Refused":   {"A cluster that restarts.", errors.New("connection refused"), false, "trying again"},
		"Forbidden": {"Rights come a moment after the certificate, and go with the Cluster.", apierrors.NewForbidden(clusters, "m", errors.New("x")), false, "registered anew"},
		"Expired":   {"The clock may be wrong for a while.", apierrors.NewUnauthorized("x"), false, "registered anew"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("register: %w", tc.err)
			if permanent(err) != tc.permanent || !tc.permanent && !strings.Contains(hint(err), tc.hint) {
				t.Errorf("%s\npermanent %v, %q", tc.reason, permanent(err), hint(err))
			}
		})
	}
}

func TestCertificateStore(t *testing.T) {
	c, err := Parse(append(kubeconfigs(t, "one"), "--cluster-name=m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason         string
		data           string
		cert, key, err string
	}{
		"OneFile":  {"Both are in one file: it is replaced as one.", "", "/a.pem", "/a.pem", ""},
		"TwoFiles": {"They could only be replaced one after the other.", "", "/a.crt", "/a.key", "put both into one file"},
		"Embedded": {"Then they are in a Secret of the cluster.", "x", "", "", ""},
		"None":     {"There is nothing to renew.", "", "", "", "no client certificate to renew"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := c.parts
			p.controlPlane.CertData, p.controlPlane.CertFile, p.controlPlane.KeyFile = []byte(tc.data), tc.cert, tc.key
			store, err := p.certificateStore()
			if (tc.err == "") != (store != nil) || tc.err != "" && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\ngot %v, %v", tc.reason, store, err)
			}
		})
	}
}
