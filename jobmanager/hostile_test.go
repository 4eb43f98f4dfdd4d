package jobmanager

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// upload uploads data with the given hash and size, which may be wrong.
func upload(t testing.TB, c *wire.Client, hash string, size int64, data []byte) error {
	s, err := c.UploadArtifact(bounded(t))
	require.NoError(t, err)
	first := &wire.Chunk{Hash: hash, Size: size}
	next := pieces(data, 64<<10)
	for piece, end := next(); end == nil; piece, end = next() {
		first.Data = piece
		if s.Send(first) != nil {
			break // CloseAndRecv returns the error
		}
		first = new(wire.Chunk)
	}
	if len(data) == 0 {
		require.NoError(t, s.Send(first))
	}
	_, err = s.CloseAndRecv()
	return err
}

func TestUploads(t *testing.T) {
	m := start(t, func(c *Config) { c.MaxArtifact = 1 << 20 })
	c := dial(t, m, testToken, nil)
	data := executable(strings.Repeat("abcd", 100_000))
	hash, size := hashOf(data), int64(len(data))
	has := func() bool {
		reply, err := c.HasArtifact(bounded(t), &wire.HasArtifactRequest{Hash: hash, Size: size})
		require.NoError(t, err)
		return reply.Has
	}
	for name, u := range map[string]struct {
		hash string
		size int64
		data []byte
		code codes.Code
		says string
	}{
		"wrong hash": {hashOf([]byte("?")), size, data, codes.InvalidArgument, "its SHA-256 is"},
		"truncated":  {hash, size, data[:size/2], codes.InvalidArgument, "cut short"},
		"nothing":    {hash, size, nil, codes.InvalidArgument, "cut short"},
		"too much":   {hash, size - 1, data, codes.InvalidArgument, "more than the"},
		"too large":  {hash, 2 << 30, data, codes.ResourceExhausted, "--max-artifact"},
		"a script":   {hashOf([]byte("#!/bin/sh")), 9, []byte("#!/bin/sh"), codes.InvalidArgument, "script"},
		"no hash":    {"", size, data, codes.InvalidArgument, "not a SHA-256"},
	} {
		err := upload(t, c, u.hash, u.size, u.data)
		require.Equal(t, u.code, wire.Code(err), name)
		require.ErrorContains(t, err, u.says, name)
		require.False(t, has(), name)
		require.Empty(t, onDisk(t, m.artifacts), name)
	}
	_, err := c.HasArtifact(bounded(t), &wire.HasArtifactRequest{Hash: hash, Size: 2 << 30})
	require.Equal(t, codes.ResourceExhausted, wire.Code(err))
	spec := specOf(t, 1)
	spec.Artifact, spec.Platform = hash, linux
	_, err = c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
	require.Equal(t, codes.NotFound, wire.Code(err))
	require.ErrorContains(t, err, "upload it first")

	create := m.artifacts.create
	fillDisk(m.artifacts, 100_000)
	err = upload(t, c, hash, size, data)
	require.Equal(t, codes.ResourceExhausted, wire.Code(err))
	require.ErrorContains(t, err, "no space left")
	require.Empty(t, onDisk(t, m.artifacts))
	m.artifacts.create = create

	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := upload(t, c, hash, size, data); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	require.True(t, has())
	require.NoError(t, upload(t, c, hash, size, nil), "an upload without data must succeed if the store has the executable")

	fetch, err := c.FetchArtifact(bounded(t), &wire.FetchRequest{Hash: hash})
	require.NoError(t, err)
	var got []byte
	for {
		chunk, err := fetch.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, chunk.Data...)
	}
	require.Equal(t, data, got)
	fetch, err = c.FetchArtifact(bounded(t), &wire.FetchRequest{Hash: hashOf(nil)})
	require.NoError(t, err)
	_, err = fetch.Recv()
	require.Equal(t, codes.NotFound, wire.Code(err))

	spec.Platform.Arch = "arm64"
	_, err = c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
	require.ErrorContains(t, err, "runs on linux/amd64")
	spec.Platform = linux
	id := submit(t, c, spec)
	pins := func() int {
		m.artifacts.Lock()
		defer m.artifacts.Unlock()
		return m.artifacts.Kept[hash].Pins
	}
	require.Equal(t, 1, pins())
	_, err = c.Cancel(bounded(t), &wire.CancelRequest{Job: id})
	require.NoError(t, err)
	eventually(t, "the executable is no longer pinned", func() bool { return pins() == 0 })
}

