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

// header is the header of a token, which follows "Bearer " (RFC 6750).
const header = "authorization"

// Answers to callers with no token or a wrong one.
const (
	noToken    = "this job manager needs a token, and none was sent: "
	wrongToken = "this is not the token of this job manager: "
	findToken  = "it is in the token file that the job manager names when it starts, which programs of the same user on the same machine find by themselves; elsewhere give a copy of that file with --token-file"
)

// ClientCredentials returns the transport of a client with the given configuration; nil means
// no TLS. Prefer it to gRPC's own. With TLS 1.3 a server refuses a client's certificate only
// after the client has begun to send. If a write fails before that refusal was read, this
// transport reads it, so that ExplainDial can explain the error.
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

// lastWords is how long a connection is still read after a write to it has failed.
const lastWords = 200 * time.Millisecond

// listeningConn replaces the error of a failed write by the TLS alert that the other side sent
// last, if it sent one.
type listeningConn struct{ net.Conn }

func (c *listeningConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil {
		return n, nil
	}
	// Nobody reads the connection after this, so nothing that is read here is missed.
	if c.SetReadDeadline(time.Now().Add(lastWords)) == nil {
		var alert tls.AlertError
		_, said := c.Read(make([]byte, 1))
		if remote := (*net.OpError)(nil); errors.As(said, &remote) && remote.Op == "remote error" || errors.As(said, &alert) {
			return n, said
		}
	}
	return n, err
}

// tokenCredentials adds a token to calls.
type tokenCredentials struct {
	token      Token
	requireTLS bool
}

// TokenCredentials adds t to every call of a connection. With requireTLS gRPC refuses to
// send it over a connection without TLS.
func TokenCredentials(t Token, requireTLS bool) credentials.PerRPCCredentials {
	return tokenCredentials{token: t, requireTLS: requireTLS}
}

func (c tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{header: "Bearer " + c.token.Reveal()}, nil
}

func (c tokenCredentials) RequireTransportSecurity() bool { return c.requireTLS }

// TokenOptions makes a server admit only callers that show t and, if their certificate names
// roles, only to the calls of these roles. The token is checked before anything else of a call
// is read, and again by the interceptors.
func TokenOptions(t Token) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(tapToken(t)),
		grpc.ChainUnaryInterceptor(UnaryToken(t)),
		grpc.ChainStreamInterceptor(StreamToken(t), StreamRoles()),
	}
}

// tapToken checks a call when only its headers have arrived. The first call that it admits
// records that its connection is authenticated.
func tapToken(t Token) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		err := admit(t, info.Header)
		if err == nil {
			tokenShown(ctx)
		}
		return ctx, err
	}
}

// UnaryToken checks the token of calls with one answer.
func UnaryToken(t Token) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if err := admit(t, md); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamToken checks the token of streams.
func StreamToken(t Token) grpc.StreamServerInterceptor {
	return func(impl any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if err := admit(t, md); err != nil {
			return err
		}
		return next(impl, stream)
	}
}

// admit compares the token in md with t. Its error says what to do.
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

// bearer returns the token in a header; if there is none, the result equals no token.
func bearer(value string) Token {
	scheme, text, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Token{}
	}
	return Token{text: strings.TrimSpace(text)}
}
