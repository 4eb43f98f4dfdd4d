package client

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a job manager that answers calls with the functions that a test sets. If overview
// or upload is nil, it answers with cluster() or accepts all uploads.
type manager struct {
	wire.JobManager // always nil: tests make no calls that are not implemented below

	overview func(ctx context.Context) (*wire.Overview, error)
	follow   func(req *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error
	upload   func(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error

	mu    sync.Mutex
	has   map[string][]byte
	asked []wire.FollowRequest
}

func cluster() *wire.Overview {
	return &wire.Overview{Version: wire.Version, Build: "v1", Slots: 4, TaskManagers: 2, Uploads: true, MaxArtifact: 8 << 20}
}

func (m *manager) Overview(ctx context.Context, _ *wire.OverviewRequest) (*wire.Overview, error) {
	if m.overview == nil {
		return cluster(), nil
	}
	return m.overview(ctx)
}

func (m *manager) HasArtifact(_ context.Context, req *wire.HasArtifactRequest) (*wire.HasArtifactReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, has := m.has[req.Hash]
	return &wire.HasArtifactReply{Has: has}, nil
}

func (m *manager) UploadArtifact(stream wire.ClientStream[wire.Chunk, wire.UploadReply]) error {
	if m.upload != nil {
		return m.upload(stream)
	}
	var data []byte
	hash := ""
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if hash == "" {
			hash = chunk.Hash
		}
		data = append(data, chunk.Data...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has == nil {
		m.has = map[string][]byte{}
	}
	m.has[hash] = data
	return stream.SendAndClose(&wire.UploadReply{})
}

func (m *manager) Follow(req *wire.FollowRequest, stream wire.ServerStream[wire.Event]) error {
	m.mu.Lock()
	m.asked = append(m.asked, *req)
	m.mu.Unlock()
	return m.follow(req, stream)
}

// serve serves m at the given address, or at a free port if it is "", until stop is called.
func serve(t *testing.T, m wire.JobManager, address string, opts ...grpc.ServerOption) (at string, stop func()) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := grpc.NewServer(append(wire.ServerOptions(), opts...)...)
	wire.RegisterJobManager(s, m)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { s.Stop(); <-done })
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// Two tokens of a valid length.
const (
	right = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
	wrong = "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
)

func token(t *testing.T, text string) security.Token {
	t.Helper()
	token, err := security.ParseToken(text)
	require.NoError(t, err)
	return token
}

// reach dials with short timeouts and an empty environment.
func reach(t *testing.T, address string, change func(*Options)) (*Client, error) {
	t.Helper()
	o := Options{
		Address: address, Token: token(t, right), DialTimeout: 5 * time.Second, StallTimeout: 5 * time.Second, AwayTimeout: 5 * time.Second,
		Getenv: func(string) string { return "" },
	}
	if change != nil {
		change(&o)
	}
	c, err := Dial(t.Context(), o)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, c.Close()) })
	}
	return c, err
}

// dialed is like reach, but fails the test if Dial fails.
func dialed(t *testing.T, address string, change func(*Options)) *Client {
	t.Helper()
	c, err := reach(t, address, change)
	require.NoError(t, err)
	return c
}

// tokenFile writes a token file as a job manager does, and returns its path.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
	return path
}
