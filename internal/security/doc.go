// Package security controls access to a cluster. It has the token that every client and task
// manager sends, the certificates of job managers, task managers and clients, and the
// credentials with which the workers of one attempt authenticate each other.
//
// A job manager makes its token or reads it from a file, checks the address on which it will
// listen, and admits callers that send the token:
//
//	token, err := security.CreateToken(security.DefaultTokenFile(6123))
//	err = security.CheckListen(address, !files.IsZero(), insecure)
//	config, err := files.Server() // nil without files: no TLS
//	options := append(wire.ServerOptions(), grpc.Creds(credentials.NewTLS(config)))
//	s := grpc.NewServer(append(options, security.TokenOptions(token)...)...)
//
// Clients and task managers of the same user on the same machine find the token. On other
// machines, and for other users, a copy of the token file is needed:
//
//	token, err := security.FindToken(6123) // or ReadToken(path)
//	config, err := files.Client()
//	conn, err := grpc.NewClient(address, append(wire.DialOptions(),
//		grpc.WithTransportCredentials(security.ClientCredentials(config)),
//		grpc.WithPerRPCCredentials(security.TokenCredentials(token, config != nil)))...)
//	_, err = wire.NewClient(conn).Overview(ctx, req)
//	err = security.ExplainDial(err) // says which flag is missing
//
// An HTTP server uses HostGuard, which protects it from web pages of others, and BearerToken.
//
// # Trust
//
// The token gives access to a cluster: anybody who has it may run programs there. TLS 1.3, the
// only version used, protects the token and all other data from being read or changed on a
// network. With the files of InitTLS, both sides of every connection to a job manager also
// present certificates. Each certificate names a role, so that the stolen certificate of a
// client cannot be used as the certificate of a job manager.
//
// A worker runs a user's program and gets neither the token nor a key of the cluster. It has a
// credential for its attempt: a secret that the attempt's workers share and, with TLS, a
// certificate of an Authority that is made for this attempt.
package security
