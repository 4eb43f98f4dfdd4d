package taskmanager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/internal/diskspace"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// Run offers the slots of this machine to the job manager until the context is done, or until the
// command of a preemption notice says that the machine is taken away. Then it stays for up to
// Config.DrainWithin while its jobs go on elsewhere. It returns a *RefusedError if the job manager
// refuses the task manager for good. While there is no connection to the job manager, Run tries to
// connect again. When Run returns, the workers have ended and their directories are removed.
func Run(ctx context.Context, config Config) (err error) {
	c, err := config.complete()
	if err != nil {
		return err
	}
	own, err := programs.Self()
	if err != nil {
		return fmt.Errorf("task manager: %w", err)
	}
	dir, err := openWorkDir(c.Dir, c.Logger)
	if err != nil {
		return fmt.Errorf("task manager: %w", err)
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	if c.Name == "" {
		c.Name = c.Host + "-" + dir.id[:6]
	}
	if c.Seed == 0 {
		c.Seed = seed()
	}
	if c.Launcher == nil {
		l := newLauncher()
		defer l.Close()
		c.Launcher = l
	}
	conn, err := grpc.NewClient(c.JobManager, append(wire.DialOptions(), c.DialOptions...)...)
	if err != nil {
		return fmt.Errorf("task manager: job manager %s: %w", c.JobManager, err)
	}
	defer conn.Close()
	client := wire.NewClient(conn)
	artifacts, err := openArtifacts(dir.artifacts(), c.CacheLimit, c.Near, fetcher(client))
	if err != nil {
		return fmt.Errorf("task manager: %w", err)
	}
	defer artifacts.close()
	here, err := openPresence(&c)
	if err != nil {
		c.Logger.Warn("the job manager will notice the end of this process later than it could", "error", err)
	}
	defer here.close()
	m := &manager{
		workerEnv:   workerEnv{Config: c, own: own, table: core.LifeTable(), dir: dir, client: client, artifacts: artifacts, outbox: core.NewOutbox(), launcher: c.Launcher, kept: newPool(c), rows: openLeftRows(dir.rows(), c.Logger)},
		incarnation: rand.Text(),
		presence:    here,
		space:       diskspace.New(c.Dir, c.MinFree),
		stops:       make(chan struct{}),
		renewed:     make(chan struct{}, 1),
		ended:       make(chan struct{}, 1),
		changed:     make(chan struct{}, 1),
		workers:     map[wire.WorkerRef]*worker{},
	}
	m.kept.changed = m.keptChange
	return m.run(ctx)
}

// seed returns a random seed.
func seed() uint64 {
	n, err := rand.Int(rand.Reader, new(big.Int).SetUint64(1<<63))
	if err != nil {
		return 1
	}
	return n.Uint64() + 1
}

// fetcher returns a source that fetches executables from the job manager.
func fetcher(client *wire.Client) source {
	return func(ctx context.Context, hash string) (func() (*wire.Chunk, error), error) {
		stream, err := client.FetchArtifact(ctx, &wire.FetchRequest{Hash: hash})
		if err != nil {
			return nil, err
		}
		return stream.Recv, nil
	}
}

// manager is the running task manager. It has the workers and the state of the connection to
// the job manager.
type manager struct {
	workerEnv
	incarnation string
	presence    *presence // nil if it has no port
	space       *diskspace.Gauge
	tasks       sync.WaitGroup // goroutines of the workers
	stops       chan struct{}  // closed when the task manager stops
	broke       string         // why the previous connection ended; used only by converse
	renewed     chan struct{}  // holds a token when a registration has renewed the lease
	ended       chan struct{}  // holds a token as changed does, for sweepRows
	changed     chan struct{}  // holds a token when a worker has ended, or the task manager has registered

	mu       sync.Mutex
	workers  map[wire.WorkerRef]*worker
	stopping bool
	cluster  string // the job manager's incarnation; "" before the first registration
	lease    core.Lease
	leased   bool                    // the lease runs: it was renewed and has not lapsed
	cut      context.CancelCauseFunc // breaks the current connection; nil if there is none
	joined   bool                    // the task manager is registered on the current connection
	ailing   string                  // why the task manager takes no work, as the last heartbeat said; used only by sendLoop
}

// leaveTimeout bounds how long the sending of the Leave may take.
const leaveTimeout = 2 * time.Second

// run maintains the connection until the context is done, or the machine is to be taken away. Then
// it hands the jobs over, ends the workers that are left, sends the Leave, and closes the connection.
func (m *manager) run(ctx context.Context) error {
	talking, stopTalking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTalking()
	ended := make(chan error, 1)
	var tasks sync.WaitGroup
	tasks.Go(func() { ended <- m.converse(talking) })
	tasks.Go(func() { m.watchLease(talking) })
	tasks.Go(func() { m.sweepRows(talking) })
	noticed := make(chan struct{})
	watching, stopWatching := context.WithCancel(talking)
	if m.PreemptionNotice != "" {
		tasks.Go(func() {
			if m.awaitNotice(watching) {
				close(noticed)
			}
		})
	}
	defer tasks.Wait()
	defer stopTalking()
	defer stopWatching()

	why := ""
	select {
	case err := <-ended: // the job manager has refused this task manager for good
		m.stop()
		return err
	case <-ctx.Done():
		why = whyDone(ctx)
	case <-noticed:
		why = "preemption notice"
	}
	stopWatching()
	m.Logger.Info("stopping", "why", why)
	refused, err := m.handOver(why, ended)
	m.stop()
	if refused {
		return err
	}
	m.outbox.RequestLeave("was stopped (" + why + ")")
	patience := time.NewTimer(leaveTimeout)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
	return nil
}

// stop makes the task manager refuse further work, kills the workers, and waits until they have
// ended.
func (m *manager) stop() {
	m.mu.Lock()
	m.stopping = true
	close(m.stops)
	if m.cut != nil && !m.joined {
		m.cut(errStopping)
	}
	m.mu.Unlock()
	m.killAll(wire.LostFailure, "the task manager was stopped")
	m.kept.close()
	m.tasks.Wait()
	m.kept.wait()
}

var errStopping = errors.New("the task manager stops")

// killAll kills all workers and kept processes.
func (m *manager) killAll(kind wire.FailureKind, reason string) {
	m.mu.Lock()
	all := make([]*worker, 0, len(m.workers))
	for _, w := range m.workers {
		all = append(all, w)
	}
	m.mu.Unlock()
	for _, w := range all {
		w.give(order{stop: &wire.Failure{Kind: kind, Message: reason}})
	}
	m.kept.killAll()
}

// deploy starts a worker, in the process that an earlier attempt of its job has kept if there is one.
func (m *manager) deploy(d *wire.Deployment) {
	if f := unfit(d); f != nil {
		m.refuse(d.WorkerRef, f)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.stopping:
		m.refuse(d.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "the task manager was stopped"})
		return
	case m.workers[d.WorkerRef] != nil:
		m.Logger.Warn("a worker was deployed twice", "worker", d.WorkerRef.String())
		return
	}
	var c *child
	if d.Mode == wire.RunMode {
		c = m.kept.take(d.Job, d.Spec.Artifact)
	}
	w := newWorker(&m.workerEnv, d, c)
	m.workers[d.WorkerRef] = w
	m.kept.makeRoom(m.Slots - m.used())
	m.outbox.Deployed(d.WorkerRef)
	m.tasks.Go(func() {
		w.run()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.workers, w.ref)
		m.change()
	})
}

