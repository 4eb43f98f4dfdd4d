package forest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/internal/treecode"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// batchTrees is the number of trees that are grown in a superstep. It is large enough that
// several subtasks get about the same number of trees, and small enough that reports are
// frequent.
const batchTrees = 24

// Train trains a forest on the rows of d and returns the model as a dataset of one row, whose
// column "model" has the bytes of Model.Encode. For a classification there is a second column,
// which is null and has the type of the labels.
//
// The queue is named "forest" and has a superstep for each batch of trees. It reports the
// numbers "trees" and "nodes" of all trees so far, and with OOBScore the "oob score" and "oob
// loss" of these trees. Errors about the parameters, or about the columns that they name, are
// reported when the job is built, with the caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "forest.Train"
	b, refused := model.Begin(op, d, p.Validate())
	if refused != nil {
		return refused
	}
	p = p.withDefaults(b.Seed())
	g := growing{params: p, schema: arrowrows.Arrow(d.Schema())}
	t, err := bins.Check(op, d, p.columns(), p.label(), bins.Options{MaxBins: p.MaxBins, AbsentIsZero: p.AbsentIsZero})
	var label arrow.DataType
	if err == nil && p.Task == Classification {
		label, err = signature.ClassColumn(g.schema, p.LabelCol)
	}
	if err == nil && p.Start != nil {
		err = p.fits()
	}
	if err != nil {
		return model.Refuse(b, op, err)
	}
	t.State = func(*bins.Facts) int64 { return bytesPerRow }
	g.table = t
	if p.Start != nil {
		g.first = len(p.Start.Trees.Trees)
	}
	q := t.Init(comqueue.New(b, Kind)).
		Init(g.open).Begin(g.beginKeeping).Init(g.join).
		Add(comqueue.Named("extent", comqueue.Do(g.tell))).
		Add(comqueue.AllReduce(extents, comqueue.Max, comqueue.Exact())).
		Add(comqueue.Named("pack", comqueue.Do(g.pack))).
		Add(comqueue.AllGather(packed, joined)).
		Add(comqueue.Named("draw", comqueue.Do(g.draw))).
		Add(comqueue.AllReduce(drawing, comqueue.Exact())).
		Add(comqueue.Named("grow", comqueue.Do(g.grow))).
		Add(comqueue.Repeat(maxPasses, over,
			comqueue.Named("ask", comqueue.Do(ask)),
			comqueue.AllReduce(asked, comqueue.Exact()),
			comqueue.AllReduce(ranges, comqueue.Max, comqueue.Exact()),
			comqueue.AllGather(sent, received),
			comqueue.Named("answer", comqueue.Do(answer)),
			comqueue.AllGather(subtrees, allSubtrees),
			comqueue.Named("attach", comqueue.Do(attach)),
		))
	if p.OOBScore {
		q.Add(comqueue.AllGather(grown, all))
	} else {
		q.Add(comqueue.Gather(grown, all))
	}
	q.Add(comqueue.Named("collect", comqueue.Do(g.collect)))
	if p.OOBScore {
		q.Add(comqueue.Named("out of bag", comqueue.ForEachShard(oobSums, g.measure))).
			Add(comqueue.AllReduce(oobSums)).
			Add(comqueue.Named("report", comqueue.Do(g.report)))
	}
	return q.SetMaxIter((p.NumTrees - g.first + batchTrees - 1) / batchTrees).
		CloseOnNode0(signature.Closer(label, g.finish)).
		Exec()
}

// bytesPerRow is the number of bytes that growing trees takes for each row of the subtask: the
// weight and the label as integers, an entry of a tree, and working memory to sort the entry.
const bytesPerRow = 4 + 8 + 2*16

// maxPasses is larger than the number of passes that trees can take. Every pass decides about
// at least one node, or tries further features for it.
const maxPasses = 1 << 40

