package registration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

const (
	// DefaultTokenTTL is how long a classic token is good for (spec: behaviour/11 11.7).
	DefaultTokenTTL = 24 * time.Hour
	// DefaultClusterTokenTTL is how long a token for one named cluster is good for: it is made for a registration that
	// somebody is about to do.
	DefaultClusterTokenTTL = 15 * time.Minute
)

// MaxTokenDescription is the longest description, in bytes: it has to fit in a line for people.
const MaxTokenDescription = 1024

// What a token may be used for (spec: cli/commands.md 3.3).
const (
	// TokenSigning lets the token's holder recognise cluster-info by its signature.
	TokenSigning = "signing"
	// TokenAuthentication lets the holder authenticate at the API server.
	TokenAuthentication = "authentication"
)

// TokenUsages returns everything that a token may be used for.
func TokenUsages() []string { return []string{TokenSigning, TokenAuthentication} }

// enabled is the value of a usage key that is on.
const enabled = "true"

// A Token is a bootstrap token: what a cluster that knows nothing yet registers with (spec: behaviour/11 11.7).
type Token struct {
	// ID is the public half, six characters.
	ID string
	// Secret is the other half, sixteen characters.
	Secret string
	// Description is for people.
	Description string
	// Expires is when the token is good no longer; zero is never.
	Expires time.Time
	// Usages are what it is good for, sorted.
	Usages []string
	// Groups are the groups of its holder, apart from system:bootstrappers.
	Groups []string
	// Cluster is the one cluster that it is for, and "" for a classic token. Groups say the same.
	Cluster string
}

// Value is the whole token, as its holder presents it.
func (t Token) Value() string { return bootstraputil.TokenFromIDAndSecret(t.ID, t.Secret) }

// String leaves the secret out, so that no message ever has it by accident.
func (t Token) String() string { return "bootstrap token " + t.ID }

// GoString leaves the secret out, too.
func (t Token) GoString() string { return t.String() }

// Expired reports whether the token is good no longer.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// ParseToken takes a token apart. The error does not repeat what was given.
func ParseToken(value string) (id, secret string, err error) {
	if !bootstraputil.IsValidBootstrapToken(value) {
		return "", "", errors.New("malformed token: want six characters, a point and sixteen characters, all of a-z and 0-9")
	}
	id, secret, _ = strings.Cut(value, ".")
	return id, secret, nil
}

// ParseTokenID returns the id of a token that is named by its id or given whole. The error is the contract's, wrong
// pattern and all (spec: cli/commands.md 3.3), and does not repeat what was given: it may be most of a secret.
func ParseTokenID(idOrValue string) (string, error) {
	if bootstraputil.IsValidBootstrapTokenID(idOrValue) {
		return idOrValue, nil
	}
	if id, _, err := ParseToken(idOrValue); err == nil {
		return id, nil
	}
	const pattern = `^([a-z0-9]{6})$`
	return "", fmt.Errorf("given token didn't match pattern %q or %q: give the six characters of its id, or all of it (id.secret)", pattern, pattern)
}

// A TokenRequest says what token is wanted.
type TokenRequest struct {
	Description string
	// TTL is how long it is good for; 0 is for ever.
	TTL    time.Duration
	Usages []string
	// Groups are those of its holder. A token for a named cluster has groups of its own, and takes none here.
	Groups []string
	// Cluster is the only cluster that can be registered with the token; "" makes a classic token.
	Cluster string
}

// Validate reports everything that is wrong with the request.
func (r TokenRequest) Validate() error {
	var errs []error
	if r.TTL < 0 {
		errs = append(errs, fmt.Errorf("time to live %s is negative: give a positive duration such as 24h, or 0 for a token that never expires", r.TTL))
	}
	if len(r.Usages) == 0 {
		errs = append(errs, fmt.Errorf("a token without usages is good for nothing: give one or both of %s", strings.Join(TokenUsages(), ", ")))
	}
	errs = append(errs, bootstraputil.ValidateUsages(r.Usages), validateDescription(r.Description))
	if r.Cluster == "" {
		errs = append(errs, validateGroups(r.Groups))
		return errors.Join(errs...)
	}
	if len(r.Groups) > 0 {
		errs = append(errs, errors.New("a token for a named cluster has the groups of that cluster and no others"))
	}
	errs = append(errs, ValidateClusterName(r.Cluster))
	return errors.Join(errs...)
}

func validateDescription(text string) error {
	switch {
	case !utf8.ValidString(text):
		return errors.New("the description is not valid UTF-8")
	case len(text) > MaxTokenDescription:
		return fmt.Errorf("the description has %d bytes: at most %d are allowed", len(text), MaxTokenDescription)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("the description has control characters, such as the end of a line: it must be one line of text")
	}
	return nil
}

