package admission

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// How often the certificate is renewed, and how many users write meanwhile; each has to be served a few times between
// two renewals.
const (
	renewedTimes = 4
	renewalUsers = 4
	renewalLoad  = 10
)

// served is the certificate that the webhook shows to who connects now.
func served(address string) (string, error) {
	// Whether it is trusted is for the API server to say, which asks all the time.
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// reconnect makes the API server connect anew: it has a connection for each way to say how the webhook is trusted, and
// lines that are empty change nothing else.
func reconnect(t *testing.T, emptyLines int) {
	t.Helper()
	reconfigure(t, configurations(t)[:2], "is read anew", func(c map[string]any) error {
		bundle, err := base64.StdEncoding.DecodeString(fmt.Sprint(c["caBundle"]))
		if err != nil {
			return err
		}
		bundle = append(bytes.TrimSpace(bundle), bytes.Repeat([]byte("\n"), 1+emptyLines)...)
		c["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
		return nil
	})
}

// TestRenewal checks that no request is lost while the webhook's certificate is renewed.
func TestRenewal(t *testing.T) {
	const namespace = "renewal"
	makeNamespace(t, namespace)
	address := webhookAddress(t)
	config, err := plane.Load(shared.Dir)
	if err != nil {
		t.Fatal(err)
	}
	installed := plane.ControlPlane(config, plane.NewLayout(shared.Dir, config.PKI))
	// renew replaces the certificate by one that also has another name.
	renew := func(name string) {
		t.Helper()
		specs := slices.Clone(installed.Certificates)
		i := slices.IndexFunc(specs, func(s certs.Spec) bool { return s.Name == plane.KarmadaWebhook+"-server" })
		if i < 0 {
			t.Fatal("there is no certificate of the webhook")
		}
		specs[i].DNSNames = append(slices.Clone(specs[i].DNSNames), name)
		changes, err := certs.Dir{Path: installed.Layout.PKI}.Ensure(t.Context(), specs, certs.Options{KeyPairs: installed.KeyPairs})
		if err != nil {
			t.Fatal(err)
		}
		if changed := slices.DeleteFunc(changes, func(c certs.Change) bool { return !c.Changed() }); len(changed) != 1 {
			t.Fatalf("want one new certificate, got %v", changed)
		}
	}

	policies, err := shared.Control.Resource(configMapPolicy(t, namespace, "x"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		count atomic.Int64
		users sync.WaitGroup
		stop  = make(chan struct{})
	)
	for user := range renewalUsers {
		users.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				p := configMapPolicy(t, namespace, fmt.Sprintf("p-%d-%d", user, i))
				// A dry run asks both webhooks, and leaves nothing behind.
				if _, err := policies.Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
					t.Errorf("request %d was lost: %v", count.Load(), err)
					return
				}
				count.Add(1)
			}
		})
	}
	defer func() {
		close(stop)
		users.Wait()
		t.Logf("%d requests were served", count.Load())
	}()
	round := func(name string, emptyLines int) {
		before, err := served(address)
		if err != nil {
			t.Fatal(err)
		}
		renew(name)
		fleetrig.Eventually(t, "the webhook shows its new certificate", func() error {
			now, err := served(address)
			if err == nil && now == before {
				err = fmt.Errorf("it is still %s", now)
			}
			return err
		})
		reconnect(t, emptyLines)
		from := count.Load()
		fleetrig.Eventually(t, "users are served", func() error {
			if n := count.Load() - from; n < renewalUsers*renewalLoad && !t.Failed() {
				return fmt.Errorf("%d requests were", n)
			}
			return nil
		})
	}
	for i := range renewedTimes {
		round(fmt.Sprintf("round-%d.example.com", i), i+1)
	}
	reconnect(t, 0)
}
