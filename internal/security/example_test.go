package security_test

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

func ExampleCheckListen() {
	fmt.Println(security.CheckListen("localhost:6123", false, false))
	fmt.Println(security.CheckListen(":6123", false, false) != nil)
	fmt.Println(security.CheckListen(":6123", true, false))
	// Output:
	// <nil>
	// true
	// <nil>
}

func ExampleExplainDial() {
	err := errors.New("tls: first record does not look like a TLS handshake")
	fmt.Println(security.ExplainDial(err))
	// Output:
	// the job manager does not speak TLS: drop --tls-ca, --tls-cert and --tls-key, or start it with a certificate (tls: first record does not look like a TLS handshake)
}

func ExampleAuthority() {
	authority, err := security.NewAuthority() // one authority per attempt
	if err != nil {
		fmt.Println(err)
		return
	}
	secret, err := security.NewSecret()
	if err != nil {
		fmt.Println(err)
		return
	}
	certificate, key, err := authority.Issue(nil) // one certificate per worker
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := security.AttemptTLS(wire.Credential{Secret: secret, Certificate: certificate, Key: key, Authority: authority.PEM()})
	fmt.Println(config != nil, err)
	// Output:
	// true <nil>
}
