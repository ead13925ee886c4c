package interpreter

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// serviceAccount keeps the tokens that the cluster made for it, and what others
// gave it to pull images.
func serviceAccount() kind {
	return kind{retain: func(desired, observed map[string]any) error {
		return errors.Join(mergeByName(desired, observed, "secrets"), mergeByName(desired, observed, "imagePullSecrets"))
	}}
}

// secret keeps a token, which only the cluster can issue.
func secret() kind {
	return kind{retain: func(desired, observed map[string]any) error {
		t, err := orZero[string](desired, "type")
		if err != nil || t != string(corev1.SecretTypeServiceAccountToken) {
			return err
		}
		return keep(desired, observed, "data")
	}}
}
