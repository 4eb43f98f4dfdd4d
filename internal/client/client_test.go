package client

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

func TestDial(t *testing.T) {
	at, _ := serve(t, &manager{}, "")
	c := dialed(t, at, nil)
	require.Equal(t, *cluster(), c.Cluster())
	require.Equal(t, at, c.Address())
}

func TestDialNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = reach(t, at, nil)
	require.EqualError(t, err, "no job manager answers at "+at+": start one with `superstep dev` or `superstep jobmanager`, or check the address")
	require.Equal(t, codes.Unavailable, wire.Code(err))
}

func TestDialSilence(t *testing.T) {
	silent := &manager{overview: func(ctx context.Context) (*wire.Overview, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	at, _ := serve(t, silent, "")
	_, err := reach(t, at, func(o *Options) { o.DialTimeout = 50 * time.Millisecond })
	require.ErrorContains(t, err, "the job manager at "+at+" does not answer")
}

func TestDialCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &manager{overview: func(ctx context.Context) (*wire.Overview, error) {
		cancel(context.DeadlineExceeded)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	at, _ := serve(t, m, "")
	_, err := Dial(ctx, Options{Address: at, Token: token(t, right)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestDialVersions(t *testing.T) {
	for version, want := range map[int]string{
		wire.Version + 1: "upgrade this program",
		wire.Version - 1: "upgrade the job manager at 127.0.0.1:",
	} {
		m := &manager{overview: func(context.Context) (*wire.Overview, error) { return &wire.Overview{Version: version}, nil }}
		at, _ := serve(t, m, "")
		_, err := reach(t, at, nil)
		require.ErrorContains(t, err, want)
	}
}

func TestDialToken(t *testing.T) {
	at, _ := serve(t, &manager{}, "", security.TokenOptions(token(t, right))...)
	file := tokenFile(t, right+"\n")
	env := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	for name, change := range map[string]func(*Options){
		"option":           func(o *Options) { o.Token, o.TokenFile = token(t, right), "/nowhere" },
		"file":             func(o *Options) { o.TokenFile = file; o.Getenv = env(map[string]string{tokenEnv: wrong}) },
		"environment":      func(o *Options) { o.Getenv = env(map[string]string{tokenEnv: " " + right + "\n"}) },
		"environment file": func(o *Options) { o.Getenv = env(map[string]string{tokenEnv: wrong, tokenFileEnv: file}) },
	} {
		t.Run(name, func(t *testing.T) {
			dialed(t, at, func(o *Options) { o.Token = security.Token{}; change(o) })
		})
	}
	_, err := reach(t, at, func(o *Options) { o.Token = token(t, wrong) })
	require.ErrorContains(t, err, "this is not the token of this job manager")
	require.ErrorContains(t, err, "(the token shown was from the options)")

	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	_, err = reach(t, at, func(o *Options) { o.Token = security.Token{} })
	_, port, _ := ParseAddress(at)
	require.ErrorContains(t, err, "no token for port")
	require.ErrorContains(t, err, security.DefaultTokenFile(port))
	_, err = security.CreateToken(security.DefaultTokenFile(port))
	require.NoError(t, err)
	_, err = reach(t, at, func(o *Options) { o.Token = security.Token{} })
	require.ErrorContains(t, err, "(the token shown was from the token file of a job manager of this user)")

	_, err = reach(t, at, func(o *Options) { o.Token, o.TokenFile = security.Token{}, "/nowhere/token" })
	require.ErrorContains(t, err, "the token of the cluster (--token-file)")
	require.ErrorContains(t, err, "/nowhere/token")
	_, err = reach(t, at, func(o *Options) {
		o.Token, o.Getenv = security.Token{}, env(map[string]string{tokenEnv: "short"})
	})
	require.ErrorContains(t, err, "the token of the cluster (SUPERSTEP_TOKEN): the token has 5 characters")
}

func TestDialElsewhere(t *testing.T) {
	_, err := reach(t, "cluster.example", nil)
	require.ErrorContains(t, err, "cluster.example:6123 is on another machine")
	require.ErrorContains(t, err, "--insecure")
	_, err = reach(t, "http://x", nil)
	require.ErrorContains(t, err, "is no address of a job manager")
}

func TestDialSomethingElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_, _ = io.Copy(io.Discard, conn) // until the client has read the answer and closes the connection
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	_, err = reach(t, listener.Addr().String(), func(o *Options) { o.DialTimeout = time.Second })
	require.ErrorContains(t, err, "the job manager at "+listener.Addr().String())
	require.ErrorContains(t, err, "an HTTP server answers there: give the port for programs")
	require.NotContains(t, err.Error(), "rpc error")
}

func TestDialTLS(t *testing.T) {
	set, err := security.InitTLS(t.TempDir(), nil, false)
	require.NoError(t, err)
	config, err := set.JobManager.Server()
	require.NoError(t, err)
	secured, _ := serve(t, &manager{}, "", grpc.Creds(credentials.NewTLS(config)))
	plain, _ := serve(t, &manager{}, "")
	dialed(t, secured, func(o *Options) { o.TLS = set.Client })

	for name, test := range map[string]struct {
		at     string
		change func(*Options)
		want   string
	}{
		"plaintext to TLS": {secured, nil, "what answers there speaks no gRPC without TLS"},
		"TLS to plaintext": {plain, func(o *Options) { o.TLS = set.Client }, "the job manager does not speak TLS"},
		"no certificate":   {secured, func(o *Options) { o.TLS = security.TLSFiles{CA: set.Client.CA} }, "the job manager needs a certificate"},
		"missing file":     {secured, func(o *Options) { o.TLS = security.TLSFiles{CA: "/nowhere/ca.pem"} }, "/nowhere/ca.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reach(t, test.at, test.change)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "rpc error")
		})
	}
}

// TestConnectionsThatBreak requires that the error distinguishes a broken connection from a job
// manager that does not run, and says if the received bytes were not HTTP/2.
func TestConnectionsThatBreak(t *testing.T) {
	at, _ := serve(t, &manager{}, "")
	c := dialed(t, at, nil)
	for text, want := range map[string]string{
		"error reading from server: EOF":                                                "the connection to the job manager at " + at + " broke: error reading from server: EOF",
		"error reading from server: connection error: PROTOCOL_ERROR":                   "broke: what arrived was no valid HTTP/2, so that it was damaged in transit",
		"stream terminated by RST_STREAM with error code: PROTOCOL_ERROR":               "broke: what arrived was no valid HTTP/2, so that it was damaged in transit",
		"connection error: desc = \"transport: Error while dialing: no route to host\"": "the job manager at " + at + " cannot be reached: no route to host",
	} {
		code := codes.Unavailable
		if text[0] == 's' {
			code = codes.Internal
		}
		require.ErrorContains(t, c.Explain(status.Error(code, text)), want)
	}
}
