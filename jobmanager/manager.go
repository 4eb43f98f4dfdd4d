package jobmanager

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/superstep-ml/superstep/internal/diskspace"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Manager is a running job manager. Its methods are safe for concurrent use. The methods of
// wire.JobManager do not check the token if they are called directly and not by gRPC.
type Manager struct {
	config    Config
	log       hclog.Logger
	root      *os.Root
	history   *history
	artifacts *artifacts
	own       programs.Program // the job manager's own executable; zero if it cannot be read
	space     *diskspace.Gauge // measures the free space on the disk of the work directory
	full      fullness
	recorder  *recorder
	ailing    atomic.Pointer[error] // error of the last write of the history
	token     security.Token
	listener  net.Listener
	server    *grpc.Server
	tls       bool      // connections use TLS, and therefore the data plane uses it too
	began     time.Time // time zero of the core

	ctx     context.Context // done when the job manager stops
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // goroutines that do not belong to handlers
	handled sync.WaitGroup // goroutines that handlers started
	done    chan struct{}
	closing sync.Once
	err     error // set before done is closed

	mu       sync.Mutex // guards the following fields, and the fields of job marked "guarded"
	closed   bool       // no more events are passed to the core
	core     *core.Core
	jobs     map[wire.JobID]*job   // jobs whose workers' last output is not stored yet
	outcomes int                   // bound of the total size of a job's outcomes: maxOutcomes, or less in tests
	past     map[wire.JobID]record // records, without Info, of jobs that have ended
	conns    map[int]*conn

	saveRequests int                     // number of the last request for a savepoint
	saving       map[int]chan wire.Saved // by request: where the answer is awaited

	last   int           // number of the last connection of a task manager
	turns  silence.Clock // measures how long clients are disconnected
	totals totals
	files  retention
}

var _ wire.JobManager = (*Manager)(nil)

// New starts a job manager, which serves until Close is called or ctx is done.
func New(ctx context.Context, config Config) (_ *Manager, err error) {
	config, err = config.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		config: config, log: config.Logger, began: config.Now(), done: make(chan struct{}),
		outcomes: maxOutcomes,
		jobs:     make(map[wire.JobID]*job), past: make(map[wire.JobID]record), conns: make(map[int]*conn), saving: make(map[int]chan wire.Saved),
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			m.cancel()
			err = errors.Join(err, m.release())
		}
	}()
	m.space = diskspace.New(config.Dir, config.MinFree)
	if config.DiskFree != nil {
		m.space.Free = config.DiskFree
	}
	if m.own = config.Executable; m.own.Hash == "" {
		if m.own, err = programs.Self(); err != nil {
			m.log.Warn("jobs cannot run on the job manager's own executable", "error", err)
		}
	}
	if err := m.listen(); err != nil {
		return nil, err
	}
	options, err := m.options()
	if err != nil {
		return nil, err
	}
	records, err := m.openStores()
	if err != nil {
		return nil, err
	}
	cordons, err := m.openCordons()
	if err != nil {
		return nil, err
	}
	m.server = grpc.NewServer(options...)
	wire.RegisterJobManager(m.server, m)
	write := func(changes []change) error {
		err := m.history.write(changes)
		m.ailing.Store(&err)
		return err
	}
	m.recorder = newRecorder(write, func(err error) { m.log.Error("the history of jobs cannot be written", "error", err) }, time.Second)
	m.recover(records, cordons)
	m.tasks.Go(m.tick)
	m.tasks.Go(m.watchDisk)
	m.tasks.Go(m.serve)
	context.AfterFunc(m.ctx, func() { m.Close() })
	m.log.Info("job manager serves", "address", m.Address(), "dir", config.Dir, "tls", m.tls, "build", config.Build)
	return m, nil
}

// tokenTimeout is how long a connection may be open before a call with the token is received on
// it. Clients and task managers connect only to make a call, so they send the token with their
// first bytes, after the TLS handshake if there is one.
const tokenTimeout = 2 * wire.ConnectTimeout

// listen listens on the configured address. It returns an error if the address is not safe
// without TLS.
func (m *Manager) listen() error {
	m.tls = m.config.TLS != security.TLSFiles{}
	listener := m.config.Listener
	if listener == nil {
		if err := security.CheckListen(m.config.Listen, m.tls, m.config.Insecure); err != nil {
			return err
		}
		if m.config.Insecure && !m.tls {
			m.log.Warn("INSECURE: anyone on the network can read the token and run programs here", "listen", m.config.Listen)
		}
		var err error
		if listener, err = net.Listen("tcp", m.config.Listen); err != nil {
			return fmt.Errorf("listen for task managers and clients: %w; another job manager may run, choose another address with --listen", err)
		}
	}
	m.listener = security.NewTokenListener(listener, m.config.MaxConnections, tokenTimeout)
	return nil
}

