package daemon

import (
	"strings"
	"unicode"
)

// masked stands in place of a secret.
const masked = "[…]"

const (
	// Lengths of the parts of a bootstrap token, "abcdef.0123456789abcdef".
	tokenIDLength     = 6
	tokenSecretLength = 16
	// minSecretLength keeps ordinary words after a colon readable.
	minSecretLength = 8
)

// redact takes out of log lines what looks like a secret: private keys, bearer
// and bootstrap tokens, and the values of settings named like a secret. An error
// message may be pasted anywhere, a log file is the administrator's own.
func redact(lines []string) []string {
	var clean []string
	inKey := false
	for _, l := range lines {
		switch {
		case inKey:
			inKey = !strings.Contains(l, "-----END ")
		case strings.Contains(l, "PRIVATE KEY-----"):
			clean = append(clean, masked)
			inKey = !strings.Contains(l, "-----END ")
		default:
			clean = append(clean, redactLine(l))
		}
	}
	return clean
}

// redactLine goes through the line word by word; what is between two words
// tells how they belong together.
func redactLine(line string) string {
	var out strings.Builder
	word, between := "", ""
	for rest := line; rest != ""; {
		n := strings.IndexFunc(rest, isWord)
		if n < 0 {
			n = len(rest)
		}
		between, rest = rest[:n], rest[n:]
		out.WriteString(between)

		n = strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
		if n < 0 {
			n = len(rest)
		}
		before := word
		word, rest = rest[:n], rest[n:]
		if word != "" && isSecret(before, between, word) {
			out.WriteString(masked)
			if end := strings.IndexAny(rest, `"\\`); strings.HasSuffix(between, `"`) && end >= 0 {
				rest = rest[end:] // a quoted secret may have more than one word
			}
			continue
		}
		out.WriteString(word)
	}
	return out.String()
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._~+/", r)
}

func isSecret(before, between, word string) bool {
	if strings.HasPrefix(word, "eyJ") && len(word) > tokenSecretLength || isBootstrapToken(word) {
		return true // a JSON web token starts with the base64 of {"
	}
	before = strings.ToLower(before)
	if (before == "bearer" || before == "basic") && strings.TrimSpace(between) == "" && len(word) >= minSecretLength {
		return true
	}
	if !namesSecret(before) {
		return false
	}
	switch {
	case strings.Contains(between, "="):
		return true
	case strings.Contains(between, `":`): // a JSON field
		return true
	case strings.HasPrefix(between, ":"):
		return len(word) >= minSecretLength && strings.ContainsFunc(word, unicode.IsDigit)
	default:
		return false
	}
}

func namesSecret(word string) bool {
	for _, end := range []string{"token", "password", "passphrase", "secret", "key-data"} {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	return false
}

func isBootstrapToken(word string) bool {
	id, secret, ok := strings.Cut(strings.TrimRight(word, "."), ".")
	return ok && len(id) == tokenIDLength && len(secret) == tokenSecretLength &&
		strings.Trim(id+secret, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