// These are the keys of the queue's objects.
var (
	states  = shared.Scratch[*state]("forest")
	extents = shared.Scratch[[]float64]("extent")
	packed  = shared.Scratch[[]uint8]("rows of the subtask")
	joined  = shared.Scratch[[]uint8]("rows of all subtasks")
	drawing = shared.Scratch[[]int64]("subtasks of which trees draw rows")
	grown   = shared.Scratch[[]uint8]("trees of the subtask")
	all     = shared.Scratch[[]uint8]("trees of all subtasks")
	oobSums = shared.Scratch[[]float64]("out of bag")

	// The following keys are used in passes of levels.
	asked       = shared.Scratch[[]int64]("sums of bins")
	ranges      = shared.Scratch[[]float64]("ranges of labels")
	sent        = shared.Scratch[[]uint8]("rows of small nodes")
	received    = shared.Scratch[[]uint8]("rows of small nodes of all subtasks")
	subtrees    = shared.Scratch[[]uint8]("subtrees of the subtask")
	allSubtrees = shared.Scratch[[]uint8]("subtrees of all subtasks")
)

// state is the state of a training on one subtask.
type state struct {
	*progress // the part that is checkpointed; see kept.go
	data      *bins.Data
	loose     [][]byte // the columns of loose features, see spread
	extent    extent   // extent of the subtask's rows
	sampler   *sampler
	rows      *table  // the rows of builder or levels; nil before either is made
	times     []uint8 // memory for draw
	drawing   []int64
	// One of builder and levels grows trees: builder if the subtask has all rows, and levels
	// otherwise.
	builder *builder
	levels  *levels
	sent    []uint8   // encoded trees of this superstep for the other subtasks
	tree    tree.Tree // memory for the tree that is being decoded
	written *written  // used on subtask 0 only
	bag     *bag
}

// growing has the parameters of a training; its methods are the stages of the queue.
type growing struct {
	params Params
	table  bins.Table
	schema *arrow.Schema
	first  int // number of trees of Start
}

// open opens the subtask's rows and makes its state.
func (g growing) open(ctx *comqueue.ComContext) error {
	data, err := g.table.Open(ctx)
	if err != nil {
		return err
	}
	if err := g.check(data); err != nil {
		return err
	}
	factors, err := g.params.factors(data.Facts)
	if err != nil {
		return err
	}
	s := &state{data: data, loose: spread(data), sampler: newSampler(g.params)}
	s.extent = extentOf(data.Label, data.Weight, factors, g.params.centre(data.Facts))
	states.Put(ctx, s)
	extents.Put(ctx, make([]float64, len(s.extent)+1))
	for _, key := range []shared.Key[[]uint8]{sent, subtrees} {
		key.Put(ctx, nil)
	}
	asked.Put(ctx, nil)
	ranges.Put(ctx, nil)
	if g.params.OOBScore {
		oobSums.Put(ctx, make([]float64, oobParts))
	}
	return nil
}

// tell writes the extent of the subtask's rows, and whether the subtask has no table yet, to
// the object that all subtasks merge.
func (g growing) tell(ctx *comqueue.ComContext) error {
	s, all := states.Get(ctx), extents.Get(ctx)
	at := copy(all, s.extent[:])
	if all[at] = 0; s.rows == nil {
		all[at] = 1
	}
	return nil
}

// copies reports whether each subtask has a copy of all rows.
func (g growing) copies(ctx *comqueue.ComContext, d *bins.Data) bool {
	return ctx.NumTask() > 1 && copied(d.Layout, d.Facts.Rows) <= g.params.Memory
}

// pack encodes the subtask's rows if copies fit in memory and at least one subtask has no
// table.
func (g growing) pack(ctx *comqueue.ComContext) error {
	s, all := states.Get(ctx), extents.Get(ctx)
	packed.Put(ctx, nil)
	if all[len(all)-1] > 0 && g.copies(ctx, s.data) {
		packed.Put(ctx, pack(s.data, s.loose))
	}
	return nil
}

