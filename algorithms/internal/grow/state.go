package grow

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Grower adds the stages that grow trees to a queue. It is immutable and shared by all
// subtasks.
type Grower struct {
	p          Params
	packedFrom int64 // smallest number of rows of the job for which histograms may use packed pairs
	passBytes  int   // largest size of the histograms of a pass, see pass.go
	keptBytes  int   // largest size of the histograms kept from pass to pass
}

// New returns a Grower.
func New(p Params) *Grower { return &Grower{p, packedFrom, passBytes, keptBytes} }

// These are the keys of the queue's objects.
var (
	states   = shared.Scratch[*State]("grow")
	maxima   = shared.Scratch[[]float64]("grow.maxima")
	spreads  = shared.Scratch[[]int64]("grow.spreads")
	sums     = shared.Scratch[[]int64]("grow.sums")
	ownSums  = shared.Scratch[[]int64]("grow.own")
	blocks   = shared.Scratch[[]int]("grow.blocks")
	found    = shared.Scratch[[]int64]("grow.found")
	allFound = shared.Scratch[[]int64]("grow.best")
	counts   = shared.Scratch[[]int64]("grow.counts")
	leafSums = shared.Scratch[[]int64]("grow.leaves")
)

// State is the state of a subtask. Only the subtask's goroutine may use it.
type State struct {
	p                    Params
	data                 *bins.Data
	slots                *slots
	all                  int64 // number of rows of the job
	large                bool  // whether all is at least packedFrom, so that histograms may use packed pairs
	passBytes, keptBytes int
	task                 int
	tasks                int
	width                int  // words of a sum: gradient, hessian and, if rows are counted, the number of rows
	learns               bool // whether LearnCategories is set and applies to a feature, so that nodes have sums of squares
	usable               []int32

	jobs  []*job
	trees int // the batch is jobs[:trees]
	phase phase

	pending  []build // histograms to compute in later passes, in order
	building []build // histograms of this pass
	splits   []task  // nodes that were split in this pass
	kept     int     // number of open leaves of all jobs; if it is too large, further leaves do not keep their histograms
	free     [][]int64

	search  *searcher
	chooser chooser
	looked  []int32 // buffer: features of a node
	allowed []int32
	groups  [][]bool // groups[i][f] is set if the interaction group i contains the feature Layout.Features[f]

	work    []int64 // buffer: sums of a block
	ones    []int64
	spare   []int32
	sparse  *byFeature
	slotted slotSums
	router  router
	copies  [][]byte // contiguous copies of columns, see column
	copied  int      // size of copies in bytes
	read    []int    // read[c] is the number of rows that were partitioned by column c
	picked  []int32
	routed  []int32
	maxima  []float64
	spreads []int64
	buffers struct {
		sums, own, found, counts, leaves []int64
		blocks                           []int
	}
}

// phase is a phase of the growth of a batch.
type phase int

const (
	starting phase = iota // the sums of the roots are not known yet
	growing
	grownUp
)

// task is a node of a job.
type task struct{ job, node int32 }

// build says that the histogram of a node must be computed. If sibling is not −1, the histogram
// of the node sibling is then computed as the histogram of the parent minus the histogram of
// the node.
type build struct {
	task
	sibling int32
	search  bool // whether to search the best split of the node itself
}

// Open creates the state of a subtask for its rows in data. Every subtask calls Open before its
// first batch; a later call replaces the state.
func (g *Grower) Open(ctx *comqueue.ComContext, data *bins.Data) (*State, error) {
	if err := g.fits(data); err != nil {
		return nil, err
	}
	s := &State{p: g.p, data: data, task: ctx.TaskID(), tasks: ctx.NumTask()}
	s.all = data.Facts.Rows
	s.large, s.passBytes, s.keptBytes = s.all >= g.packedFrom, g.passBytes, g.keptBytes
	s.slots = newSlots(data.Layout, s.tasks, s.task)
	s.usable, s.learns = usable(data.Layout), g.learnsCategories(data.Layout)
	s.width = 2
	if g.p.MinRows > 1 {
		s.width = 3
	}
	s.search = newSearcher(&s.p, data.Layout)
	s.work = make([]int64, 2*kernel.HistogramColumns*kernel.HistogramStride)
	for _, group := range g.p.Interaction {
		member := make([]bool, len(data.Layout.Features))
		for i := range data.Layout.Features {
			for _, f := range group {
				member[i] = member[i] || data.Layout.Features[i].Number == f
			}
		}
		s.groups = append(s.groups, member)
	}
	states.Put(ctx, s)
	maxima.Put(ctx, nil)
	spreads.Put(ctx, nil)
	leafSums.Put(ctx, nil)
	s.put(ctx)
	return s, nil
}