// used returns how many slots the workers have. The caller holds mu.
func (m *manager) used() (n int) {
	for _, w := range m.workers {
		if !w.freed.Load() {
			n += w.slots()
		}
	}
	return n
}

// refuse reports Ended with failure f, which may be nil, for a worker that does not exist. It
// is the answer to a deployment that failed or to a command.
func (m *manager) refuse(ref wire.WorkerRef, f *wire.Failure) {
	if f != nil {
		f.Worker, f.TaskManager, f.ExitCode = ref.Worker, m.Name, -1
	}
	m.outbox.Put(wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{Failure: f}})
}

// unfit returns a failure that says why a deployment is not valid, or nil if it is valid.
func unfit(d *wire.Deployment) *wire.Failure {
	because := func(format string, args ...any) *wire.Failure {
		return &wire.Failure{Kind: wire.ClusterFailure, Message: "the job manager deployed a worker wrongly: " + fmt.Sprintf(format, args...)}
	}
	switch {
	case d.Worker < 0 || d.Worker >= len(d.Slots):
		return because("number %d of %d", d.Worker, len(d.Slots))
	case d.Slots[d.Worker].Hi < d.Slots[d.Worker].Lo || d.Slots[d.Worker].Hi == d.Slots[d.Worker].Lo && d.Mode != wire.RunMode:
		return because("it has slots %d to %d", d.Slots[d.Worker].Lo, d.Slots[d.Worker].Hi)
	case d.Holds < 0:
		return because("it holds %d slots", d.Holds)
	case programs.CheckHash(d.Spec.Artifact) != nil:
		return because("of the executable, %v", programs.CheckHash(d.Spec.Artifact))
	case d.Mode != wire.RunMode && d.Mode != wire.ResolveMode && d.Mode != wire.CommitMode:
		return because("mode %d is unknown", d.Mode)
	}
	return nil
}

// command passes a command on to its worker.
func (m *manager) command(c *wire.WorkerCommand) {
	m.mu.Lock()
	w := m.workers[c.WorkerRef]
	m.mu.Unlock()
	switch {
	case w != nil:
		w.give(order{command: c})
	case m.kept.command(c):
	case c.Kill != nil || c.Cancel != nil || c.Exit != nil:
		m.refuse(c.WorkerRef, nil)
	default:
		m.refuse(c.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "the task manager does not have the worker any more"})
	}
}

// registration returns the message that registers the task manager.
func (m *manager) registration() *wire.Register {
	r := &wire.Register{
		Version: wire.Version, Build: wire.Build(),
		ID: m.dir.id, Incarnation: m.incarnation, Name: m.Name, Host: m.Advertise, PID: os.Getpid(),
		Slots: m.Slots, Memory: m.Memory, Platform: m.own.Platform, Executable: m.own.Hash, Ailing: m.space.Full(),
		Broke: m.broke, Running: m.outbox.Reconnect(), Kept: m.kept.refs(), Leaving: m.outbox.Announcement(),
	}
	if m.presence != nil {
		r.Presence, r.PresenceKey = m.presence.address, m.presence.key
	}
	return r
}