// check returns an error if the rows do not suit the parameters.
func (g growing) check(d *bins.Data) error {
	f := d.Facts
	switch {
	case f.Declared == 0:
		return errors.New("there are no features")
	case g.params.Criterion == Poisson && f.LabelMin < 0:
		return fmt.Errorf("column %q: the label is %v: the poisson criterion is for counts and takes labels of 0 or more", g.params.LabelCol, f.LabelMin)
	}
	if err := g.params.enough(f); err != nil || g.params.Start == nil {
		return err
	}
	return g.same(signature.InputsOf(g.params.VectorCol, g.params.FeatureCols, g.schema, f.Declared), ensemble(d), f)
}

// grow grows every NumTask-th tree of this superstep if the subtask has all rows. Otherwise it
// begins the batch of all trees.
func (g growing) grow(ctx *comqueue.ComContext) error {
	s := states.Get(ctx)
	if err := g.settle(ctx, s); err != nil {
		return err
	}
	if s.levels != nil {
		grown.Put(ctx, nil)
		s.levels.begin(s.Trees, g.until(s))
		return nil
	}
	s.sent = s.sent[:0]
	for n := s.Trees + ctx.TaskID(); n < g.until(s); n += ctx.NumTask() {
		t := s.builder.grow(ctx.Context(), n)
		if err := ctx.Context().Err(); err != nil {
			return err
		}
		if ctx.NumTask() > 1 {
			s.sent = treecode.Append(s.sent, &t)
		} else if err := s.take(n, &t); err != nil {
			return err
		}
	}
	grown.Put(ctx, s.sent)
	return nil
}

// take adds the grown tree t with the given number to the model. Trees must come in the order
// of their numbers. t is borrowed until take returns.
func (s *state) take(number int, t *tree.Tree) error {
	if s.written != nil {
		if err := s.written.add(t); err != nil {
			return err
		}
	}
	if s.bag != nil {
		return s.bag.add(number, t)
	}
	return nil
}

// until returns the number of trees after this superstep.
func (g growing) until(s *state) int { return min(s.Trees+batchTrees, g.params.NumTrees) }

// build makes the builder from the rows of all subtasks, or levels from the rows of this
// subtask.
func (g growing) build(ctx *comqueue.ComContext, s *state) error {
	d := s.data
	rows := &gathered{spans: d.Shards, label: d.Label, weight: d.Weight, blocks: d.Blocks, wide: d.Wide, loose: s.loose}
	if g.copies(ctx, d) {
		var err error
		if rows, err = unpack(d.Layout, joined.Get(ctx), int(d.Facts.Rows), g.table.Weighted); err != nil {
			return err
		}
	}
	factors, err := g.params.factors(d.Facts)
	if err != nil {
		return err
	}
	var e extent
	copy(e[:], extents.Get(ctx))
	scaled, err := scale(rows.label, rows.weight, factors, g.params.centre(d.Facts), d.Facts.Rows, e)
	if err != nil && g.params.WeightCol != "" {
		return fmt.Errorf("weights in column %q: %w", g.params.WeightCol, err)
	}
	if err != nil {
		return err
	}
	t := newTable(d.Layout, rows, scaled, len(factors))
	r, err := g.params.rules(len(t.cols))
	if err != nil {
		return err
	}
	most := 0
	for _, span := range t.spans {
		most = max(most, span.Rows)
	}
	s.rows, s.times = t, make([]uint8, most)
	if ctx.NumTask() == 1 || g.copies(ctx, d) {
		s.builder = newBuilder(t, r, s.sampler)
	} else {
		s.levels = newLevels(t, r, s.sampler, ctx.TaskID(), ctx.NumTask(), g.params.Memory, d.Facts.Rows)
	}
	return nil
}

// over reports whether the trees of the superstep are complete. If subtasks have all rows, they
// are complete before the first pass.
func over(ctx *comqueue.ComContext) (bool, error) {
	s := states.Get(ctx)
	return s.levels == nil || s.levels.over(), nil
}

// ask, answer and attach are the stages of a pass of levels.
func ask(ctx *comqueue.ComContext) error {
	if l := states.Get(ctx).levels; l != nil {
		l.ask()
		asked.Put(ctx, l.sums)
		ranges.Put(ctx, l.ranges)
		sent.Put(ctx, l.rows)
	}
	return nil
}

