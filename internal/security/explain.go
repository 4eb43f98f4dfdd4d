package security

import (
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// advice says what to do about an error whose text contains one of the marks. Errors of gRPC,
// TLS and X.509 about failed connections can be distinguished only by their texts. Tests
// compare the marks with the texts of the libraries in use.
var advice = []struct {
	marks []string
	say   string
}{
	{[]string{"first record does not look like a TLS handshake", "server gave HTTP response to HTTPS client"},
		"the job manager does not speak TLS: drop --tls-ca, --tls-cert and --tls-key, or start it with a certificate"},
	{[]string{"looked like an HTTP/1.1 header"},
		"an HTTP server answers there: give the port for programs, 6123 unless set otherwise, not the one of the dashboard"},
	{[]string{"certificate required"},
		"the job manager needs a certificate: give --tls-cert and --tls-key, of a client or task manager"},
	{[]string{"remote error: tls: expired certificate"},
		"the job manager says that our certificate has expired: make new ones with superstep tls init"},
	{[]string{"remote error: tls: unknown certificate authority", "remote error: tls: bad certificate", "remote error: tls: handshake failure"},
		"the job manager does not accept our certificate: --tls-cert must be of the authority in its --tls-ca, and of a client or task manager"},
	{[]string{"certificate has expired or is not yet valid"},
		"the job manager's certificate is not good now: look at this machine's clock, or make new ones with superstep tls init"},
	{[]string{"certificate signed by unknown authority"},
		"the job manager's certificate is of an authority that we do not know: give its ca.pem with --tls-ca"},
	{[]string{"doesn't contain any IP SANs", "not valid for any names"},
		"what answers there shows a certificate that is for no such host: if it is a client's it is no job manager's, else reach the job manager by a name in its certificate"},
	{[]string{"certificate is valid for"},
		"the job manager's certificate is for other names than the one it was reached by: use one of those, or make a certificate for this one with superstep tls init"},
	{[]string{"incompatible key usage", roleRefused},
		"what answers there shows a certificate that is no job manager's: check the address and its --tls-cert"},
	{[]string{"no application protocol", "missing selected ALPN property"},
		"what answers there speaks TLS but no gRPC: give the port for programs, 6123 unless set otherwise"},
	{[]string{"protocol version not supported"},
		"the job manager speaks an old version of TLS: it must have 1.3"},
	{[]string{"error reading server preface", "connection closed before server preface received", "tls: unexpected message"},
		"what answers there speaks no gRPC without TLS: if it is a job manager with TLS, give --tls-ca (and --tls-cert, --tls-key); else check the port"},
}

// ExplainDial returns err, the error of a call to a job manager, with advice on what to do. It
// adds advice if the cause is a certificate, or that only one side uses TLS. The result wraps
// err. It returns other errors unchanged.
func ExplainDial(err error) error {
	if err == nil {
		return nil
	}
	reason := wire.Reason(err)
	for _, a := range advice {
		for _, mark := range a.marks {
			if strings.Contains(reason, mark) {
				return &advised{text: a.say + " (" + reason + ")", cause: err}
			}
		}
	}
	return err
}