// TestUploadStalls requires that the job manager ends an upload that makes no progress, and
// stores nothing of it.
func TestUploadStalls(t *testing.T) {
	m := start(t, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
	c := dial(t, m, testToken, nil)
	s, err := c.UploadArtifact(bounded(t))
	require.NoError(t, err)
	data := executable("x")
	require.NoError(t, s.Send(&wire.Chunk{Hash: hashOf(data), Size: int64(len(data)), Data: data[:10]}))
	err = s.RecvMsg(new(wire.UploadReply))
	require.Equal(t, codes.DeadlineExceeded, wire.Code(err))
	eventually(t, "nothing of the upload is stored", func() bool { return len(onDisk(t, m.artifacts)) == 0 })
}

func TestNoUploads(t *testing.T) {
	m := start(t, func(c *Config) { c.NoUploads = true })
	c := dial(t, m, testToken, nil)
	data := executable("x")
	for _, err := range []error{
		upload(t, c, hashOf(data), int64(len(data)), data),
		func() error {
			_, err := c.HasArtifact(bounded(t), &wire.HasArtifactRequest{Hash: hashOf(data)})
			return err
		}(),
		func() error {
			spec := specOf(t, 1)
			spec.Artifact, spec.Platform = hashOf(data), linux
			_, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
			return err
		}(),
	} {
		require.Equal(t, codes.FailedPrecondition, wire.Code(err))
		require.ErrorContains(t, err, "built-in jobs only")
	}
	o, err := c.Overview(bounded(t), &wire.OverviewRequest{Version: wire.Version})
	require.NoError(t, err)
	require.False(t, o.Uploads)
}

func TestSubmissionsRefused(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	for name, s := range map[string]struct {
		change func(*wire.JobSpec)
		code   codes.Code
		says   string
	}{
		"older client":      {func(s *wire.JobSpec) { s.Version = wire.Version - 1 }, codes.FailedPrecondition, "upgrade the client"},
		"newer client":      {func(s *wire.JobSpec) { s.Version = wire.Version + 1 }, codes.FailedPrecondition, "upgrade the job manager"},
		"anonymous":         {func(s *wire.JobSpec) { s.Name = "" }, codes.InvalidArgument, "engine.Define"},
		"long name":         {func(s *wire.JobSpec) { s.Name = strings.Repeat("x", 201) }, codes.InvalidArgument, "200 bytes"},
		"two lines":         {func(s *wire.JobSpec) { s.Name = "a\nb" }, codes.InvalidArgument, "one line"},
		"shards":            {func(s *wire.JobSpec) { s.Shards = 100 }, codes.InvalidArgument, "--shards"},
		"no parallelism":    {func(s *wire.JobSpec) { s.Parallelism = 0 }, codes.InvalidArgument, "--parallelism"},
		"more than shards":  {func(s *wire.JobSpec) { s.Parallelism = 9 }, codes.InvalidArgument, "above the number of shards"},
		"if-exists":         {func(s *wire.JobSpec) { s.Run.IfExists = "ask" }, codes.InvalidArgument, "fail or replace"},
		"negative restarts": {func(s *wire.JobSpec) { s.Restart.Attempts = -1 }, codes.InvalidArgument, "--restart-attempts is -1"},
		"negative delay":    {func(s *wire.JobSpec) { s.Restart.Delay = -1 }, codes.InvalidArgument, "--restart-delay"},
		"negative window":   {func(s *wire.JobSpec) { s.Restart.Window = -1 }, codes.InvalidArgument, "--restart-window"},
		"unknown strategy":  {func(s *wire.JobSpec) { s.Restart.Strategy = 9 }, codes.InvalidArgument, "no restart strategy"},
		"priority":          {func(s *wire.JobSpec) { s.Priority = wire.MaxPriority + 1 }, codes.InvalidArgument, "--priority is 6"},
		"negative wait":     {func(s *wire.JobSpec) { s.WaitTimeout = -1 }, codes.InvalidArgument, "negative"},
		"garbage graph":     {func(s *wire.JobSpec) { s.Graph = []byte("{{{") }, codes.InvalidArgument, "does not compile"},
		"graph of another":  {func(s *wire.JobSpec) { s.Graph = graphOf(t, "other", 8) }, codes.InvalidArgument, `of job "other"`},
		"graph other seed":  {func(s *wire.JobSpec) { s.Seed = 8 }, codes.InvalidArgument, "seed 7"},
		"hollow graph":      {func(s *wire.JobSpec) { s.Graph = []byte(`{"job":"demo","shards":8,"seed":7,"nodes":[]}`) }, codes.InvalidArgument, "no operators"},
		"unknown artifact":  {func(s *wire.JobSpec) { s.Artifact = hashOf(nil) }, codes.NotFound, "upload it first"},
		"artifact no hash":  {func(s *wire.JobSpec) { s.Artifact = "../x" }, codes.NotFound, "not a SHA-256"},
		"too large a graph": {func(s *wire.JobSpec) { s.Graph = make([]byte, wire.MaxSubmit+1) }, codes.Internal, "larger than the limit"},
	} {
		spec := specOf(t, 1)
		s.change(&spec)
		_, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
		require.Equal(t, s.code, wire.Code(err), "%s: %v", name, err)
		require.ErrorContains(t, err, s.says, name)
	}
	list, err := c.List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
	require.Empty(t, list.Jobs)
}

func TestQuestionsRefused(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	_, err := c.Show(bounded(t), &wire.ShowRequest{})
	require.Equal(t, codes.NotFound, wire.Code(err))
	submit(t, c, specOf(t, 1))
	submit(t, c, specOf(t, 1))
	_, err = c.Show(bounded(t), &wire.ShowRequest{Job: "20"})
	require.Equal(t, codes.InvalidArgument, wire.Code(err))
	require.ErrorContains(t, err, "give more of the ID")
	_, err = c.Cancel(bounded(t), &wire.CancelRequest{Job: "nope"})
	require.Equal(t, codes.NotFound, wire.Code(err))
	_, err = c.List(bounded(t), &wire.ListRequest{Limit: -1})
	require.Equal(t, codes.InvalidArgument, wire.Code(err))
	_, err = c.Overview(bounded(t), &wire.OverviewRequest{Version: wire.Version + 1})
	require.ErrorContains(t, err, "upgrade the job manager")
	logs, err := c.Logs(bounded(t), &wire.LogsRequest{Job: "20", Worker: -2})
	require.NoError(t, err)
	_, err = logs.Recv()
	require.Equal(t, codes.InvalidArgument, wire.Code(err))
}

func TestToken(t *testing.T) {
	m := start(t)
	other, err := security.NewToken()
	require.NoError(t, err)
	for _, token := range []security.Token{{}, other} {
		c := dial(t, m, token, nil)
		_, err = c.List(bounded(t), &wire.ListRequest{})
		require.Equal(t, codes.Unauthenticated, wire.Code(err))
		require.ErrorContains(t, err, "--token-file")
		stream, err := c.Connect(bounded(t))
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, codes.Unauthenticated, wire.Code(err))
		require.Equal(t, codes.Unauthenticated, wire.Code(upload(t, c, hashOf(nil), 1, []byte("x"))))
	}
	require.Zero(t, m.last, "no connection without the token may be accepted as that of a task manager")
}

func TestTokenFileMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "token")
	m := start(t, func(c *Config) { c.Token, c.TokenFile = security.Token{}, file })
	token, err := security.ReadToken(file)
	require.NoError(t, err)
	_, err = dial(t, m, token, nil).List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
}

func TestTLS(t *testing.T) {
	set, err := security.InitTLS(t.TempDir(), nil, false)
	require.NoError(t, err)
	m := start(t, func(c *Config) { c.TLS = set.JobManager })
	client := func(f security.TLSFiles) *tls.Config {
		config, err := f.Client()
		require.NoError(t, err)
		config.ServerName = "localhost"
		return config
	}
	list := func(c *wire.Client) error {
		_, err := c.List(bounded(t), &wire.ListRequest{})
		return err
	}
	c := dial(t, m, testToken, client(set.TaskManager))
	require.NoError(t, list(c))
	require.NoError(t, list(dial(t, m, testToken, client(set.Client))))
	require.Equal(t, codes.Unauthenticated, wire.Code(list(dial(t, m, security.Token{}, client(set.Client)))))
	require.Equal(t, codes.Unavailable, wire.Code(list(dial(t, m, testToken, nil))), "a client without TLS must be refused by a server with TLS")
	require.Equal(t, codes.Unavailable, wire.Code(list(dial(t, m, testToken, client(security.TLSFiles{CA: set.Client.CA})))), "a client without a certificate must be refused")
	plain := start(t)
	require.Equal(t, codes.Unavailable, wire.Code(list(dial(t, plain, testToken, client(set.Client)))), "a client with TLS must be refused by a server without TLS")
	require.NoError(t, list(dial(t, plain, testToken, nil)))

	// The data plane must use TLS too, with certificates that are used only in this attempt.
	tm := join(t, c, registration("a", 1))
	secrets := map[string]bool{}
	for range 2 {
		submit(t, c, specOf(t, 1))
		d := tm.run()
		config, err := security.AttemptTLS(d.Credential)
		require.NoError(t, err)
		require.NotNil(t, config)
		secrets[string(d.Credential.Secret)+d.Credential.Authority] = true
		tm.succeed(d.WorkerRef, "")
	}
	require.Len(t, secrets, 2)
}

