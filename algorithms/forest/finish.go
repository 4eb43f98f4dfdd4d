package forest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// written has the text of the trees made so far, as it is in the model's file, and their
// summary. The trees themselves are not kept, because they would take more memory than their
// text.
type written struct {
	trees   *tree.Writer // nil before write
	summary Summary
	depth   []int32
	before  []byte // the list of trees in a checkpoint, when a subtask joins; nil afterwards
}

// add appends the text of a tree and counts the tree in the summary.
func (w *written) add(t *tree.Tree) error {
	if err := w.trees.Add(t); err != nil {
		return err
	}
	w.summary.count(t, &w.depth)
	return nil
}

// fits returns an error if the model's file will have more than most bytes, the limit. It
// extrapolates from the trees made so far, because all trees have nearly the same size.
func (w *written) fits(trees, total int, most int64) error {
	size := float64(w.trees.Size())
	if want := size / float64(trees) * float64(total); want > float64(most) {
		const mega = 1e6
		return fmt.Errorf("%d of %d trees take %.0f MB, so that the model would take some %.0f MB, and a model's file has at most %.0f MB: want smaller trees, by MaxDepth, MaxLeaves or MinSamplesLeaf, or fewer, by NumTrees",
			trees, total, size/mega, want/mega, float64(most)/mega)
	}
	return nil
}

// write begins the model's file with the trees from a checkpoint or, without a checkpoint, with
// those of Start.
func (g growing) write(w *written, d *bins.Data) (err error) {
	e := ensemble(d)
	if g.params.Start != nil {
		e.Seen = tree.AlsoSeen(e.Seen, g.params.Start.Trees.Seen)
	}
	before := w.before
	if w.trees, err = tree.NewWriter(e, g.params.NumTrees); err != nil {
		return err
	}
	if w.before = nil; len(before) > 0 {
		return tree.EachTree(before, w.add)
	}
	for i := range g.first {
		if err := w.add(&g.params.Start.Trees.Trees[i]); err != nil {
			return fmt.Errorf("the forest of Start: %w", err)
		}
	}
	return nil
}

// ensemble returns an ensemble for the features of the rows d, without trees.
func ensemble(d *bins.Data) *tree.Ensemble {
	e := &tree.Ensemble{
		Features: make([]string, d.Facts.Declared), Outputs: max(1, len(d.Facts.Classes)), Average: true, Single: true,
	}
	e.Base = make([]float64, e.Outputs)
	for j := range e.Features {
		e.Features[j] = "f" + strconv.Itoa(j)
	}
	for i := range d.Layout.Features {
		f := &d.Layout.Features[i]
		e.Features[f.Number] = f.Name
		if f.Names != nil {
			if e.Categories == nil {
				e.Categories = make([][]string, len(e.Features))
			}
			e.Categories[f.Number] = f.Names
		} else if f.Categorical {
			if e.Seen == nil {
				e.Seen = make([][]int32, len(e.Features))
			}
			e.Seen[f.Number] = slices.Clone(f.Codes)
		}
	}
	return e
}

// finish returns the bytes of the trained model.
func (g growing) finish(ctx *comqueue.ComContext) ([]byte, error) {
	s := states.Get(ctx)
	p, f := g.params, s.data.Facts
	m := &Model{
		Task: p.Task, Classes: Classes{Type: f.LabelType, Values: f.Classes}, Dim: f.Declared,
		AbsentIsZero:  p.AbsentIsZero,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol,
		inputs:  signature.InputsOf(p.VectorCol, p.FeatureCols, g.schema, f.Declared),
		Summary: s.written.summary,
	}
	m.Summary.Rows, m.Summary.Weight, m.Summary.Seed = f.Rows, f.Weight, p.Seed
	m.Summary.Method, m.Summary.Criterion, m.Summary.Sampling, m.Summary.Share = p.Method, p.Criterion, p.Sampling, p.SampleShare
	if p.OOBScore {
		m.OutOfBag = outOfBag(p.Task, s.Measured)
		m.OutOfBag.Shards, m.OutOfBag.Skip, m.OutOfBag.Whole = ctx.TotalShards(), p.Skip, s.sampler.empty
	}
	return m.encode(nil, s.written.trees)
}

// count adds the numbers of nodes and leaves of a tree to the summary, and updates MaxDepth.
// depth is memory for the depths of its nodes.
func (s *Summary) count(t *tree.Tree, depth *[]int32) {
	d := kernel.Sized(*depth, len(t.Nodes))
	*depth = d
	d[0] = 0
	s.Nodes += int64(len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Leaf() {
			s.Leaves++
			s.MaxDepth = max(s.MaxDepth, int(d[i]))
			continue
		}
		d[n.Left], d[n.Right] = d[i]+1, d[i]+1
	}
}
