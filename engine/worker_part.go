package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/remote"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// dataPlane connects a worker to the other workers. remotePlane implements it.
type dataPlane interface {
	transport.Network
	Address() string
	Connect(addresses []string) error
	// Abandon makes Close wait only briefly for the other workers.
	Abandon()

	// Port returns the port that accepts connections of all kinds. Where returns the address of
	// another worker's port.
	Port() *peerlink.Port
	Where(worker int) string
}

// planeConfig holds the arguments of openDataPlane.
type planeConfig struct {
	port peerlink.Config
	rows remote.Config
}

// openDataPlane listens for the other workers.
func openDataPlane(c planeConfig) (dataPlane, error) {
	port, err := peerlink.Listen(c.port)
	if err != nil {
		return nil, fmt.Errorf("worker %d: %w", c.rows.Worker, err)
	}
	c.rows.Port = port
	n, err := remote.New(c.rows)
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return remotePlane{n}, nil
}

// remotePlane is a worker's network together with its port.
type remotePlane struct{ *remote.Network }

// Close closes the network, and then the port.
func (p remotePlane) Close() error { return errors.Join(p.Network.Close(), p.Port().Close()) }

// subtasks runs a worker's part of a plan. *task.Worker implements it.
type subtasks interface {
	Prepare() error
	Continue(held [][]byte, ended []string) error
	Run(ctx context.Context) ([]byte, error)
	Commit(outcomes [][]byte) error
	Abort() error
	Fail(err error)
	Close()
}

// partConfig holds the arguments of newPart.
type partConfig struct {
	plan  *plan.Plan
	graph *plan.Graph
	bind  task.Bindings
	env   task.Env
	part  task.Part
}

func newPart(c partConfig) (subtasks, error) {
	w, err := task.NewWorker(c.plan, c.graph, c.bind, c.env, c.part)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// connect opens the data plane and makes the runner of the worker's part of the plan, so that
// the worker can receive rows as soon as other workers know its address.
func (j *workerJob) connect(c *config) error {
	d, environment := j.deployment, &j.worker.env
	secure, err := security.AttemptTLS(d.Credential)
	if err != nil {
		return clusterFault(fmt.Errorf("the credential of the attempt cannot be used: %w", err))
	}
	j.smallPages = c.hugePages()
	breaks := &planeFailure{}
	log := j.logger.Named("data")
	plane, err := environment.open(planeConfig{
		port: peerlink.Config{
			Listen: d.Listen, FirstPort: d.Ports.First, LastPort: d.Ports.Last, Advertise: d.Advertise,
			Job: string(d.Job), Secret: d.Credential.Secret, TLS: secure, Logger: log,
		},
		rows: remote.Config{
			Worker: d.Worker, Workers: len(d.Slots), Attempt: d.Attempt, Detection: d.Silence,
			EdgeName: j.plan.EdgeName, Allocator: c.allocator, Fail: breaks.fail, Logger: log,
		},
	})
	if err != nil {
		return clusterFault(err)
	}
	j.plane = plane
	j.progress = newWorkerProgress(j.plan, d.Worker == 0, j.worker.sender)
	counted := newTraffic(j.plane, len(j.plan.Edges))
	j.progress.sent = counted.take
	j.builder.store.stream = &rowSender{sender: j.worker.sender, mem: c.allocator}
	env := task.Env{
		Allocator: c.allocator, RowAllocator: c.rowAllocator, BatchRows: c.batchRows, MemoryBudget: c.memory, SpillDir: c.spillDir, Disk: c.disk, Logger: c.logger,
		Collector: j.builder.store, Progress: j.progress.event, Opened: j.opened, Advise: j.builder.advise,
		AbandonAfter: environment.stopTimeout, Network: counted, MemoryAhead: j.memory() / 2,
	}
	env.Checkpoints, env.Unsaved = j.states(), j.unsaved(c)
	if j.copies != nil {
		env.Closed, env.Budget = j.copies.closed, j.copies.budgetOf(c.memory)
	}
	if d.Keep {
		env.Retained = j.worker.retained
		env.Retained.KeepFiles(d.RowsDir)
	}
	part, err := environment.part(partConfig{
		plan: j.plan, graph: j.builder.graph, bind: j.builder.bind, env: env,
		part: task.Part{Worker: d.Worker, Slots: slotRanges(d), Join: j.join},
	})
	if err != nil {
		return clusterFault(err)
	}
	j.part = part
	breaks.setNotify(part.Fail)
	return j.openPrecopy(c)
}

// opened is called when the subtasks of a queue in this process have read their rows.
func (j *workerJob) opened(queue string, first int) {
	j.progress.opened(queue, first)
	if j.copies != nil {
		j.copies.opened(queue)
	}
}

// planeFailure passes a failure of the data plane to the runner of the subtasks. It keeps a
// failure that occurs before the runner is made.
type planeFailure struct {
	mu     sync.Mutex
	err    error
	notify func(error)
}

func (p *planeFailure) fail(err error) {
	p.mu.Lock()
	notify := p.notify
	if notify == nil {
		p.err = err
	}
	p.mu.Unlock()
	if notify != nil {
		notify(err)
	}
}

func (p *planeFailure) setNotify(f func(error)) {
	p.mu.Lock()
	p.notify = f
	err := p.err
	p.mu.Unlock()
	if err != nil {
		f(err)
	}
}

// join connects the ranks of a queue through the ports of their workers. Ranks that are all in
// this process need no port.
func (j *workerJob) join(ctx context.Context, queue string, ranks [][]int) (task.Group, error) {
	d := j.deployment
	size := len(slices.Concat(ranks...))
	if len(ranks) == 1 {
		return localGroup{collective.NewLocalGroup(size)}, nil
	}
	g, err := collective.NewTCPGroup(ctx, d.Slots[d.Worker].Lo, collective.TCPConfig{
		Port: j.plane.Port(), Leader: j.plane.Where(0), Size: size, Hosts: ranks,
		Group: queue, Attempt: uint32(d.Attempt), Detection: d.Silence, Logger: j.groupLogger(),
	})
	if err != nil {
		return nil, fmt.Errorf("queue %q: %w", queue, err)
	}
	return g, nil
}

// groupLogger returns the logger of the groups of queues. It logs nothing unless the level is
// debug, as failures of groups are returned as errors, which the worker reports.
func (j *workerJob) groupLogger() hclog.Logger {
	if !j.logger.IsDebug() {
		return hclog.NewNullLogger()
	}
	return j.logger.Named("queue")
}

// localGroup is the group of a queue whose ranks are all in this process. It need not be closed.
type localGroup struct{ *collective.LocalGroup }

func (localGroup) Close() error { return nil }

// running returns how many workers of an attempt run subtasks. The others, which come last, only give the
// rows and states that their processes have kept.
func running(d *wire.Deployment) int { return task.Running(slotRanges(d)) }

// slotRanges returns the range of subtask indices of each worker.
func slotRanges(d *wire.Deployment) []sharding.Range {
	ranges := make([]sharding.Range, len(d.Slots))
	for i, s := range d.Slots {
		ranges[i] = sharding.Range{Lo: s.Lo, Hi: s.Hi}
	}
	return ranges
}