// fits returns an error if the parameters and the data do not match, or if the data are too
// large.
func (g *Grower) fits(data *bins.Data) error {
	if data.Rows > math.MaxInt32 {
		return fmt.Errorf("grow: a subtask has %d rows, at most %d are allowed: use more subtasks", data.Rows, math.MaxInt32)
	}
	if n := len(data.Layout.Features); n > maxFeatures {
		return fmt.Errorf("grow: there are %d features, at most %d are allowed", n, maxFeatures)
	}
	if m := g.p.Monotone; m != nil {
		for i := range data.Layout.Features {
			f := &data.Layout.Features[i]
			switch {
			case f.Number >= len(m):
				return fmt.Errorf("grow: there are %d monotone constraints, and feature %q has number %d", len(m), f.Name, f.Number)
			case f.Categorical && m[f.Number] != 0:
				return fmt.Errorf("grow: feature %q is categorical and has a monotone constraint", f.Name)
			}
		}
	}
	return nil
}

// Lookup returns the state of the subtask, if Open has been called.
func (g *Grower) Lookup(ctx *comqueue.ComContext) (*State, bool) { return states.Lookup(ctx) }

// State returns the state of the subtask. Open must have been called.
func (g *Grower) State(ctx *comqueue.ComContext) *State { return states.Get(ctx) }

// Begin starts a batch of the given number of trees and discards the previous batch. All
// subtasks must begin the same batches. first is the number of the batch's first tree in the
// ensemble. Draws of features depend on the number of a tree, not on its batch.
func (s *State) Begin(first, trees int) {
	if trees < 1 {
		panic(fmt.Sprintf("grow: a batch of %d trees", trees))
	}
	s.trees = trees
	for len(s.jobs) < trees {
		s.jobs = append(s.jobs, newJob())
	}
	for k, j := range s.active() {
		j.number = first + k
		j.target.reset(s.data.Rows, s.large)
		for i := range j.nodes {
			s.release(&j.nodes[i])
		}
		j.nodes, j.totals, j.leaves = j.nodes[:0], j.totals[:0], 0
		j.bagged, j.listed = false, false
		j.queue.Nodes, j.turns, j.last = j.queue.Nodes[:0], 0, s.p.MaxLeaves == 1
		s.drawFeatures(j)
	}
	s.pending, s.building, s.splits, s.kept = s.pending[:0], s.building[:0], s.splits[:0], 0
	s.phase = starting
}

// Target returns the Target of tree k of the batch, in which the caller sets gradients and
// hessians.
func (s *State) Target(k int) *Target { return &s.active()[k].target }

// SetRows sets the bag of tree k on this subtask: the rows on which the tree grows. rows must
// be strictly ascending. SetRows copies rows. If it is not called, every row is in the bag.
func (s *State) SetRows(k int, rows []int32) {
	j := s.active()[k]
	j.rows = append(j.rows[:0], rows...)
	j.bagged = true
}

// active returns the jobs of the batch.
func (s *State) active() []*job { return s.jobs[:s.trees] }

// countsRows reports whether sums include the number of rows.
func (s *State) countsRows() bool { return s.width > 2 }

// sumsOf returns memory for a histogram of the features that the subtask owns. The contents are
// arbitrary.
func (s *State) sumsOf() []int64 {
	n := s.slots.size(s.task) * s.width
	if k := len(s.free); k > 0 {
		v := s.free[k-1]
		s.free = s.free[:k-1]
		return v
	}
	return make([]int64, n)
}

// release discards a node's histogram, so that sumsOf can reuse its memory.
func (s *State) release(v *node) {
	if v.sums != nil {
		s.free = append(s.free, v.sums)
		v.sums = nil
	}
}

// scorerOf returns a scorer for the splits of a node.
func (s *State) scorerOf(j *job, v *node) scorer {
	sc := newScorer(&s.p, j.unit, s.width)
	sc.lo, sc.hi = v.lo, v.hi
	return sc
}