func TestListenElsewhere(t *testing.T) {
	_, err := New(context.Background(), Config{Dir: t.TempDir(), Listen: "0.0.0.0:0", Token: testToken})
	require.ErrorContains(t, err, "--insecure")
	start(t, func(c *Config) { c.Listen, c.Insecure = "0.0.0.0:0", true })
	_, err = New(context.Background(), Config{Listen: "127.0.0.1:0", Token: testToken})
	require.ErrorContains(t, err, "--dir")
	_, err = New(context.Background(), Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Token: testToken, MaxArtifact: 2, ArtifactCache: 1})
	require.ErrorContains(t, err, "--artifact-cache")
	m := start(t)
	_, err = New(context.Background(), Config{Dir: t.TempDir(), Listen: m.Address(), Token: testToken})
	require.ErrorContains(t, err, "--listen")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = New(context.Background(), Config{Dir: file, Listen: "127.0.0.1:0", Token: testToken})
	require.ErrorContains(t, err, "work directory")
}

func TestGarbageOnThePort(t *testing.T) {
	t.Parallel()
	m := start(t)
	var conns []net.Conn
	for _, garbage := range []string{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", strings.Repeat("\xff", 1<<16), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff", ""} {
		c, err := net.Dial("tcp", m.Address())
		require.NoError(t, err)
		defer c.Close()
		c.Write([]byte(garbage)) // the write fails if the server has closed the connection
		conns = append(conns, c)
	}
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	submit(t, c, specOf(t, 1))
	d := tm.run()
	tm.succeed(d.WorkerRef, "")
	for _, c := range conns[:2] { // the third connection may stay open until the timeout of its incomplete frame
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server must close the connection")
	}
}