// options returns the options of the gRPC server, including TLS and the check of the token.
func (m *Manager) options() ([]grpc.ServerOption, error) {
	m.token, m.config.Token = m.config.Token, security.Token{}
	if m.token.IsZero() {
		path := m.config.TokenFile
		if tcp, ok := m.listener.Addr().(*net.TCPAddr); ok && path == "" {
			path = security.DefaultTokenFile(tcp.Port)
		}
		if path == "" {
			return nil, errors.New("a job manager needs a token: name its file with --token-file")
		}
		var err error
		if m.token, err = security.CreateToken(path); err != nil {
			return nil, err
		}
		m.log.Info("clients and task managers show the token in this file", "file", path)
	}
	options := append(wire.ServerOptions(), grpc.WaitForHandlers(true))
	options = append(options, security.TokenOptions(m.token)...)
	if m.tls {
		config, err := m.config.TLS.Server()
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	return options, nil
}

// openStores opens the work directory and everything in it, and returns the recorded jobs.
func (m *Manager) openStores() ([]record, error) {
	if err := security.PrivateFolder(m.config.Dir, func(repaired string) { m.log.Warn("the work directory was repaired", "what", repaired) }); err != nil {
		return nil, fmt.Errorf("work directory %s: %w", m.config.Dir, err)
	}
	var err error
	if m.root, err = os.OpenRoot(m.config.Dir); err != nil {
		return nil, fmt.Errorf("open the work directory: %w", err)
	}
	// The history must be opened first, because its lock protects the whole directory.
	if m.history, err = openHistory(m.root, m.log); err != nil {
		return nil, err
	}
	if m.artifacts, err = openArtifacts(filepath.Join(m.config.Dir, "artifacts"), m.config.MaxArtifact, m.config.ArtifactCache); err != nil {
		return nil, err
	}
	records, err := m.history.all()
	if err != nil || len(m.history.damaged) == 0 {
		return records, err
	}
	m.history.doubt(records)
	m.history.doubtOutdated(m.root, records)
	lost, err := m.history.replaceLost(m.root, records, m.config.Now())
	if len(lost) > 0 {
		m.log.Error("jobs of which only their names or files are left are shown as failed", "jobs", len(lost))
	}
	return append(records, lost...), err
}

// recover makes the core and passes the recorded jobs and cordons to it.
func (m *Manager) recover(records []record, cordons map[string]wire.Cordon) {
	infos, doubts := make([]wire.JobInfo, len(records)), make(map[wire.JobID]string)
	for i, r := range records {
		infos[i] = r.Info
		m.past[r.Info.ID] = record{Whole: r.Whole, Events: r.Events, Doubt: r.Doubt}
		if r.Doubt != "" {
			doubts[r.Info.ID] = r.Doubt
		}
	}
	resume := m.resumable(records)
	m.turns = silence.NewClock(core.TickEvery)
	m.turns.Begin(0)
	m.core = core.New(core.Config{
		Cluster: rand.Text(), Build: m.config.Build, Started: m.began,
		Heartbeat: m.config.Heartbeat, Detection: m.config.Detection, Lease: m.config.Lease,
		Settle: m.config.Settle, ScaleInterval: m.config.ScaleInterval, Ageing: m.config.Ageing,
		Policy: m.config.Policy, Keep: m.config.KeepJobs, History: infos, Resume: resume, Doubts: doubts,
		Cordons: cordons,
	})
	m.sweep()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.perform(m.core.Recover())
}

func (m *Manager) serve() {
	if err := m.server.Serve(m.listener); err != nil && m.ctx.Err() == nil {
		m.err = fmt.Errorf("serve task managers and clients: %w", err)
		m.cancel()
	}
}

// Address returns the address on which the job manager serves.
func (m *Manager) Address() string { return m.listener.Addr().String() }

// Token returns the token that clients and task managers must send.
func (m *Manager) Token() security.Token { return m.token }

// Config returns the configuration, including the defaults but without the token.
func (m *Manager) Config() Config { return m.config }

// Done returns a channel that is closed when the job manager has stopped, by itself or by
// Close.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Wait waits until the job manager has stopped. If it stopped for another reason than Close or
// the end of the context, Wait returns the reason.
func (m *Manager) Wait() error {
	<-m.done
	return m.err
}

// Close stops the job manager and waits until all its goroutines have ended. Workers compute on
// until the lease lapses. When a job manager is started again with the same work directory before
// that, running jobs go on. Waiting jobs wait on, and interrupted commits are finished, at any
// time.
func (m *Manager) Close() error {
	m.closing.Do(func() {
		m.cancel()
		m.server.Stop()
		m.handled.Wait()
		m.mu.Lock()
		m.closed = true
		m.mu.Unlock()
		m.tasks.Wait()
		m.recorder.close()
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, j := range m.jobs {
			j.spool.seal()
			j.logs.close()
		}
		m.err = cmp.Or(m.err, m.release())
		m.log.Info("job manager has stopped", "address", m.Address())
		close(m.done)
	})
	return m.Wait()
}

// release closes everything that New has opened.
func (m *Manager) release() (err error) {
	if m.listener != nil {
		if e := m.listener.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if m.history != nil {
		err = errors.Join(err, m.history.close())
	}
	if m.root != nil {
		err = errors.Join(err, m.root.Close())
	}
	return err
}

// clock returns the current time of the core's clock.
func (m *Manager) clock() time.Duration { return m.config.Now().Sub(m.began) }

// If a tick is late by more than standstill, it is logged.
const standstill = time.Second

// tick passes a Tick to the core at regular intervals.
func (m *Manager) tick() {
	ticker := time.NewTicker(core.TickEvery)
	defer ticker.Stop()
	last := m.clock()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
			now := m.clock()
			if gap := now - last; gap >= standstill {
				m.log.Warn("this process did not run for a while, as if it were stopped or its machine had no time for it; the others are given their time again", "seconds", fmt.Sprintf("%.1f", gap.Seconds()))
			}
			last = now
			m.mu.Lock()
			m.decide(core.Tick{})
			m.tellProgress()
			m.cancelAbandoned()
			m.mu.Unlock()
		}
	}
}

// step passes an event to the core and performs the effects.
func (m *Manager) step(e core.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decide(e)
}

// decide does the work of step. The caller holds mu.
func (m *Manager) decide(e core.Event) {
	if !m.closed {
		m.perform(m.core.Step(m.clock(), e))
	}
}
