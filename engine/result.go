package engine

import (
	"fmt"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// Result is what a successful run returns: the collected rows, and the record of
// what ran. Release it once its batches are no longer needed.
type Result struct {
	// Report says what every vertex, subtask, operator and queue did.
	Report *task.Report
	// Plan is the plan that ran.
	Plan *plan.Plan
	// Graph is the graph that the plan was compiled from. It has no facts if a cluster resolved
	// them.
	Graph *plan.Graph
	// JobID is the job's name on the cluster that ran it, "" if it ran in this process.
	JobID string
	// Executable is the SHA-256, in hex, of the program that all workers of a cluster ran; ""
	// if the job ran in this process. Builds of one version may compute different numbers;
	// builds of one hash do not.
	Executable string

	store    *resultStore
	released atomic.Bool
	detached bool // nothing of the run came back; Plan is nil
}

// Names returns the names of the collected results, in the order collected.
func (r *Result) Names() []string {
	names := make([]string, 0, len(r.store.results))
	for _, c := range r.store.results {
		if c.name != "" { // results without a name held rows on their way to a sink
			names = append(names, c.name)
		}
	}
	return names
}

// Batches returns the rows collected under a name as batches in shard order. The
// batches are borrowed: they are good until Release, unless retained.
func (r *Result) Batches(name string) ([]Batch, error) {
	c, err := r.rowsOf(name)
	if err != nil {
		return nil, err
	}
	var all []Batch
	for _, shard := range c.shards {
		all = append(all, arrowrows.Batches(shard)...)
	}
	return all, nil
}

// Schema returns the columns of the rows collected under a name, which are known
// even where there are no rows.
func (r *Result) Schema(name string) (Schema, error) {
	c, err := r.collected(name)
	if err != nil {
		return Schema{}, err
	}
	return arrowrows.Schema(c.schema), nil
}

// collected returns the result of that name.
func (r *Result) collected(name string) (*collected, error) {
	if c := r.store.find(name); c != nil {
		return c, nil
	}
	if r.detached {
		return nil, fmt.Errorf("no result %q is here: the job %s was left to its cluster (--detach)", name, r.JobID)
	}
	names := r.Names()
	if near := spelling.Near(name, names); len(near) > 0 {
		return nil, fmt.Errorf("no result %q was collected; did you mean %q?", name, near[0])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no result %q was collected: the job collects none", name)
	}
	sort.Strings(names)
	return nil, fmt.Errorf("no result %q was collected (results: %s)", name, strings.Join(names, ", "))
}

// rowsOf returns the result of that name, or an error if its rows were released.
func (r *Result) rowsOf(name string) (*collected, error) {
	c, err := r.collected(name)
	if err == nil && r.released.Load() {
		err = fmt.Errorf("result %q: it was released already: call Release when all is read", name)
	}
	return c, err
}

// Rows returns the rows collected under a name as values of T, in shard order. If T is a struct,
// its exported fields are columns. The tag `column:"name"` names the column; by default it has
// the field's name in snake case. `column:"-"` leaves a field out. Any other T is the only column,
// or the column named "value" if there are several: Rows[int64] reads the result of
// operators.Count.
// Numbers, bool, string, []byte, time.Time and vectors as []float64 or [n]float64 are read into
// fields of the same types, nullable columns into pointers. The values share nothing with the
// result.
func Rows[T any](r *Result, name string) ([]T, error) {
	c, err := r.rowsOf(name)
	if err != nil {
		return nil, err
	}
	codec, err := batch.NewCodec[T]()
	if err != nil {
		return nil, fmt.Errorf("result %q: %w", name, err)
	}
	reader, err := codec.Bind(c.schema)
	if err != nil {
		return nil, fmt.Errorf("result %q: %w", name, err)
	}
	reader.SetCopy(true)
	rows := make([]T, c.rows())
	next := 0
	for shard, recs := range c.shards {
		for _, rec := range recs {
			if err := reader.Reset(rec); err != nil {
				return nil, fmt.Errorf("result %q, shard %d: %w", name, shard, err)
			}
			for i := range reader.Len() {
				if err := reader.Read(i, &rows[next]); err != nil {
					return nil, fmt.Errorf("result %q, shard %d: %w", name, shard, err)
				}
				next++
			}
		}
	}
	return rows, nil
}

// Accumulator returns the folded value of an accumulator. It is the sum of what
// operators added with Context.Accumulate, per shard and then up the tree over
// the shards, so that it is the same at any parallelism. The second value is
// false where nothing was added under the name.
func (r *Result) Accumulator(name string) (float64, bool) {
	for _, a := range r.Report.Accumulators {
		if a.Name == name {
			return a.Value, true
		}
	}
	return 0, false
}

// Queue returns how the queue of that name ran, nil where the job has none.
func (r *Result) Queue(name string) *task.QueueReport {
	for i := range r.Report.Queues {
		if r.Report.Queues[i].Name == name {
			return &r.Report.Queues[i]
		}
	}
	return nil
}

// Series returns the values that a queue reported under a name, one per
// superstep, NaN where a superstep reported none; nil where there is no such
// queue or name.
func (r *Result) Series(queue, name string) []float64 {
	q := r.Queue(queue)
	if q == nil {
		return nil
	}
	for _, s := range q.Series {
		if s.Name == name {
			return s.Values
		}
	}
	return nil
}

// Release releases the collected batches. It may be called more than once.
func (r *Result) Release() {
	if r != nil {
		r.released.Store(true)
		r.store.release()
	}
}
