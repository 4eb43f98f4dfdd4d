package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/precopy"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Before a planned change of workers, the processes of the next attempt copy the rows that they lack, while
// supersteps go on. The state of the queues is saved after that, and the next attempt finds the rows where it needs
// them. Copying never fails the job: what is not copied moves when the next attempt begins.

// workerPrecopy copies rows ahead of the next attempt.
type workerPrecopy struct {
	job  *workerJob
	node *precopy.Node
	run  context.Context // ends with the run
	end  context.CancelFunc
}

// openPrecopy begins to give rows, and to take them when worker 0 says so. Rows move only if another attempt may
// follow that continues from this one.
func (j *workerJob) openPrecopy(c *config) error {
	d := j.deployment
	if d.Mode != wire.RunMode || !d.Keep || j.copies == nil && j.checkpoints == nil {
		return nil
	}
	node, err := precopy.New(precopy.Config{
		Port: j.plane.Port(), Worker: d.Worker, Attempt: uint32(d.Attempt),
		Rows: j.worker.retained, Allocator: cmp.Or(c.rowAllocator, c.allocator), Logger: j.logger.Named("precopy"),
	})
	if err != nil {
		return clusterFault(err)
	}
	p := &workerPrecopy{job: j, node: node}
	p.run, p.end = context.WithCancel(context.Background())
	j.precopy = p
	return nil
}

// runEnded ends what worker 0 is directing, as no attempt may follow.
func (p *workerPrecopy) runEnded() {
	if p != nil {
		p.end()
	}
}

// close ends the copying. The rows that were taken stay in the process for the next attempt.
func (p *workerPrecopy) close() {
	if p == nil {
		return
	}
	p.end()
	p.node.Close()
	p.job.worker.retained.KeepAhead()
}

// direct has processes copy the rows that they lack, and returns when they have done so, when the time for it is
// over, or when ctx or the run ends. It is called on worker 0.
func (p *workerPrecopy) direct(ctx context.Context, m *wire.Precopy) {
	log := p.job.logger.Named("precopy")
	orders, err := p.orders(m)
	if err != nil {
		log.Warn("rows are not copied ahead of the next attempt", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, precopyTime(m))
	defer cancel()
	defer context.AfterFunc(p.run, cancel)()
	began := time.Now()
	outcomes := p.node.Direct(ctx, orders)
	shards, bytes := 0, int64(0)
	for i, o := range outcomes {
		shards, bytes = shards+o.Shards, bytes+o.Bytes
		if o.Left > 0 {
			log.Info("some rows were not copied ahead, and move when the next attempt begins", "to", orders[i].To.Worker, "shards", o.Left, "because", o.Because)
		}
	}
	log.Info("rows were copied ahead of the next attempt", "processes", len(orders), "shards", shards, "size", humanize.Bytes(bytes), "seconds", time.Since(began).Seconds())
}

// orders returns what each process is told to copy.
func (p *workerPrecopy) orders(m *wire.Precopy) (orders []precopy.Order, err error) {
	if err := p.check(m); err != nil {
		return nil, err
	}
	j := p.job
	part := task.Part{Worker: j.deployment.Worker, Slots: slotRanges(j.deployment)}
	for _, to := range m.To {
		o := precopy.Order{To: p.process(to.Worker, to.Address), Within: precopyTime(m)}
		for _, lack := range part.AheadFor(j.plan, m.Of, to.Worker, sharding.Range{Lo: to.Slots.Lo, Hi: to.Slots.Hi}) {
			o.Takes = append(o.Takes, precopy.Take{Queue: lack.Queue, From: p.process(lack.From, ""), Shards: lack.Shards})
		}
		orders = append(orders, o)
	}
	return orders, nil
}

// precopyTime returns the time in which rows are copied.
func precopyTime(m *wire.Precopy) time.Duration { return min(m.Within, precopy.MaxWithin) }

// process returns a process: a worker of this attempt, or another one at an address.
func (p *workerPrecopy) process(worker int, address string) precopy.Process {
	if worker < running(p.job.deployment) {
		address = p.job.plane.Where(worker)
	}
	return precopy.Process{Worker: worker, Address: address}
}

// check returns an error if a request has no meaning.
func (p *workerPrecopy) check(m *wire.Precopy) error {
	if m.Of < 1 || m.Of > p.job.plan.Shards || m.Within <= 0 {
		return fmt.Errorf("the request is for %d slots, of a job with %d shards, within %v", m.Of, p.job.plan.Shards, m.Within)
	}
	var workers []int
	for _, to := range m.To {
		switch {
		case to.Worker < 0 || slices.Contains(workers, to.Worker):
			return fmt.Errorf("the request names worker %d twice, or there is no such worker", to.Worker)
		case to.Slots.Lo < 0 || to.Slots.Hi < to.Slots.Lo || to.Slots.Hi > m.Of:
			return fmt.Errorf("the request gives worker %d the slots %d to %d of %d", to.Worker, to.Slots.Lo, to.Slots.Hi-1, m.Of)
		case to.Worker >= running(p.job.deployment) && to.Address == "":
			return fmt.Errorf("the request gives worker %d no address", to.Worker)
		}
		workers = append(workers, to.Worker)
	}
	return nil
}
