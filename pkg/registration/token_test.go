package registration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const (
	someID     = "abcdef"
	someSecret = "0123456789abcdef"
	someToken  = someID + "." + someSecret
)

// check compares an error with a text that it has to contain; "" wants none.
func check(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %q, want none: %s", err, reason)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got error %v, want one with %q: %s", err, want, reason)
	}
}

func TestValidateClusterName(t *testing.T) {
	cases := map[string]struct{ reason, name, want string }{
		"Label":    {"The usual name.", "member-1", ""},
		"Longest":  {"48 characters are allowed.", strings.Repeat("a", 48), ""},
		"TooLong":  {"Names of other objects are made of it.", strings.Repeat("a", 49), "invalid cluster name(" + strings.Repeat("a", 49) + "): must be no more than 48"},
		"Huge":     {"A message stays one that can be read.", strings.Repeat("a", 1<<20), "…): must be no more than 48"},
		"Empty":    {"A cluster has a name.", "", "invalid cluster name(): "},
		"Capital":  {"It is a DNS label.", "Member", "invalid cluster name(Member): "},
		"Dot":      {"It is one label.", "a.b", "invalid cluster name(a.b): "},
		"Dash":     {"A label does not end with a dash.", "a-", "invalid cluster name(a-): "},
		"Newline":  {"A line of its own is no name.", "a\n", "invalid cluster name(a\n): "},
		"NotASCII": {"It is a DNS label.", "münchen", "invalid cluster name(münchen): "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := ValidateClusterName(c.name)
			check(t, c.reason, err, c.want)
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestParseToken(t *testing.T) {
	cases := map[string]struct {
		reason, value   string
		token, id       string // what ParseToken and ParseTokenID say, "" for an error
		secretMustNotBe string
	}{
		"Whole":        {"The usual form.", someToken, someToken, someID, ""},
		"ID":           {"An id names a token, but is none.", someID, "", someID, ""},
		"Empty":        {"Nothing is no token.", "", "", "", ""},
		"Capital":      {"Tokens are in lower case.", "ABCDEF." + someSecret, "", "", someSecret},
		"ShortSecret":  {"A token that was cut short.", "abcdef.0123456789", "", "", "0123456789"},
		"LongSecret":   {"A token with more pasted to it.", someToken + "0", "", "", someSecret},
		"SecretAlone":  {"The halves are not told apart by length.", someSecret, "", "", someSecret},
		"TwoPoints":    {"One point parts two halves.", "abcdef.01234567.9abcdef", "", "", "01234567"},
		"Newline":      {"A pattern's end is not the end of a line.", someToken + "\n", "", "", someSecret},
		"IDAndNewline": {"The same for an id.", someID + "\n", "", "", ""},
		"Slash":        {"An id must not lead to another object.", "abc/ef", "", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id, secret, err := ParseToken(c.value)
			if got := (Token{ID: id, Secret: secret}); (err != nil) != (c.token == "") || err == nil && got.Value() != c.token {
				t.Errorf("ParseToken: got %q, %v, want %q: %s", got.Value(), err, c.token, c.reason)
			}
			found, idErr := ParseTokenID(c.value)
			if found != c.id || (idErr != nil) != (c.id == "") {
				t.Errorf("ParseTokenID: got %q, %v, want %q: %s", found, idErr, c.id, c.reason)
			}
			for _, err := range []error{err, idErr} {
				if err != nil && c.secretMustNotBe != "" && strings.Contains(err.Error(), c.secretMustNotBe) {
					t.Errorf("an error tells the secret: %v", err)
				}
			}
		})
	}
	_, err := ParseTokenID("x")
	check(t, "Scripts match the contract's words.", err, `given token didn't match pattern "^([a-z0-9]{6})$" or "^([a-z0-9]{6})$"`)
}

func TestTokenIsNotPrintedByAccident(t *testing.T) {
	token := Token{ID: someID, Secret: someSecret}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format, token); strings.Contains(text, someSecret) {
			t.Errorf("%s prints the secret: %s", format, text)
		}
	}
}

