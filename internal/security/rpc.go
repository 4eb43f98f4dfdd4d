package security

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/superstep-ml/superstep/internal/wire"
)

// header is the name of the header that has the token, after "Bearer " (RFC 6750).
const header = "authorization"

// Parts of the errors that callers without a token, or with a wrong token, get.
const (
	noToken    = "this job manager needs a token, and none was sent: "
	wrongToken = "this is not the token of this job manager: "
	findToken  = "it is in the token file that the job manager names when it starts, which programs of the same user on the same machine find by themselves; elsewhere give a copy of that file with --token-file"
)

// ClientCredentials returns the transport credentials of a client with the given configuration;
// nil means no TLS. Use these credentials instead of gRPC's. With TLS 1.3, a server refuses a
// client's certificate only after the client has begun to send. If a write of the client fails
// for that reason, these credentials read the server's alert, so that ExplainDial can explain
// the error.
func ClientCredentials(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return insecure.NewCredentials()
	}
	return listening{credentials.NewTLS(config)}
}

type listening struct {
	credentials.TransportCredentials
}

func (l listening) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := l.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return &listeningConn{conn}, info, nil
}

func (l listening) Clone() credentials.TransportCredentials {
	return listening{l.TransportCredentials.Clone()}
}

// lastWords bounds the time for which a connection is read after a write to it has failed.
const lastWords = 200 * time.Millisecond

// listeningConn replaces the error of a failed write by the TLS alert that the other side has
// sent, if it has sent one.
type listeningConn struct{ net.Conn }

func (c *listeningConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil {
		return n, nil
	}
	// After a failed write nobody else reads the connection, so the bytes that are read here
	// are not missed.
	if c.SetReadDeadline(time.Now().Add(lastWords)) == nil {
		var alert tls.AlertError
		_, said := c.Read(make([]byte, 1))
		if remote := (*net.OpError)(nil); errors.As(said, &remote) && remote.Op == "remote error" || errors.As(said, &alert) {
			return n, said
		}
	}
	return n, err
}

// tokenCredentials implements credentials.PerRPCCredentials.
type tokenCredentials struct {
	token      Token
	requireTLS bool
}

// TokenCredentials returns credentials that add t to every call of a connection. If requireTLS
// is set, gRPC does not send t over a connection without TLS.
func TokenCredentials(t Token, requireTLS bool) credentials.PerRPCCredentials {
	return tokenCredentials{token: t, requireTLS: requireTLS}
}

func (c tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{header: "Bearer " + c.token.Reveal()}, nil
}

func (c tokenCredentials) RequireTransportSecurity() bool { return c.requireTLS }

// TokenOptions returns the options of a server that admits only calls that have t and, if the
// caller's certificate names roles, only the calls of these roles. The token is checked when
// only the headers of a call have been read, and again by the interceptors.
func TokenOptions(t Token) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(tapToken(t)),
		grpc.ChainUnaryInterceptor(UnaryToken(t)),
		grpc.ChainStreamInterceptor(StreamToken(t), StreamRoles()),
	}
}

// tapToken returns a function that checks the token of a call when only its headers have
// arrived. If it admits the call, it marks the connection as authenticated.
func tapToken(t Token) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		err := admit(t, info.Header)
		if err == nil {
			tokenShown(ctx)
		}
		return ctx, err
	}
}

// UnaryToken returns an interceptor that checks the token of unary calls.
func UnaryToken(t Token) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if err := admit(t, md); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamToken returns an interceptor that checks the token of streams.
func StreamToken(t Token) grpc.StreamServerInterceptor {
	return func(impl any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if err := admit(t, md); err != nil {
			return err
		}
		return next(impl, stream)
	}
}

// admit compares the token in md with t. If there is no token or a different token, it returns
// an error that says what to do.
func admit(t Token, md metadata.MD) error {
	shown := md.Get(header)
	if len(shown) == 0 {
		return wire.Error(codes.Unauthenticated, "%s%s", noToken, findToken)
	}
	if len(shown) > 1 || !Equal(t, bearer(shown[0])) {
		return wire.Error(codes.Unauthenticated, "%s%s", wrongToken, findToken)
	}
	return nil
}

// bearer returns the token in the value of a header. If there is none, it returns the zero
// Token, which is equal to no token.
func bearer(value string) Token {
	scheme, text, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Token{}
	}
	return Token{text: strings.TrimSpace(text)}
}
