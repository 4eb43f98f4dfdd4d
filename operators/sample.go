package operators

import (
	"sort"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// maxSampleFraction bounds the mean number of copies of a row.
const maxSampleFraction = 1000

// SampleOptions says how Sample draws.
type SampleOptions struct {
	// Seed, unless it is 0, makes the sample reproducible: two samples of one dataset with the
	// same seed and fraction have the same rows, whatever else the job does. Samples with
	// different seeds are independent. Without a seed, every Sample draws numbers of its own.
	// The draws also depend on the job's seed.
	Seed uint64
	// Replacement draws every row a number of times that is Poisson distributed
	// with mean fraction, as for the bootstrap, instead of at most once.
	Replacement bool
}

// Sample keeps every row with probability fraction, independently of all others, in its place;
// the size of the sample varies accordingly. With replacement, each row is repeated as often as
// it was drawn. fraction is between 0 and 1, with replacement up to 1000.
//
// Whether a row is kept depends on the seeds, on its shard and its place in the shard, and on
// the origin of the dataset in the job. So it depends on the number of shards, but not on
// parallelism. Samples of samples, of parts of Split and of other datasets are independent of
// each other, even with the same seed.
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

// bernoulli returns the number of copies at a draw u from [0, 1): one with
// probability p.
func bernoulli(p float64) func(u float64) int {
	return func(u float64) int {
		if u < p {
			return 1
		}
		return 0
	}
}

// poisson returns the number of copies at a draw u from [0, 1), by inverting the
// distribution function of the Poisson distribution with mean lambda.
func poisson(lambda float64) func(u float64) int {
	bounds := poissonBounds(lambda)
	return func(u float64) int {
		return sort.Search(len(bounds)-1, func(k int) bool { return u < bounds[k] })
	}
}

// poissonBounds returns the distribution function of the Poisson distribution at 0, 1, 2, …
// until it reaches 1. It computes probabilities relative to that of the mode, by p(k+1) =
// p(k)·λ/(k+1). This needs no exponential function, and neither overflows nor underflows.
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

// maxCopies bounds batches with copies of rows, unless they were larger before.
const maxCopies = 1 << 15

// drawPurpose names the draws of an operator for the rows of d. Without a seed, each operator
// has its own draws. With a seed, all operators of the kind on these rows with that seed share
// their draws.
func drawPurpose(op string, d *engine.Dataset, seed uint64) string {
	if seed == 0 {
		return d.Builder().OwnDrawPurpose(op, d)
	}
	return d.Builder().DrawPurpose(op+" "+strconv.FormatUint(seed, 10), d)
}

// addDrawn adds an operator that emits copies(u) copies of each row, where u is the row's draw
// for the purpose.
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
	draws   sharding.Random // the next draw is that of the next row
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
