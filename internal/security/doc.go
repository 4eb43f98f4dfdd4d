// Package security controls access to a cluster: the token that every client and task manager
// shows, the certificates of managers, and the credentials with which the workers of one
// attempt authenticate each other.
//
// A job manager makes or finds its token, checks the address on which it is to listen, and
// admits callers that show the token:
//
//	token, err := security.CreateToken(security.DefaultTokenFile(6123))
//	err = security.CheckListen(address, !files.IsZero(), insecure)
//	config, err := files.Server() // nil without files: no TLS
//	options := append(wire.ServerOptions(), grpc.Creds(credentials.NewTLS(config)))
//	s := grpc.NewServer(append(options, security.TokenOptions(token)...)...)
//
// Clients and task managers of the same user find the token; others get a copy:
//
//	token, err := security.FindToken(6123) // or ReadToken(path)
//	config, err := files.Client()
//	conn, err := grpc.NewClient(address, append(wire.DialOptions(),
//		grpc.WithTransportCredentials(security.ClientCredentials(config)),
//		grpc.WithPerRPCCredentials(security.TokenCredentials(token, config != nil)))...)
//	_, err = wire.NewClient(conn).Overview(ctx, req)
//	err = security.ExplainDial(err) // which flag is missing
//
// The HTTP side has HostGuard, against web pages, and BearerToken.
//
// # Who trusts whom
//
// The token gives access to a cluster: anybody who has it may run programs there. TLS, only
// version 1.3, protects it and everything else from being read or changed on a network. With
// InitTLS both sides of every connection to a job manager also show certificates. Each
// certificate names a role, so that the stolen certificate of a client does not serve as that
// of a job manager.
//
// A worker runs a user's program and gets neither token nor key of the cluster. It has a
// credential for its attempt: a secret that the attempt's workers share and, with TLS, a
// certificate of an Authority that exists for this attempt alone.
package security
