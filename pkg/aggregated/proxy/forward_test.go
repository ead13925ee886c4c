package proxy

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func TestPath(t *testing.T) {
	c := newControl(t)
	m := newMember(t, echo)
	c.join("m", m)
	c.join("prefixed", m, func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint += "/k8s/clusters/c-1" })
	c.join("slash", m, func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint += "/k%2Fs/" })
	cases := map[string]struct {
		reason  string
		cluster string
		path    string
		want    string
		code    int
	}{
		"Root":           {reason: "Nothing after proxy is the root.", path: "", want: "/"},
		"RootSlash":      {reason: "So is a slash.", path: "/", want: "/"},
		"Plain":          {reason: "A path stays.", path: "/api/v1/pods", want: "/api/v1/pods"},
		"TrailingSlash":  {reason: "A slash at the end means something to some servers.", path: "/api/", want: "/api/"},
		"Query":          {reason: "A query stays, in its order and its encoding.", path: "/api/v1/pods?labelSelector=a%3Db,c&b=2&a=1&limit=500", want: "/api/v1/pods?labelSelector=a%3Db,c&b=2&a=1&limit=500"},
		"OddQuery":       {reason: "It is for the member to understand it.", path: "/x?a;b&%zz", want: "/x?a;b&%zz"},
		"DryRun":         {reason: "A dry run is one of the member.", path: "/api/v1/pods?dryRun=All", want: "/api/v1/pods?dryRun=All"},
		"EncodedSlash":   {reason: "A slash in a name is no separator.", path: "/api/v1/a%2Fb/c", want: "/api/v1/a%2Fb/c"},
		"EncodedCase":    {reason: "Nor is its encoding changed.", path: "/a%2fb%20c/%E4%BD%A0", want: "/a%2fb%20c/%E4%BD%A0"},
		"NotEncoded":     {reason: "What need not be encoded is not.", path: "/apis/x:y/$a,b;c=d@e", want: "/apis/x:y/$a,b;c=d@e"},
		"DoubleSlash":    {reason: "Services may have such paths.", path: "//x///y", want: "//x///y"},
		"Dots":           {reason: "Names may have dots.", path: "/a..b/...", want: "/a..b/..."},
		"Up":             {reason: "Nothing leads out of a path.", path: "/../secret", code: http.StatusBadRequest},
		"EncodedUp":      {reason: "Not when it is encoded either.", path: "/x/%2e%2E/%2e%2e/secret", code: http.StatusBadRequest},
		"EncodedSlashUp": {reason: "Nor with encoded slashes.", path: "/x%2f..%2f..%2fsecret", code: http.StatusBadRequest},
		"Prefix":         {reason: "Some API servers share a host.", cluster: "prefixed", path: "/api/v1/a%2Fb?x=y", want: "/k8s/clusters/c-1/api/v1/a%2Fb?x=y"},
		"PrefixRoot":     {reason: "Their root is not the host's.", cluster: "prefixed", path: "", want: "/k8s/clusters/c-1/"},
		"PrefixUp":       {reason: "Their neighbours are out of reach.", cluster: "prefixed", path: "/../c-2/api", code: http.StatusBadRequest},
		"PrefixEncoded":  {reason: "A prefix may be encoded, too.", cluster: "slash", path: "/api", want: "/k%2Fs/api"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == "" {
				tc.cluster = "m"
			}
			code, body := c.get(tc.cluster, tc.path)
			if tc.code != 0 {
				if code != tc.code {
					t.Errorf("%s\ngot %d: %s", tc.reason, code, body)
				}
				return
			}
			if got := sawOf(t, body).URI; code != http.StatusOK || got != tc.want {
				t.Errorf("%s\nthe member sees %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMemberPathCountsAsOthersDo(t *testing.T) {
	// The name of the cluster, by which access is granted, is found in the decoded
	// path. An encoded slash must not move what is passed on.
	for path, want := range map[string]string{
		"/apis/g/v/clusters/m/proxy/a/b":     "/a/b",
		"/apis/g/v/clusters/m/proxy%2Fa/b":   "/a/b",
		"/apis/g/v%2fclusters/m/proxy/a%2Fb": "/a%2Fb",
		"/apis/g/v/clusters/%6D/proxy/%61":   "/%61",
		"/apis/g/v/clusters/m/proxy":         "/",
		"/apis/g/v/clusters/m":               "/",
	} {
		u, err := url.Parse("https://host" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := memberPath(u); got != want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
}

func TestMethods(t *testing.T) {
	c := newControl(t)
	m := newMember(t, echo)
	c.join("m", m)
	for _, method := range c.rest.ConnectMethods() {
		body := ""
		if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch || method == http.MethodDelete {
			body = `{"some":"body"}`
		}
		r := c.request(method, "m", "/api/v1/pods", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/strategic-merge-patch+json")
		response, text := c.do(r)
		if method == http.MethodHead {
			if response.StatusCode != http.StatusOK || text != "" || response.Header.Get("Content-Type") != "application/json" {
				t.Errorf("HEAD: got %d %q", response.StatusCode, text)
			}
			continue
		}
		got := sawOf(t, text)
		if got.Method != method || got.Body != body || got.Header.Get("Content-Type") != "application/strategic-merge-patch+json" {
			t.Errorf("%s: the member sees %+v", method, got)
		}
		if host := strings.TrimPrefix(m.URL, "https://"); got.Host != host {
			t.Errorf("%s: the member is called %s, want %s", method, got.Host, host)
		}
		if diff := cmp.Diff([]string{"member"}, response.Header.Values("Cache-Control")); diff != "" {
			t.Errorf("%s: headers of the answer are those of the member alone: %s", method, diff)
		}
	}
}

func TestIdentity(t *testing.T) {
	c := newControl(t)
	c.join("m", newMember(t, echo))
	cases := map[string]struct {
		reason string
		user   user.Info
		send   http.Header
		want   http.Header // of those that say who it is
	}{
		"User": {
			reason: "Name and groups, without those that everybody has; no extra, no UID.",
			user:   &user.DefaultInfo{Name: "alice", UID: "7", Groups: []string{"dev", "system:authenticated", "ops"}, Extra: map[string][]string{"k": {"v"}}},
			want:   http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": {"dev", "ops"}},
		},
		"Anonymous": {
			reason: "Nobody in particular is somebody, too.",
			user:   &user.DefaultInfo{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}},
			want:   http.Header{"Impersonate-User": {"system:anonymous"}},
		},
		"Smuggling": {
			reason: "What a requester claims is dropped, in every spelling.",
			user:   &user.DefaultInfo{Name: "alice"},
			send: http.Header{
				"Authorization": {"Bearer mine"}, "Impersonate-User": {"root"}, "Impersonate-Group": {"system:masters"}, "Impersonate-Uid": {"0"},
				"Impersonate-Extra-Scopes": {"all"}, "X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-A": {"b"},
				"X-Remote-Uid": {"0"}, "impersonate-group": {"system:masters"}, "Impersonate_Group": {"system:masters"}, "X_Remote_User": {"root"},
				"Proxy-Authorization": {"Basic x"},
			},
			want: http.Header{"Impersonate-User": {"alice"}},
		},
		"HopByHop": {
			reason: "Calling our headers hop-by-hop does not make them vanish.",
			user:   &user.DefaultInfo{Name: "alice", Groups: []string{"dev"}},
			send:   http.Header{"Connection": {"Impersonate-User, Impersonate-Group, Authorization"}},
			want:   http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": {"dev"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c.user = tc.user
			// Written by hand: a client would mend or refuse some of it.
			text := "GET " + prefix + "m/proxy/api HTTP/1.1\r\nHost: control\r\n"
			for key, values := range tc.send {
				for _, v := range values {
					text += key + ": " + v + "\r\n"
				}
			}
			_, _, response := c.dial(text + "\r\n")
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			saw := sawOf(t, string(body))
			got := http.Header{}
			for key, values := range saw.Header {
				if strings.HasPrefix(key, "Impersonate") || strings.HasPrefix(key, "X-Remote") || strings.HasPrefix(key, "X_Remote") || strings.HasPrefix(key, "Proxy-") {
					got[key] = values
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{"Bearer impersonator-token"}, saw.Header.Values("Authorization")); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStream(t *testing.T) {
	c := newControl(t)
	next := make(chan string)
	gone := make(chan struct{})
	c.join("m", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-next:
				_, _ = io.WriteString(w, line+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	response, err := c.client.Do(c.request(http.MethodGet, "m", "/api/v1/pods?watch=true", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for _, line := range []string{"one", "two"} {
		next <- line
		// Nothing else is sent until this has arrived.
		if !lines.Scan() || lines.Text() != line {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	c.rest.Stop()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("a watch ends well when the server stops, got %q, %v", lines.Text(), lines.Err())
	}
	<-gone
}

func TestUpgrade(t *testing.T) {
	var (
		mu     sync.Mutex
		headed []string
	)
	tunnel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		headed = append(headed, r.Method+" "+strings.Join(r.Header.Values("X-Tenant"), "+"))
		mu.Unlock()
		far, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		join(near, far)
	}))
	defer tunnel.Close()
	socks := socks5(t)

	c := newControl(t)
	m := newMember(t, upgraded)
	c.join("direct", m)
	c.join("insecure", m, func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true })
	c.join("http", m, func(c *clusterv1alpha1.Cluster) {
		c.Spec.ProxyURL = tunnel.URL
		c.Spec.ProxyHeader = map[string]string{"X-Tenant": "a,b"}
	})
	c.join("socks", m, func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "socks5://" + socks })
	c.put("insecure", map[string]string{}) // no authority at all

	for _, cluster := range []string{"direct", "insecure", "http", "socks"} {
		for _, protocol := range []string{"SPDY/3.1", "websocket"} {
			t.Run(cluster+"/"+protocol, func(t *testing.T) {
				conn, reader, response := c.dial("POST " + prefix + cluster + "/proxy/api/v1/namespaces/a/pods/b/exec?command=sh&stdin=true HTTP/1.1\r\n" +
					"Host: control\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\nAuthorization: Bearer mine\r\nImpersonate-User: root\r\n" +
					"Sec-Websocket-Protocol: base64url.bearer.authorization.k8s.io.bWluZQ, v5.channel.k8s.io\r\nContent-Length: 0\r\n\r\n")
				if response.StatusCode != http.StatusSwitchingProtocols {
					body, _ := io.ReadAll(response.Body)
					t.Fatalf("got %s: %s", response.Status, body)
				}
				if got := response.Header.Get("Sec-Websocket-Protocol"); got != "v5.channel.k8s.io" {
					t.Errorf("the requester's token was passed on, or the protocol was not: %q", got)
				}
				if got := response.Header.Get("X-Path"); got != "/api/v1/namespaces/a/pods/b/exec?command=sh&stdin=true" {
					t.Errorf("the member sees %s", got)
				}
				for i := range 3 {
					if _, err := fmt.Fprintf(conn, "%d\n", i); err != nil {
						t.Fatal(err)
					}
					if got, err := reader.ReadString('\n'); err != nil || got != fmt.Sprintf("echo %d\n", i) {
						t.Fatalf("got %q, %v", got, err)
					}
				}
			})
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"CONNECT a+b", "CONNECT a+b"}, headed); diff != "" {
		t.Errorf("what the proxy sees: -want, +got:\n%s", diff)
	}
}

func TestUpgradeIsRefused(t *testing.T) {
	c := newControl(t)
	c.join("m", newMember(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such pod", http.StatusNotFound) }))
	_, _, response := c.dial("GET " + prefix + "m/proxy/api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusNotFound || strings.TrimSpace(string(body)) != "no such pod" {
		t.Errorf("the member's answer is the answer: got %s %q, %v", response.Status, body, err)
	}
}

func TestUpgradeEndsWhenTheServerStops(t *testing.T) {
	c := newControl(t)
	c.join("m", newMember(t, upgraded))
	_, reader, response := c.dial("GET " + prefix + "m/proxy/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response.Status)
	}
	c.rest.Stop()
	if _, err := reader.ReadByte(); err == nil {
		t.Error("want the end of the connection")
	}
}

func TestBigBodies(t *testing.T) {
	const size = 8 << 20
	c := newControl(t)
	c.join("m", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		// Both directions at once, as much as both sides will.
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(w, sum), r.Body); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, hex.EncodeToString(sum.Sum(nil)))
	}))
	sum := sha256.New()
	r := c.request(http.MethodPost, "m", "/api/v1/namespaces/a/services/b/proxy/", io.TeeReader(io.LimitReader(rand.Reader, size), sum))
	response, err := c.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got := sha256.New()
	if _, err := io.CopyN(got, response.Body, size); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	if string(rest) != want || hex.EncodeToString(got.Sum(nil)) != want {
		t.Error("what went there, or came back, is not what was sent")
	}
}

func TestCompressionIsPassedOn(t *testing.T) {
	c := newControl(t)
	c.join("m", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		}
		_, _ = io.WriteString(w, "as it is")
	}))
	for _, encoding := range []string{"", "gzip"} {
		_, _, response := c.dial("GET " + prefix + "m/proxy/api HTTP/1.1\r\nHost: control\r\nAccept-Encoding: " + encoding + "\r\n\r\n")
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != "as it is" || response.Header.Get("Content-Encoding") != encoding {
			t.Errorf("accepting %q: got %q, %v, encoding %q", encoding, body, err, response.Header.Get("Content-Encoding"))
		}
	}
}

func join(a, b net.Conn) {
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pass(a, b)
	go pass(b, a)
	<-done
	_, _ = a.Close(), b.Close()
}

// socks5 is a proxy of that kind, for TCP and without authentication.
func socks5(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	serve := func(near net.Conn) {
		defer near.Close()
		head := make([]byte, 10)
		if _, err := io.ReadFull(near, head[:2]); err != nil {
			return
		}
		if _, err := io.ReadFull(near, make([]byte, head[1])); err != nil {
			return
		}
		_, _ = near.Write([]byte{5, 0})
		if _, err := io.ReadFull(near, head); err != nil || head[3] != 1 {
			return
		}
		far, err := net.Dial("tcp", (&net.TCPAddr{IP: head[4:8], Port: int(head[8])<<8 | int(head[9])}).String())
		if err != nil {
			return
		}
		_, _ = near.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		join(near, far)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}
