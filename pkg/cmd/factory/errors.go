package factory

// A Reason tells apart why a control plane or a member cannot be used.
type Reason string

const (
	// NoKubeconfig: nothing says where the control plane is.
	NoKubeconfig Reason = "NoKubeconfig"
	// KubeconfigUnreadable: a file is not there, or may not be read.
	KubeconfigUnreadable Reason = "KubeconfigUnreadable"
	// KubeconfigInvalid: a file is no kubeconfig, or only the first part of one.
	KubeconfigInvalid Reason = "KubeconfigInvalid"
	// ContextMissing: the context asked for is not in the file.
	ContextMissing Reason = "ContextMissing"
	// Unreachable: nobody answers at the server's address.
	Unreachable Reason = "Unreachable"
	// WrongCA: the server's certificate is signed by another CA.
	WrongCA Reason = "WrongCA"
	// WrongHost: the server's certificate is for other names.
	WrongHost Reason = "WrongHost"
	// ServerCertificateExpired: the server's certificate is not valid now.
	ServerCertificateExpired Reason = "ServerCertificateExpired"
	// ClientCertificateExpired: the certificate in the kubeconfig is not valid now.
	ClientCertificateExpired Reason = "ClientCertificateExpired"
	// Unauthorized: the server refuses the credentials in the kubeconfig.
	Unauthorized Reason = "Unauthorized"
	// CredentialsUnavailable: what the kubeconfig names to get credentials from fails.
	CredentialsUnavailable Reason = "CredentialsUnavailable"
	// NotKubernetes: what answers is no API server.
	NotKubernetes Reason = "NotKubernetes"
	// NotKarmada: the server answers, but serves no karmada API.
	NotKarmada Reason = "NotKarmada"
)

// An Error says, in one line, why the control plane or a member cannot be used
// and what to do about it.
type Error struct {
	Reason Reason
	text   string
	cause  error
}

func (e *Error) Error() string { return e.text }

func (e *Error) Unwrap() error { return e.cause }
