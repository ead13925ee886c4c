package registration

// A PullReason tells apart why a cluster cannot be registered in pull mode.
type PullReason string

const (
	// TokenMalformed: what was given is no bootstrap token.
	TokenMalformed PullReason = "TokenMalformed"
	// TokenUnknown: the control plane does not have that token: it expired, was used up, was deleted, or is for another
	// control plane.
	TokenUnknown PullReason = "TokenUnknown"
	// TokenMismatch: the control plane has a token with that id, and another secret.
	TokenMismatch PullReason = "TokenMismatch"
	// CAHashMismatch: whoever answers is not the control plane that the pins are for.
	CAHashMismatch PullReason = "CAHashMismatch"
	// CAMismatch: whoever answers has a certificate that the control plane's CA did not sign.
	CAMismatch PullReason = "CAMismatch"
	// HostMismatch: the control plane's certificate is not for the address that was given.
	HostMismatch PullReason = "HostMismatch"
	// ServerExpired: the control plane's certificate is not valid now.
	ServerExpired PullReason = "ServerExpired"
	// NotControlPlane: whoever answers is no Karmada control plane.
	NotControlPlane PullReason = "NotControlPlane"
	// Unreachable: nobody answers.
	Unreachable PullReason = "Unreachable"
	// RequestDenied: the control plane refuses the certificate, for example to a token that is for another cluster.
	RequestDenied PullReason = "RequestDenied"
	// RequestPending: nobody has approved the certificate in time.
	RequestPending PullReason = "RequestPending"
	// RequestFailed: the certificate was approved, and could not be signed.
	RequestFailed PullReason = "RequestFailed"
)

// A PullError says, in one line, why a cluster cannot be registered and what to do about it.
type PullError struct {
	Reason PullReason
	text   string
	cause  error
}

func (e *PullError) Error() string { return e.text }

func (e *PullError) Unwrap() error { return e.cause }