// NewToken makes a token at random, as requested; now is when its life begins.
func NewToken(r TokenRequest, now time.Time) (Token, error) {
	if err := r.Validate(); err != nil {
		return Token{}, err
	}
	value, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return Token{}, fmt.Errorf("make a token at random: %w", err)
	}
	id, secret, err := ParseToken(value)
	if err != nil {
		return Token{}, fmt.Errorf("make a token at random: %w", err)
	}
	t := Token{ID: id, Secret: secret, Description: r.Description, Usages: sortedSet(r.Usages), Groups: sortedSet(r.Groups), Cluster: r.Cluster}
	if r.Cluster != "" {
		t.Groups = sortedSet([]string{NamedClusterTokenGroup, ClusterTokenGroup(r.Cluster)})
	}
	if r.TTL > 0 {
		t.Expires = wholeSecond(now.Add(r.TTL))
	}
	return t, nil
}

// wholeSecond rounds up: the Secret holds no fractions, and a token that was asked for is never born expired.
func wholeSecond(at time.Time) time.Time {
	whole := at.Truncate(time.Second)
	if whole.Before(at) {
		whole = whole.Add(time.Second)
	}
	return whole.UTC()
}

func sortedSet(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// ToSecret returns the Secret that makes the API server know the token (spec: behaviour/11 11.7).
func (t Token) ToSecret() *corev1.Secret {
	data := map[string][]byte{
		bootstrapapi.BootstrapTokenIDKey:     []byte(t.ID),
		bootstrapapi.BootstrapTokenSecretKey: []byte(t.Secret),
	}
	if t.Description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte(t.Description)
	}
	if !t.Expires.IsZero() {
		data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(t.Expires.UTC().Format(time.RFC3339))
	}
	for _, usage := range t.Usages {
		data[bootstrapapi.BootstrapTokenUsagePrefix+usage] = []byte(enabled)
	}
	if len(t.Groups) > 0 {
		data[bootstrapapi.BootstrapTokenExtraGroupsKey] = []byte(strings.Join(t.Groups, ","))
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(t.ID)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data:       data,
	}
	if t.Cluster != "" {
		s.Labels = map[string]string{ClusterTokenLabel: t.Cluster}
	}
	return s
}

// TokenFromSecret reads a token back. A Secret that the API server would not take for a token is an error, and so is one
// that contradicts itself about the cluster that it is for. The error names the key, and never has a value in it.
func TokenFromSecret(s *corev1.Secret) (Token, error) {
	get := func(key string) string { return string(s.Data[key]) }
	t := Token{
		ID:          get(bootstrapapi.BootstrapTokenIDKey),
		Secret:      get(bootstrapapi.BootstrapTokenSecretKey),
		Description: get(bootstrapapi.BootstrapTokenDescriptionKey),
	}
	invalid := func(key, why string) (Token, error) {
		return Token{}, fmt.Errorf("key %s of secret %q %s", key, s.Name, why)
	}
	switch {
	case s.Type != bootstrapapi.SecretTypeBootstrapToken:
		return Token{}, fmt.Errorf("secret %q is of type %q, not %q", s.Name, s.Type, bootstrapapi.SecretTypeBootstrapToken)
	case !bootstraputil.IsValidBootstrapTokenID(t.ID):
		return invalid(bootstrapapi.BootstrapTokenIDKey, "is not six characters of a-z and 0-9")
	case s.Name != bootstraputil.BootstrapTokenSecretName(t.ID):
		return invalid(bootstrapapi.BootstrapTokenIDKey, "is not the id that the secret's name has")
	case !bootstraputil.IsValidBootstrapToken(t.Value()):
		return invalid(bootstrapapi.BootstrapTokenSecretKey, "is not sixteen characters of a-z and 0-9")
	}
	if text := get(bootstrapapi.BootstrapTokenExpirationKey); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return invalid(bootstrapapi.BootstrapTokenExpirationKey, "is not a time in RFC 3339 form, so that nobody takes the token")
		}
		t.Expires = at.UTC()
	}
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		if usage, ok := strings.CutPrefix(key, bootstrapapi.BootstrapTokenUsagePrefix); ok && get(key) == enabled {
			t.Usages = append(t.Usages, usage)
		}
	}
	if text := get(bootstrapapi.BootstrapTokenExtraGroupsKey); text != "" {
		t.Groups = strings.Split(text, ",")
	}
	for _, group := range t.Groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return invalid(bootstrapapi.BootstrapTokenExtraGroupsKey, "has a group that is not a bootstrap group, so that nobody takes the token")
		}
	}
	cluster, err := ClusterOfGroups(t.Groups)
	if err != nil {
		return invalid(bootstrapapi.BootstrapTokenExtraGroupsKey, "cannot be trusted: "+err.Error())
	}
	if label := s.Labels[ClusterTokenLabel]; label != cluster {
		return Token{}, fmt.Errorf("label %s of secret %q is %q, but the token's groups are for cluster %q", ClusterTokenLabel, s.Name, label, cluster)
	}
	t.Cluster = cluster
	return t, nil
}