func answer(ctx *comqueue.ComContext) error {
	l := states.Get(ctx).levels
	if l == nil {
		return nil
	}
	if err := l.answer(ctx.Context(), asked.Get(ctx), ranges.Get(ctx), received.Get(ctx)); err != nil {
		return err
	}
	subtrees.Put(ctx, l.grown)
	return nil
}

func attach(ctx *comqueue.ComContext) error {
	if l := states.Get(ctx).levels; l != nil {
		return l.attach(allSubtrees.Get(ctx))
	}
	return nil
}

// collect takes the trees of all subtasks in the order of their numbers.
func (g growing) collect(ctx *comqueue.ComContext) error {
	s := states.Get(ctx)
	until := g.until(s)
	if ctx.NumTask() > 1 && (s.written != nil || s.bag != nil) {
		take := func(i int, t *tree.Tree) error { return s.take(s.Trees+i, t) }
		if s.levels != nil {
			for i, t := range s.levels.trees() {
				if err := take(i, &t); err != nil {
					return err
				}
			}
		} else if err := eachTree(all.Get(ctx), until-s.Trees, ctx.NumTask(), &s.tree, take); err != nil {
			return err
		}
	}
	s.Trees = until
	if s.written != nil {
		ctx.Report("trees", float64(s.Trees))
		ctx.Report("nodes", float64(s.written.summary.Nodes))
		return s.written.fits(s.Trees, g.params.NumTrees, model.MaxFile)
	}
	return nil
}

// measure adds the measures of the rows of a shard to out. Each row is predicted by those of
// the trees made so far that did not draw it.
func (g growing) measure(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := states.Get(ctx)
	s.bag.measure(shard, s.data.Facts.LabelMean, g.params.Task, out)
	return nil
}

func (g growing) report(ctx *comqueue.ComContext) error {
	s := states.Get(ctx)
	s.Measured = append(s.Measured[:0], oobSums.Get(ctx)...)
	o := outOfBag(g.params.Task, s.Measured)
	ctx.Report("oob score", o.Score)
	ctx.Report("oob loss", o.Loss)
	return nil
}

// fits returns an error if the parameters do not allow trees to be added to Start.
func (p Params) fits() error {
	s := p.Start.Summary
	switch {
	case p.Start.AbsentIsZero != p.AbsentIsZero:
		return fmt.Errorf("the forest of Start has AbsentIsZero %v, and the parameters %v", p.Start.AbsentIsZero, p.AbsentIsZero)
	case p.OOBScore && (s.Seed != p.Seed || s.Sampling != p.Sampling || s.Share != p.SampleShare):
		return fmt.Errorf("with OOBScore the forest of Start must have drawn its rows as these parameters do, since it must be known which trees drew a row; it drew them otherwise (seed %d, %v of %v; the parameters say seed %d, %v of %v): set the same, or leave OOBScore out", s.Seed, s.Sampling, s.Share, p.Seed, p.Sampling, p.SampleShare)
	}
	return nil
}

// same returns an error if the rows do not have the same features, types and classes as the
// rows that Start was trained on.
func (g growing) same(in signature.Inputs, trees *tree.Ensemble, f *bins.Facts) error {
	s := g.params.Start
	switch {
	case !slices.Equal(s.inputs, in):
		return fmt.Errorf("the forest of Start reads %v, and the rows have %v: want the same columns", s.inputs, in)
	case s.Classes.Type != f.LabelType || !slices.Equal(s.Classes.Values, f.Classes):
		return fmt.Errorf("the forest of Start knows the classes %s, of type %s, and the labels are %s, of type %s", bins.Listed(s.Classes.Values), s.Classes.Type, bins.Listed(f.Classes), f.LabelType)
	}
	for j := range max(len(s.Trees.Categories), len(trees.Categories)) {
		if j >= len(s.Trees.Categories) || j >= len(trees.Categories) || !slices.Equal(s.Trees.Categories[j], trees.Categories[j]) {
			return fmt.Errorf("the categories of feature %q are others than those that Start knows", trees.Features[j])
		}
	}
	return nil
}
