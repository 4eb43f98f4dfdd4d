package forest

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// PredictOutOfBag predicts each row that a forest was trained on by the trees that did not draw
// it. It adds the columns of Predict: the prediction and, for classes, the mean of the trees'
// shares. So each row is predicted only by trees that have not seen it. A row that every tree
// drew gets nulls, and so does a row whose vector is null. The measures in OutOfBag are
// computed from these predictions.
//
//	made := forest.Train(rows, forest.Params{…, OOBScore: true})
//	honest := forest.PredictOutOfBag(rows, made, forest.PredictOptions{PredictionCol: "oob"})
//
// Which trees drew a row follows from its shard and its position in the shard. So d must have
// the rows that Train was given, in the same order and the same number of shards; passing the
// same dataset satisfies this. It is an error if training did not have OOBScore. It is also an
// error if training had Skip, because training did not count the rows that were left out, so
// the positions of rows differ.
func PredictOutOfBag(d, made *engine.Dataset, o PredictOptions) *engine.Dataset {
	return o.apply("forest.PredictOutOfBag", "ForestPredictOutOfBag", d, made, func(b *batches) (model.PlacedCompute, error) {
		m := b.m
		switch o := m.OutOfBag; {
		case o == nil || o.Shards == 0:
			return nil, errors.New("the model was trained without OOBScore, and does not tell which trees drew a row: set OOBScore")
		case o.Skip:
			return nil, errors.New("the model was trained with Skip, so the places of its rows are not known: train without Skip, on rows that have labels and weights")
		}
		s := newSampler(Params{Sampling: m.Summary.Sampling, SampleShare: m.Summary.Share, Seed: m.Summary.Seed})
		s.empty = m.OutOfBag.Whole
		return (&placed{batches: b, sampler: s}).compute, nil
	})
}

// placed predicts rows in batches, each row by the trees that did not draw it.
type placed struct {
	*batches
	sampler *sampler
	out     []bool // for each row, whether the current tree did not draw it
	trees   []int32
	sums    []float64
}

// compute returns the prediction columns of a batch. It has the signature of
// model.PlacedCompute.
func (p *placed) compute(c *engine.Context, shard, first int, in engine.Batch) ([]columnar.Values, error) {
	n := int(arrowrows.Record(in).NumRows())
	switch trained := p.m.Summary.Rows; {
	case c.Shards != p.m.OutOfBag.Shards:
		return nil, fmt.Errorf("the rows are in %d shards, and those of the training were in %d: give the same rows as for training", c.Shards, p.m.OutOfBag.Shards)
	case int64(first+n) > trained:
		return nil, fmt.Errorf("the shard has more rows than the %d of the training: give the same rows as for training", trained)
	}
	return p.Compute(c, first, in, p.m.Dim, func(out *batch.RecordBuilder, lo, n int) error {
		if err := p.load(lo, n); err != nil {
			return err
		}
		p.sum(shard, first+lo, n)
		return p.append(out)
	})
}

// load reads n rows of the batch from row lo on, as dense rows.
func (p *placed) load(lo, n int) error {
	absent := nan
	if p.m.AbsentIsZero {
		absent = 0
	}
	p.valid, p.x = p.valid[:0], p.x[:0]
	for i := lo; i < lo+n; i++ {
		x, ok, err := p.Read(i)
		if err != nil {
			return err
		}
		p.valid = append(p.valid, ok)
		if ok && x.Indices == nil {
			p.x = append(p.x, x.Values...)
			continue
		}
		at := len(p.x)
		for range p.m.Dim {
			p.x = append(p.x, absent)
		}
		for k, j := range x.Indices {
			p.x[at+int(j)] = x.Values[k]
		}
	}
	return nil
}

// sum adds up, for each of n rows of a shard beginning with row first, the predictions of the
// trees that did not draw the row. It adds in the order of the trees, as training does.
func (p *placed) sum(shard, first, n int) {
	outputs, dim := p.m.Trees.Outputs, p.m.Dim
	p.out, p.trees, p.sums = kernel.Sized(p.out, n), kernel.Sized(p.trees, n), kernel.Sized(p.sums, n*outputs)
	clear(p.trees)
	clear(p.sums)
	for k := range p.m.Trees.Trees {
		t := &p.m.Trees.Trees[k]
		p.sampler.leavesOut(k, shard, first, p.out)
		for i, out := range p.out {
			if !out || !p.valid[i] {
				continue
			}
			p.trees[i]++
			leaf := int(t.Leaf(p.x[i*dim:(i+1)*dim], true))
			if p.m.Task == Regression {
				p.sums[i] += t.Nodes[leaf].Value
			} else {
				kernel.AddTo(p.sums[i*outputs:(i+1)*outputs], t.Values[leaf*outputs:(leaf+1)*outputs])
			}
		}
	}
}

// append appends the predictions of the summed rows to the columns of b.
func (p *placed) append(b *batch.RecordBuilder) error {
	k := p.m.Trees.Outputs
	for i, trees := range p.trees {
		sums := p.sums[i*k : (i+1)*k]
		if trees == 0 {
			p.AppendNulls(b)
			continue
		}
		best := kernel.Argmax(sums)
		for c := range sums {
			sums[c] /= float64(trees)
		}
		if err := p.m.append(b, sums, best); err != nil {
			return err
		}
	}
	return nil
}
