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

// Result is the result of a successful run: the collected rows, and the record of
// what ran. Call Release once its batches are no longer needed.
type Result struct {
	// Report says what every vertex, subtask, operator and queue did.
	Report *task.Report
	// Plan is the plan that ran.
	Plan *plan.Plan
	// Graph is the graph from which the plan was compiled. It may lack facts that a cluster has
	// resolved.
	Graph *plan.Graph
	// JobID is the job's name on the cluster that ran it, or "" if it ran in this process.
	JobID string
	// Executable is the SHA-256, in hexadecimal, of the program that all workers of a cluster
	// ran, or "" if the job ran in this process. Two builds of the same version may compute
	// different numbers. Two executables with the same hash compute the same numbers.
	Executable string

	store    *resultStore
	released atomic.Bool
	detached bool // the run was left to its cluster: there are no results, and Plan is nil
}

// Names returns the names of the collected results, in the order of the calls of Collect.
func (r *Result) Names() []string {
	names := make([]string, 0, len(r.store.results))
	for _, c := range r.store.results {
		if c.name != "" { // results without a name are the rows of outputs at ClientPath
			names = append(names, c.name)
		}
	}
	return names
}

// Batches returns the rows collected under a name as batches in shard order. The
// batches are borrowed: they are valid until Release, unless they are retained.
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

// Schema returns the schema of the rows collected under a name, which is known
// even if there are no rows.
func (r *Result) Schema(name string) (Schema, error) {
	c, err := r.collected(name)
	if err != nil {
		return Schema{}, err
	}
	return arrowrows.Schema(c.schema), nil
}

// collected returns the result with the given name.
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

// rowsOf returns the result with the given name, or an error if its rows were released.
func (r *Result) rowsOf(name string) (*collected, error) {
	c, err := r.collected(name)
	if err == nil && r.released.Load() {
		err = fmt.Errorf("result %q: it was released already: call Release when all is read", name)
	}
	return c, err
}

// Rows returns the rows collected under a name as values of T, in shard order. If T is a struct,
// its exported fields are read from columns. The tag `column:"name"` names the column; by default
// the column has the field's name in snake case. `column:"-"` leaves a field out. If T is not a
// struct, its values are read from the only column or, if there are several, from the column
// named "value": Rows[int64] reads the result of operators.Count.
//
// Columns of numbers, bools, text, bytes and times are read into numbers, bool, string, []byte
// and time.Time, columns of vectors into []float64 or [n]float64, and nullable columns into
// pointers to these types. The values share no memory with the result.
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

// Accumulator returns the value of an accumulator: the sum of what operators have
// added with Context.Accumulate. Values are summed within each shard, and then along
// the tree over shards, so that the sum is the same at any parallelism. The second
// result is false if nothing was added under the name.
func (r *Result) Accumulator(name string) (float64, bool) {
	for _, a := range r.Report.Accumulators {
		if a.Name == name {
			return a.Value, true
		}
	}
	return 0, false
}

// Queue returns the report of the queue with the given name, or nil if the job has no
// such queue.
func (r *Result) Queue(name string) *task.QueueReport {
	for i := range r.Report.Queues {
		if r.Report.Queues[i].Name == name {
			return &r.Report.Queues[i]
		}
	}
	return nil
}

// Series returns the values that a queue reported under a name, one per superstep.
// The value is NaN for a superstep without a report. Series returns nil if there is
// no such queue or name.
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
