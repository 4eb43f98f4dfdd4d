package engine

import (
	"fmt"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// Collect makes the rows of a dataset available to the caller of Run under a name. Rows returns
// them as values and Result.Batches as batches, in shard order. They are held in memory, and are
// available only if the run succeeds. Everything that a job collects must fit in MemoryBudget.
// The memory that operators hold is counted separately.
func Collect(d *Dataset, name string) {
	if d == nil || d.builder == nil {
		// There is no builder that could record the misuse. The panic ends the job's function
		// and is reported like every other misuse.
		panic(Misuse{Site: userSite(), Err: fmt.Errorf("Collect %q: the dataset is nil", name)})
	}
	b := d.builder
	b.MustBuild(fmt.Sprintf("Collect %q", name), aDataset)
	if b.unusable() || d.poisoned {
		return
	}
	if name == "" {
		b.Errorf("Collect: the result needs a name")
		return
	}
	if site, taken := b.results[name]; taken {
		b.Errorf("Collect: the name %q is taken by the result collected at %s", name, site)
		return
	}
	b.results[name] = userSite()
	store := b.store
	node := NodeID(len(b.graph.Nodes))
	b.Add(Spec{
		Op:       "Collect",
		Name:     name,
		Inputs:   []Port{{From: d}},
		Operator: func() Operator { return &collector{store: store} },
		Sink:     store.add(node, name, d.schema, b.config.shards),
	})
}

// collector is the operator that Collect adds.
type collector struct {
	BaseOperator
	store *resultStore
}

func (o *collector) Open(c *Context) error {
	o.store.limitTo(c.Memory.Limit())
	return nil
}

func (o *collector) Process(c *Context, _, shard int, in Batch, _ Output) error {
	rows := arrowrows.Record(in)
	if s := o.store.stream; s != nil {
		return s.send(c, c.Node.ID, shard, rows)
	}
	return c.Collect(shard, arrowrows.Batch(rows))
}

// resultStore holds the rows of the Collect sinks of one run. All sinks share one limit, which
// is as large as the run's budget. Results do not count in the budgets of slots, for two reasons:
// results are needed after the run, and if a slot's share were too small for what a single
// subtask collects, parallelism would decide whether a job succeeds.
type resultStore struct {
	mu      sync.Mutex
	results []*collected // in the order in which they were added
	limit   int64        // in bytes; 0 until limitTo sets it
	slots   int64        // number of slots of the plan, set before the run
	bytes   int64        // size of the buffers in held
	// stream gets the rows if the caller of Run is in another process; otherwise it is nil. It
	// is set before the run.
	stream stream
	// held are the buffers that are counted in bytes. Batches may share buffers, and
	// a slice of a batch keeps its buffers in memory completely.
	held map[*memory.Buffer]struct{}
}

func newResultStore(limit int64) *resultStore {
	return &resultStore{limit: limit, held: map[*memory.Buffer]struct{}{}}
}

// add adds a result without rows.
func (s *resultStore) add(node plan.NodeID, name string, schema *arrow.Schema, shards int) *collected {
	c := &collected{store: s, node: node, name: name, schema: schema, shards: make([][]arrow.Record, shards)}
	s.results = append(s.results, c)
	return c
}

// limitTo sets the limit, if the options have not set it, to the budget of all slots of the run
// together. slot is the budget of one slot in bytes.
func (s *resultStore) limitTo(slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 {
		s.limit = slot * max(s.slots, 1)
	}
}

// find returns the result with the given name, or nil if there is none.
func (s *resultStore) find(name string) *collected {
	for _, c := range s.results {
		if c.name == name {
			return c
		}
	}
	return nil
}

// release releases all rows.
func (s *resultStore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.results {
		for i, recs := range c.shards {
			for _, rec := range recs {
				rec.Release()
			}
			c.shards[i] = nil
		}
	}
	s.bytes = 0
	clear(s.held)
}

// collected holds the rows of one Collect by shard. It is also the Sink of the Collect, whose
// Abort drops the rows if the run fails.
type collected struct {
	store  *resultStore
	node   plan.NodeID
	name   string
	schema *arrow.Schema
	shards [][]arrow.Record // owned
}

// rows returns the number of rows held.
func (c *collected) rows() int64 {
	var n int64
	for _, recs := range c.shards {
		for _, rec := range recs {
			n += rec.NumRows()
		}
	}
	return n
}

// Overlaps reports that the next attempt of the job may begin while this one still runs, as the job
// manager passes on the rows of one attempt only.
func (c *collected) Overlaps() bool { return true }

// put retains a borrowed batch. It may be called for different shards at the same time.
func (c *collected) put(shard int, rows arrow.Record) error {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	var more int64
	for _, col := range rows.Columns() {
		more += s.hold(col.Data())
	}
	if s.bytes += more; s.bytes > s.limit {
		return fmt.Errorf("the collected results hold %s, more than the memory budget of %s: collect fewer rows, write them to a file, or raise --memory",
			humanize.Bytes(s.bytes), humanize.Bytes(s.limit))
	}
	rows.Retain()
	c.shards[shard] = append(c.shards[shard], rows)
	return nil
}

// hold returns the size in bytes of those buffers of an array that are not yet counted, and marks
// them as counted.
func (s *resultStore) hold(d arrow.ArrayData) int64 {
	var more int64
	for _, buf := range d.Buffers() {
		if buf == nil {
			continue
		}
		if _, counted := s.held[buf]; !counted {
			s.held[buf] = struct{}{}
			more += int64(buf.Cap())
		}
	}
	for _, child := range d.Children() {
		more += s.hold(child)
	}
	return more
}

func (c *collected) Begin() error  { return nil }
func (c *collected) Commit() error { return nil }

// Resume does nothing, as the rows were sent to the client before the workers finished.
func (c *collected) Resume() error { return nil }

// Held returns true: the commit does not make the rows visible, as the caller gets them only when
// the run has succeeded.
func (c *collected) Held() bool { return true }

// Abort drops the rows of all results, as the run has failed.
func (c *collected) Abort() error {
	c.store.release()
	return nil
}
