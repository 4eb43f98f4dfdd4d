package security

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/superstep-ml/superstep/internal/wire"
)

// manager is a job manager that answers only Overview.
type manager struct{ wire.JobManager }

func (manager) Overview(context.Context, *wire.OverviewRequest) (*wire.Overview, error) {
	return &wire.Overview{Build: "here"}, nil
}

func (manager) Follow(_ *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
	return stream.Send(&wire.Event{Number: 1})
}

func (manager) Connect(wire.BidiStream[wire.FromTaskManager, wire.ToTaskManager]) error { return nil }

func (manager) FetchArtifact(*wire.FetchRequest, wire.ServerStream[wire.Chunk]) error { return nil }

// serve starts a job manager on the loopback interface and returns its address.
func serve(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(append(wire.ServerOptions(), options...)...)
	wire.RegisterJobManager(s, manager{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); require.NoError(t, <-served) })
	return l.Addr().String()
}

// call calls Overview of the job manager at address.
func call(t *testing.T, address string, config *tls.Config, options ...grpc.DialOption) error {
	t.Helper()
	conn, err := grpc.NewClient(address, append(append(wire.DialOptions(), grpc.WithTransportCredentials(ClientCredentials(config))), options...)...)
	require.NoError(t, err)
	defer conn.Close()
	_, err = wire.NewClient(conn).Overview(t.Context(), &wire.OverviewRequest{})
	return err
}

func makeTLS(t *testing.T, hosts ...string) *TLSSet {
	t.Helper()
	set, err := InitTLS(filepath.Join(t.TempDir(), "tls"), hosts, false)
	require.NoError(t, err)
	return set
}

func serverTLS(t *testing.T, f TLSFiles) grpc.ServerOption {
	t.Helper()
	config, err := f.Server()
	require.NoError(t, err)
	return grpc.Creds(credentials.NewTLS(config))
}

func clientTLS(t *testing.T, f TLSFiles) *tls.Config {
	t.Helper()
	config, err := f.Client()
	require.NoError(t, err)
	return config
}

func newToken(t *testing.T) Token {
	t.Helper()
	token, err := NewToken()
	require.NoError(t, err)
	return token
}

func TestTokensOpenTheServer(t *testing.T) {
	token := newToken(t)
	for name, options := range map[string][]grpc.ServerOption{
		"all":          TokenOptions(token),
		"tap":          {grpc.InTapHandle(tapToken(token))},
		"interceptors": {grpc.UnaryInterceptor(UnaryToken(token)), grpc.StreamInterceptor(StreamToken(token))},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, options...)
			try := func(options ...grpc.DialOption) (unary, stream error) {
				conn, err := grpc.NewClient(address, append(append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials())), options...)...)
				require.NoError(t, err)
				defer conn.Close()
				c := wire.NewClient(conn)
				_, unary = c.Overview(t.Context(), &wire.OverviewRequest{})
				follow, err := c.Follow(t.Context(), &wire.FollowRequest{})
				require.NoError(t, err)
				_, stream = follow.Recv()
				return unary, stream
			}
			unary, stream := try(grpc.WithPerRPCCredentials(TokenCredentials(token, false)))
			require.NoError(t, unary)
			require.NoError(t, stream)

			unary, stream = try()
			for _, err := range []error{unary, stream} {
				require.Equal(t, codes.Unauthenticated, wire.Code(err))
				require.EqualError(t, err, "this job manager needs a token, and none was sent: it is in the token file that the job manager names when it starts, which programs of the same user on the same machine find by themselves; elsewhere give a copy of that file with --token-file")
			}
			unary, stream = try(grpc.WithPerRPCCredentials(TokenCredentials(newToken(t), false)))
			for _, err := range []error{unary, stream} {
				require.Equal(t, codes.Unauthenticated, wire.Code(err))
				require.ErrorContains(t, err, "this is not the token of this job manager")
			}
			both := grpc.WithPerRPCCredentials(TokenCredentials(token, false))
			unary, _ = try(both, grpc.WithPerRPCCredentials(TokenCredentials(newToken(t), false)))
			require.Equal(t, codes.Unauthenticated, wire.Code(unary), "a call with two tokens must be refused")
		})
	}
}

func TestNoTokenOpensNothing(t *testing.T) {
	address := serve(t, TokenOptions(Token{})...)
	err := call(t, address, nil, grpc.WithPerRPCCredentials(TokenCredentials(Token{}, false)))
	require.Equal(t, codes.Unauthenticated, wire.Code(err))
}