// TestManySilentConnections opens more connections than are allowed, and sends nothing on them.
// Clients that have the token must still be able to connect, and connections on which the token
// was received must not be closed, both with and without TLS.
func TestManySilentConnections(t *testing.T) {
	const limit = 4
	set, err := security.InitTLS(t.TempDir(), nil, false)
	require.NoError(t, err)
	client, err := set.TaskManager.Client()
	require.NoError(t, err)
	client.ServerName = "localhost"
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": client} {
		t.Run(name, func(t *testing.T) {
			m := start(t, func(c *Config) {
				c.MaxConnections = limit
				if config != nil {
					c.TLS = set.JobManager
				}
			})
			creds := insecure.NewCredentials()
			if config != nil {
				creds = credentials.NewTLS(config)
			}
			crowd := func() {
				for range 2 * limit {
					cc, err := grpc.NewClient("passthrough:///"+m.Address(), grpc.WithTransportCredentials(creds))
					require.NoError(t, err)
					t.Cleanup(func() { cc.Close() })
					cc.Connect()
					for s := cc.GetState(); s != connectivity.Ready; s = cc.GetState() {
						require.True(t, cc.WaitForStateChange(bounded(t), s), "the server must accept the connection")
					}
				}
			}
			crowd()
			c := dial(t, m, testToken, config)
			tm := join(t, c, registration("a", 1))
			crowd()
			submit(t, dial(t, m, testToken, config), specOf(t, 1))
			d := tm.run()
			tm.succeed(d.WorkerRef, "")
		})
	}
}

func TestTwoTaskManagersOfOneIdentity(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	first := join(t, c, registration("a", 1))
	twin := registration("a", 1)
	twin.Incarnation = "other"
	second := tryRegister(t, c, twin)
	refused := second.next().Refused
	require.NotNil(t, refused)
	require.Contains(t, refused.Reason, "work directory of its own")
	_, more := <-second.told
	require.False(t, more, "the connection must end after the refusal")
	require.ErrorIs(t, second.err, io.EOF)
	<-first.acks
	<-first.acks
	nodes, err := c.TaskManagers(bounded(t), &wire.TaskManagersRequest{})
	require.NoError(t, err)
	require.Len(t, nodes.TaskManagers, 1)
}

func TestTaskManagerOfAnotherVersion(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	r := registration("a", 1)
	r.Version++
	refused := tryRegister(t, c, r).next().Refused
	require.NotNil(t, refused)
	require.True(t, refused.Final)
	require.Contains(t, refused.Reason, "upgrade the job manager")
}

func TestTaskManagerThatDoesNotRegister(t *testing.T) {
	m := start(t)
	stream, err := dial(t, m, testToken, nil).Connect(bounded(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&wire.FromTaskManager{Heartbeat: &wire.Heartbeat{}}))
	_, err = stream.Recv()
	require.Equal(t, codes.InvalidArgument, wire.Code(err))
}

// unreadConnection is the connection of a task manager that registers and then reads nothing.
type unreadConnection struct {
	ctx  context.Context
	said chan *wire.FromTaskManager
}

func (d *unreadConnection) Context() context.Context { return d.ctx }

func (d *unreadConnection) Recv() (*wire.FromTaskManager, error) {
	select {
	case m := <-d.said:
		return m, nil
	case <-d.ctx.Done():
		return nil, d.ctx.Err()
	}
}

func (d *unreadConnection) Send(*wire.ToTaskManager) error {
	<-d.ctx.Done()
	return d.ctx.Err()
}

func TestTaskManagerThatDoesNotRead(t *testing.T) {
	connect := func(m *Manager, beats int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel() // gRPC cancels the context when the handler has returned
		d := &unreadConnection{ctx: ctx, said: make(chan *wire.FromTaskManager)}
		go func() {
			message := &wire.FromTaskManager{Register: registration("a", 1)}
			for range beats + 1 {
				select {
				case d.said <- message:
				case <-ctx.Done():
					return
				}
				message = &wire.FromTaskManager{Heartbeat: &wire.Heartbeat{}}
			}
		}()
		return m.Connect(d)
	}
	err := connect(start(t, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond }), 0)
	require.Equal(t, codes.DeadlineExceeded, wire.Code(err))
	m := start(t)
	err = connect(m, 2*maxQueued+10)
	require.Equal(t, codes.ResourceExhausted, wire.Code(err))
	require.ErrorContains(t, err, "did not read")
	nodes, err := m.TaskManagers(context.Background(), &wire.TaskManagersRequest{})
	require.NoError(t, err)
	require.Equal(t, "away", nodes.TaskManagers[0].State)
}