func TestNewToken(t *testing.T) {
	classic := TokenRequest{TTL: DefaultTokenTTL, Usages: TokenUsages(), Groups: []string{DefaultTokenGroup}}
	with := func(change func(*TokenRequest)) TokenRequest {
		r := classic
		change(&r)
		return r
	}
	named := with(func(r *TokenRequest) { r.Cluster, r.Groups = "member3", nil })
	both := []string{"authentication", "signing"}
	cases := map[string]struct {
		reason  string
		request TokenRequest
		now     time.Time
		want    Token // without what is random
		err     string
	}{
		"Classic": {
			reason: "What upstream's command makes.", request: classic,
			want: Token{Expires: noon.Add(24 * time.Hour), Usages: both, Groups: []string{DefaultTokenGroup}},
		},
		"ForEver": {
			reason: "0 is never.", request: with(func(r *TokenRequest) { r.TTL = 0 }),
			want: Token{Usages: both, Groups: []string{DefaultTokenGroup}},
		},
		"Fraction": {
			reason: "The Secret has whole seconds; a token must not be born expired.", now: noon.Add(300 * time.Millisecond),
			request: with(func(r *TokenRequest) { r.TTL = time.Millisecond }),
			want:    Token{Expires: noon.Add(time.Second), Usages: both, Groups: []string{DefaultTokenGroup}},
		},
		"Zone": {
			reason: "The Secret's time is UTC.", now: noon.In(time.FixedZone("x", 3600)), request: classic,
			want: Token{Expires: noon.Add(24 * time.Hour), Usages: both, Groups: []string{DefaultTokenGroup}},
		},
		"Named": {
			reason: "It has a group that says which cluster, and none that lets it be another.", request: named,
			want: Token{
				Expires: noon.Add(24 * time.Hour), Usages: both, Cluster: "member3",
				Groups: []string{"system:bootstrappers:karmada:cluster:member3", "system:bootstrappers:karmada:named-cluster-token"},
			},
		},
		"Repeated": {
			reason: "What is said twice is there once.",
			request: with(func(r *TokenRequest) {
				r.Usages = []string{"signing", "signing"}
				r.Groups = []string{"system:bootstrappers:b", "system:bootstrappers:a", "system:bootstrappers:b"}
			}),
			want: Token{Expires: noon.Add(24 * time.Hour), Usages: []string{"signing"}, Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}},
		},
		"NoGroups": {
			reason: "Then its holder is in system:bootstrappers alone.", request: with(func(r *TokenRequest) { r.Groups = nil }),
			want: Token{Expires: noon.Add(24 * time.Hour), Usages: both},
		},
		"Description":       {reason: "It is for people.", request: with(func(r *TokenRequest) { r.Description = "für Mai" }), want: Token{Description: "für Mai", Expires: noon.Add(24 * time.Hour), Usages: both, Groups: []string{DefaultTokenGroup}}},
		"NegativeTTL":       {reason: "Such a token is expired.", request: with(func(r *TokenRequest) { r.TTL = -time.Second }), err: "negative"},
		"NoUsage":           {reason: "It is good for nothing.", request: with(func(r *TokenRequest) { r.Usages = nil }), err: "good for nothing"},
		"UnknownUsage":      {reason: "A typo must not make a token that does not work.", request: with(func(r *TokenRequest) { r.Usages = []string{"sign"} }), err: "sign"},
		"PowerfulGroup":     {reason: "A token must not be an administrator.", request: with(func(r *TokenRequest) { r.Groups = []string{"system:masters"} }), err: `"system:masters"`},
		"GroupItself":       {reason: "Its holder is in it anyway.", request: with(func(r *TokenRequest) { r.Groups = []string{"system:bootstrappers"} }), err: `"system:bootstrappers"`},
		"GroupWithNewline":  {reason: "The pattern is for the whole.", request: with(func(r *TokenRequest) { r.Groups = []string{"system:bootstrappers:a\n"} }), err: "invalid"},
		"GroupOfCluster":    {reason: "There is one way to make a token for a cluster, which makes it whole.", request: with(func(r *TokenRequest) { r.Groups = []string{ClusterTokenGroup("a")} }), err: "ask for the cluster"},
		"GroupOfNamed":      {reason: "The same for its other half.", request: with(func(r *TokenRequest) { r.Groups = []string{NamedClusterTokenGroup} }), err: "ask for the cluster"},
		"NamedWithGroups":   {reason: "More groups would be more rights.", request: with(func(r *TokenRequest) { r.Cluster = "member3" }), err: "no others"},
		"BadCluster":        {reason: "No such cluster can be registered.", request: with(func(r *TokenRequest) { r.Cluster, r.Groups = "Member", nil }), err: "invalid cluster name(Member)"},
		"DescriptionLines":  {reason: "It would be a row of its own in the table.", request: with(func(r *TokenRequest) { r.Description = "a\nb" }), err: "control characters"},
		"DescriptionEscape": {reason: "It would command the terminal.", request: with(func(r *TokenRequest) { r.Description = "\x1b[2J" }), err: "control characters"},
		"DescriptionBinary": {reason: "It is not text.", request: with(func(r *TokenRequest) { r.Description = "\xff" }), err: "UTF-8"},
		"DescriptionHuge":   {reason: "It is a line.", request: with(func(r *TokenRequest) { r.Description = strings.Repeat("a", MaxTokenDescription+1) }), err: "1025 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := c.now
			if now.IsZero() {
				now = noon
			}
			got, err := NewToken(c.request, now)
			check(t, c.reason, err, c.err)
			if err != nil {
				return
			}
			if _, _, err := ParseToken(got.Value()); err != nil {
				t.Errorf("%q is not a token: %v", got.Value(), err)
			}
			c.want.ID, c.want.Secret = got.ID, got.Secret
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			back, err := TokenFromSecret(got.ToSecret())
			if diff := cmp.Diff(got, back); diff != "" || err != nil {
				t.Errorf("what was written reads back otherwise: %v\n%s", err, diff)
			}
		})
	}

	t.Run("Random", func(t *testing.T) {
		seen := map[string]bool{}
		for range 100 {
			token, err := NewToken(classic, noon)
			if err != nil {
				t.Fatal(err)
			}
			if seen[token.ID] || seen[token.Secret] {
				t.Fatalf("%s came twice", token)
			}
			seen[token.ID], seen[token.Secret] = true, true
		}
	})
}

func TestSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		token  Token
		labels map[string]string
		data   map[string]string
	}{
		"Full": {
			reason: "The keys are the API server's (behaviour/11 11.7).",
			token:  Token{ID: someID, Secret: someSecret, Description: "d", Expires: noon, Usages: TokenUsages(), Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}},
			data: map[string]string{
				"token-id": someID, "token-secret": someSecret, "description": "d", "expiration": "2026-05-04T12:00:00Z",
				"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
				"auth-extra-groups": "system:bootstrappers:a,system:bootstrappers:b",
			},
		},
		"Least": {
			reason: "What is not set has no key.",
			token:  Token{ID: someID, Secret: someSecret},
			data:   map[string]string{"token-id": someID, "token-secret": someSecret},
		},
		"Named": {
			reason: "It is found by its cluster.",
			token:  Token{ID: someID, Secret: someSecret, Cluster: "member3", Groups: []string{ClusterTokenGroup("member3"), NamedClusterTokenGroup}},
			labels: map[string]string{"bootstrap.karmada.io/cluster": "member3"},
			data: map[string]string{
				"token-id": someID, "token-secret": someSecret,
				"auth-extra-groups": "system:bootstrappers:karmada:cluster:member3,system:bootstrappers:karmada:named-cluster-token",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.token.ToSecret()
			want := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef", Labels: c.labels},
				Type:       "bootstrap.kubernetes.io/token", Data: map[string][]byte{},
			}
			for k, v := range c.data {
				want.Data[k] = []byte(v)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestTokenFromSecret(t *testing.T) {
	set := func(key, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
		err    string
	}{
		"Good":            {"The usual one.", func(*corev1.Secret) {}, ""},
		"OtherUsage":      {"A newer version may know more.", set("usage-bootstrap-new", "true"), ""},
		"OtherKeys":       {"Somebody's own are none of our business.", set("note", "x"), ""},
		"WrongType":       {"The API server does not take it.", func(s *corev1.Secret) { s.Type = "Opaque" }, `of type "Opaque"`},
		"NoData":          {"Nothing is no token.", func(s *corev1.Secret) { s.Data = nil }, "token-id"},
		"NoID":            {"Half a token.", set("token-id", ""), "token-id"},
		"OtherID":         {"It is looked up by its name.", set("token-id", "ghijkl"), "the secret's name"},
		"BadID":           {"It could not be presented.", set("token-id", "ABCDEF"), "token-id"},
		"NoSecret":        {"Half a token.", set("token-secret", ""), "token-secret"},
		"BadSecret":       {"It could not be presented, and must not be shown.", set("token-secret", "p4ssw0rd"), "token-secret"},
		"BadExpiration":   {"Nobody knows until when.", set("expiration", "tomorrow"), "expiration"},
		"BadGroup":        {"The API server does not take it.", set("auth-extra-groups", "system:masters"), "auth-extra-groups"},
		"EmptyGroup":      {"The API server does not take it.", set("auth-extra-groups", "system:bootstrappers:a,"), "auth-extra-groups"},
		"TwoClusters":     {"It could be used for whichever suits.", set("auth-extra-groups", ClusterTokenGroup("a")+","+ClusterTokenGroup("b")+","+NamedClusterTokenGroup), "more than one cluster"},
		"LabelOfAnother":  {"What it is found by must be what it is for.", func(s *corev1.Secret) { s.Labels = map[string]string{ClusterTokenLabel: "x"} }, `is "x"`},
		"LabelWasRemoved": {"It would not be found when it is used up.", set("auth-extra-groups", ClusterTokenGroup("a")+","+NamedClusterTokenGroup), `for cluster "a"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := Token{ID: someID, Secret: someSecret, Expires: noon, Usages: TokenUsages(), Groups: []string{DefaultTokenGroup}}.ToSecret()
			c.change(s)
			_, err := TokenFromSecret(s)
			check(t, c.reason, err, c.err)
			if err == nil {
				return
			}
			for _, secret := range []string{someSecret, "p4ssw0rd"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells the secret: %v", err)
				}
			}
		})
	}

	t.Run("UsageOff", func(t *testing.T) {
		s := Token{ID: someID, Secret: someSecret}.ToSecret()
		s.Data["usage-bootstrap-signing"] = []byte("yes")
		if got, err := TokenFromSecret(s); err != nil || len(got.Usages) > 0 {
			t.Errorf("got usages %q, %v: only true is on", got.Usages, err)
		}
	})
}

func TestClusterOfGroups(t *testing.T) {
	a, b := ClusterTokenGroup("a"), ClusterTokenGroup("b")
	cases := map[string]struct {
		reason string
		groups []string
		want   string
		err    string
	}{
		"Classic":     {"It is for any cluster.", []string{"system:bootstrappers", DefaultTokenGroup, "system:authenticated"}, "", ""},
		"None":        {"A user without groups is no token for a cluster.", nil, "", ""},
		"Named":       {"As a request has them.", []string{"system:bootstrappers", a, NamedClusterTokenGroup, "system:authenticated"}, "a", ""},
		"Twice":       {"The same name twice is one name.", []string{a, a, NamedClusterTokenGroup}, "a", ""},
		"Two":         {"Nobody may choose.", []string{a, b, NamedClusterTokenGroup}, "", "more than one cluster: a, b"},
		"WithClassic": {"The classic group would make the name worthless.", []string{a, NamedClusterTokenGroup, DefaultTokenGroup}, "", "any cluster"},
		"NoName":      {"Rights without a name are rights for every name.", []string{NamedClusterTokenGroup}, "", "none that names"},
		"NameAlone":   {"We never make such a token.", []string{a}, "", "is missing"},
		"EmptyName":   {"No cluster has it.", []string{ClusterTokenGroupPrefix, NamedClusterTokenGroup}, "", "invalid cluster name"},
		"ColonInName": {"No cluster has it.", []string{ClusterTokenGroup("a:b"), NamedClusterTokenGroup}, "", "invalid cluster name"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ClusterOfGroups(c.groups)
			check(t, c.reason, err, c.err)
			if got != c.want {
				t.Errorf("got %q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	cases := map[string]struct {
		reason  string
		expires time.Time
		want    bool
	}{
		"Never":  {"It has no end.", time.Time{}, false},
		"Before": {"There is time left.", noon.Add(time.Second), false},
		"At":     {"The end is no longer part of it, as for the API server.", noon, true},
		"After":  {"It is over.", noon.Add(-time.Second), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Token{Expires: c.expires}).Expired(noon); got != c.want {
				t.Errorf("got %t, want %t: %s", got, c.want, c.reason)
			}
		})
	}
}