func TestOneTokenIsShown(t *testing.T) {
	token := newToken(t)
	shown := "Bearer " + token.Reveal()
	require.NoError(t, admit(token, metadata.Pairs(header, shown)))
	require.NoError(t, admit(token, metadata.Pairs("Authorization", shown)))
	require.ErrorContains(t, admit(token, metadata.Pairs(header, shown, header, shown)), wrongToken)
	require.ErrorContains(t, admit(token, metadata.Pairs(header, "")), wrongToken)
	require.ErrorContains(t, admit(token, nil), noToken)
}

func TestTokenIsNotSentInTheClear(t *testing.T) {
	_, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(TokenCredentials(newToken(t), true)))
	require.ErrorContains(t, err, "require transport level security")
}

func TestMutualTLS(t *testing.T) {
	set, token := makeTLS(t), newToken(t)
	address := serve(t, append(TokenOptions(token), serverTLS(t, set.JobManager))...)
	shown := grpc.WithPerRPCCredentials(TokenCredentials(token, true))
	require.NoError(t, call(t, address, clientTLS(t, set.Client), shown))
	require.NoError(t, call(t, address, clientTLS(t, set.TaskManager), shown))
	require.NoError(t, call(t, strings.Replace(address, "127.0.0.1", "localhost", 1), clientTLS(t, set.Client), shown))
	require.Equal(t, codes.Unauthenticated, wire.Code(call(t, address, clientTLS(t, set.Client))))
}

func TestCallsOfRoles(t *testing.T) {
	set, token := makeTLS(t), newToken(t)
	encrypted := serve(t, append(TokenOptions(token), serverTLS(t, set.JobManager))...)
	plain := serve(t, TokenOptions(token)...)
	for _, c := range []struct {
		address string
		files   TLSFiles
		refused bool
	}{
		{encrypted, set.TaskManager, false}, {encrypted, set.Client, true}, {plain, TLSFiles{}, false},
	} {
		config := clientTLS(t, c.files)
		conn, err := grpc.NewClient(c.address, append(wire.DialOptions(), grpc.WithTransportCredentials(ClientCredentials(config)), grpc.WithPerRPCCredentials(TokenCredentials(token, config != nil)))...)
		require.NoError(t, err)
		client := wire.NewClient(conn)
		connect, err := client.Connect(t.Context())
		require.NoError(t, err)
		_, connected := connect.Recv()
		fetch, err := client.FetchArtifact(t.Context(), &wire.FetchRequest{})
		require.NoError(t, err)
		_, fetched := fetch.Recv()
		follow, err := client.Follow(t.Context(), &wire.FollowRequest{})
		require.NoError(t, err)
		_, followed := follow.Recv()
		require.NoError(t, followed)
		for _, err := range []error{connected, fetched} {
			if !c.refused {
				require.Equal(t, io.EOF, err)
				continue
			}
			require.Equal(t, codes.PermissionDenied, wire.Code(err))
			require.ErrorContains(t, err, "is for task managers, and this is the certificate of a client")
		}
		require.NoError(t, conn.Close())
	}
}

