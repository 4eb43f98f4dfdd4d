package operators

import (
	"sort"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// maxSampleFraction is the largest fraction that Sample accepts with replacement: the mean
// number of copies of a row.
const maxSampleFraction = 1000

// SampleOptions are the options of Sample.
type SampleOptions struct {
	// Seed, unless it is 0, makes the sample reproducible: two samples of one dataset with the
	// same seed and fraction have the same rows, whatever else the job does. Samples with
	// different seeds are independent. If Seed is 0, every Sample draws different random
	// numbers. The random numbers also depend on the job's seed.
	Seed uint64
	// Replacement makes the number of copies of each row Poisson distributed with mean
	// fraction, as for the bootstrap. Without Replacement, each row is kept at most once.
	Replacement bool
}

// Sample keeps every row with probability fraction, independently of all other rows, so the
// size of the sample varies. Rows keep their shards and order. With replacement, a row is
// replaced by its copies. fraction is between 0 and 1, or with replacement between 0 and 1000.
//
// Whether a row is kept depends on the seeds, on its shard and its index within the shard, and
// on how the job made the dataset. So it depends on the number of shards, but not on
// parallelism. Samples of different datasets are independent of each other, even with the same
// seed; this includes samples of samples and of parts of Split.
func Sample(d *engine.Dataset, fraction float64, opts SampleOptions) *engine.Dataset {
	const op = "Sample"
	b := builderOf(op, d)
	most := 1.0
	if opts.Replacement {
		most = maxSampleFraction
	}
	if !(fraction >= 0 && fraction <= most) {
		b.Errorf("%s: a fraction of %v: want 0 to %v", op, fraction, most)
		return b.Poisoned(op)
	}
	copies := bernoulli(fraction)
	if opts.Replacement {
		copies = poisson(fraction)
	}
	return addDrawn(d, op, drawPurpose(op, d, opts.Seed), []engine.Attr{
		{Key: "fraction", Value: strconv.FormatFloat(fraction, 'g', -1, 64)},
		{Key: "seed", Value: strconv.FormatUint(opts.Seed, 10)},
		{Key: "replacement", Value: strconv.FormatBool(opts.Replacement)},
	}, copies)
}

// bernoulli returns a function that maps a random number u from [0, 1) to a number of copies: 1
// with probability p, and otherwise 0.
func bernoulli(p float64) func(u float64) int {
	return func(u float64) int {
		if u < p {
			return 1
		}
		return 0
	}
}

// poisson returns a function that maps a random number u from [0, 1) to a number of copies, by
// the inverse of the distribution function of the Poisson distribution with mean lambda.
func poisson(lambda float64) func(u float64) int {
	bounds := poissonBounds(lambda)
	return func(u float64) int {
		return sort.Search(len(bounds)-1, func(k int) bool { return u < bounds[k] })
	}
}

// poissonBounds returns the values of the distribution function of the Poisson distribution
// with mean λ at 0, 1, 2, … until they reach 1. It computes probabilities relative to the
// probability of the mode, by p(k+1) = p(k)·λ/(k+1). This needs no exponential function, and
// neither overflows nor underflows.
func poissonBounds(lambda float64) []float64 {
	const negligible = 0x1p-60
	mode := int(lambda)
	weights := make([]float64, mode+1)
	weights[mode] = 1
	for k := mode; k > 0; k-- {
		weights[k-1] = weights[k] * float64(k) / lambda
	}
	for w := 1.0; ; {
		w = w * lambda / float64(len(weights))
		if w < negligible {
			break
		}
		weights = append(weights, w)
	}
	sum := 0.0
	for k, w := range weights {
		sum += w
		weights[k] = sum
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

// maxCopies bounds the number of rows of an emitted batch with copies. A larger input batch may
// lead to a larger batch.
const maxCopies = 1 << 15

// drawPurpose returns the purpose, in the sense of Context.Random, of an operator's random
// numbers for the rows of d. If seed is 0, each operator gets different random numbers.
// Otherwise all operators of the same kind with the same seed on the same rows get the same
// random numbers.
func drawPurpose(op string, d *engine.Dataset, seed uint64) string {
	if seed == 0 {
		return d.Builder().OwnDrawPurpose(op, d)
	}
	return d.Builder().DrawPurpose(op+" "+strconv.FormatUint(seed, 10), d)
}

// addDrawn adds an operator that emits copies(u) copies of each row, where u is the row's
// random number for the purpose.
func addDrawn(d *engine.Dataset, op, purpose string, attrs []engine.Attr, copies func(u float64) int) *engine.Dataset {
	return d.Builder().Add(engine.Spec{
		Op:       op,
		Attrs:    attrs,
		Schema:   d.Schema(),
		Inputs:   []engine.Port{{From: d, Use: keeps(d)}},
		Operator: func() engine.Operator { return &sampler{purpose: purpose, copies: copies} },
	})
}

// sampler is the operator behind Sample and Split.
type sampler struct {
	engine.BaseOperator
	purpose string
	copies  func(u float64) int

	index   rowIndex
	draws   sharding.Random // the next number that is drawn belongs to the next row
	indices []int32         // working space
}

func (o *sampler) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if o.index.batch(rows.NumRows()) == 0 {
		o.draws = c.Random(o.purpose, shard, 0)
	}
	o.indices = o.indices[:0]
	for i := range rows.NumRows() {
		for range o.copies(o.draws.Float64()) {
			o.indices = append(o.indices, int32(i))
		}
		if len(o.indices) > maxCopies && len(o.indices) > int(rows.NumRows()) {
			if err := emitIndices(c, shard, rows, o.indices, out); err != nil {
				return err
			}
			o.indices = o.indices[:0]
		}
	}
	return emitIndices(c, shard, rows, o.indices, out)
}

func (o *sampler) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}