// TestDialsThatFail causes every error that ExplainDial knows, with the real libraries, and
// compares the explanations.
func TestDialsThatFail(t *testing.T) {
	set, other := makeTLS(t), makeTLS(t)
	mutual := serve(t, serverTLS(t, set.JobManager))
	plain := serve(t)
	oneWay := serve(t, serverTLS(t, TLSFiles{Cert: set.JobManager.Cert, Key: set.JobManager.Key}))
	ofClient := serve(t, serverTLS(t, set.Client))
	both := issueFiles(t, set, grant{name: "x", role: "visitor", usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, hosts: []string{"127.0.0.1"}})
	role := issueFiles(t, set, grant{name: "x", role: RoleClient, usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, hosts: []string{"127.0.0.1"}})
	ofRole := serve(t, serverTLS(t, role))
	elsewhere := serve(t, serverTLS(t, issueFiles(t, set, grant{name: "x", role: RoleJobManager, hosts: []string{"10.9.8.7"}, usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})))
	ofTask := serve(t, serverTLS(t, issueFiles(t, set, grant{name: "x", role: RoleTaskManager, hosts: []string{"127.0.0.1"}, usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})))
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	webTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	webTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	webTLS.StartTLS()
	defer webTLS.Close()
	old, err := set.JobManager.Server()
	require.NoError(t, err)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	oldServer := serve(t, grpc.Creds(credentials.NewTLS(old)))

	require.NoError(t, call(t, oneWay, clientTLS(t, TLSFiles{CA: set.Client.CA})))
	for name, c := range map[string]struct {
		address string
		files   TLSFiles
		want    string
	}{
		"TLS to plaintext":         {plain, set.Client, "does not speak TLS: drop --tls-ca"},
		"plaintext to TLS":         {oneWay, TLSFiles{}, "if it is a job manager with TLS, give --tls-ca"},
		"plaintext to mutual TLS":  {mutual, TLSFiles{}, "if it is a job manager with TLS, give --tls-ca"},
		"to HTTP":                  {web.Listener.Addr().String(), TLSFiles{}, "an HTTP server answers there"},
		"TLS to HTTP":              {web.Listener.Addr().String(), set.Client, "does not speak TLS"},
		"plaintext to HTTPS":       {webTLS.Listener.Addr().String(), TLSFiles{}, "speaks no gRPC without TLS|an HTTP server answers there"},
		"TLS to HTTPS":             {webTLS.Listener.Addr().String(), set.Client, "speaks TLS but no gRPC"},
		"no certificate":           {mutual, TLSFiles{CA: set.Client.CA}, "needs a certificate: give --tls-cert"},
		"another authority's":      {mutual, TLSFiles{CA: set.Client.CA, Cert: other.Client.Cert, Key: other.Client.Key}, "does not accept our certificate"},
		"a job manager's":          {mutual, set.JobManager, "does not accept our certificate"},
		"unknown authority":        {mutual, other.Client, "give its ca.pem with --tls-ca"},
		"system's authorities":     {mutual, TLSFiles{Cert: set.Client.Cert, Key: set.Client.Key}, "give its ca.pem with --tls-ca"},
		"another name":             {elsewhere, set.Client, "is for other names"},
		"client as job manager":    {ofClient, set.Client, "if it is a client's it is no job manager's"},
		"task manager, right host": {ofTask, set.Client, "a certificate that is no job manager's"},
		"role alone":               {ofRole, set.Client, "of a client, where one of a jobmanager is needed"},
		"role alone, to a server":  {mutual, both, "does not accept our certificate"},
		"old TLS":                  {oldServer, set.Client, "must have 1.3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := call(t, c.address, clientTLS(t, c.files))
			require.Error(t, err)
			require.Equal(t, codes.Unavailable, wire.Code(err))
			explained := ExplainDial(err)
			require.Regexp(t, c.want, explained.Error())
			require.NotContains(t, explained.Error(), "rpc error")
			require.ErrorIs(t, explained, err)
			require.Equal(t, codes.Unavailable, wire.Code(explained))
		})
	}
}

func TestExplainDialLeavesOthersAlone(t *testing.T) {
	require.NoError(t, ExplainDial(nil))
	err := errors.New("dial tcp: connection refused")
	require.Equal(t, err, ExplainDial(err))
}

func TestExplainDialOfTimes(t *testing.T) {
	files := initAt(t, time.Now().Add(-certificateLife-time.Hour))
	config, err := files.JobManager.server(time.Now().Add(-2 * time.Hour))
	require.NoError(t, err)
	address := serve(t, grpc.Creds(credentials.NewTLS(config)))
	client, err := files.Client.client(time.Now().Add(-2 * time.Hour))
	require.NoError(t, err)
	require.ErrorContains(t, ExplainDial(call(t, address, client)), "the job manager's certificate is not good now")

	good := makeTLS(t)
	config, err = good.JobManager.Server()
	require.NoError(t, err)
	config.ClientCAs, err = authorities(files.Client.CA, time.Now().Add(-2*time.Hour))
	require.NoError(t, err)
	address = serve(t, grpc.Creds(credentials.NewTLS(config)))
	client.RootCAs = clientTLS(t, good.Client).RootCAs
	require.ErrorContains(t, ExplainDial(call(t, address, client)), "our certificate has expired")
}

func initAt(t *testing.T, now time.Time) *TLSSet {
	t.Helper()
	set, err := initTLS(filepath.Join(t.TempDir(), "tls"), nil, false, now)
	require.NoError(t, err)
	return set
}

// issueFiles writes the files of a further certificate, which the authority of set signs.
func issueFiles(t *testing.T, set *TLSSet, g grant) TLSFiles {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(set.Client.CA, set.AuthorityKey)
	require.NoError(t, err)
	a := &Authority{cert: ca.Leaf, key: ca.PrivateKey.(*ecdsa.PrivateKey)}
	cert, key, err := a.issue(g)
	require.NoError(t, err)
	dir := t.TempDir()
	f := TLSFiles{CA: set.Client.CA, Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem")}
	require.NoError(t, os.WriteFile(f.Cert, []byte(cert), 0o600))
	require.NoError(t, os.WriteFile(f.Key, []byte(key), 0o600))
	return f
}
