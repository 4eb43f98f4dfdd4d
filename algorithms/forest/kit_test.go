package forest

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// draws returns a random number generator for tests.
func draws(seed uint64) *sharding.Random {
	r := sharding.NewRandom(seed, "test", 0, 0)
	return &r
}

// problem has rows for a builder, made without a job. Values are given as bins.
type problem struct {
	bins        [][]int // bins[j][i] is the bin of feature j in row i; size[j] means missing
	size        []int   // number of bins of each feature
	categorical []bool
	label       []float64
	weight      []float64
	classes     int
	spans       []bins.Span
	wide        bool // bins of categories take two bytes
}

// randomProblem returns a small random problem.
func randomProblem(r *sharding.Random, classes int) problem {
	n, d := 2+r.IntN(60), 1+r.IntN(5)
	p := problem{classes: classes}
	for range n {
		y := float64(r.IntN(max(classes, 1)))
		if classes == 0 {
			y = float64(r.IntN(7)) / 4
		}
		p.label = append(p.label, y)
	}
	if r.IntN(2) == 0 {
		for range n {
			p.weight = append(p.weight, float64(r.IntN(5))/2)
		}
		p.weight[0] = 1
	}
	for range d {
		size := 1 + r.IntN(9)
		missing := r.IntN(2) == 0
		var column []int
		for i := range n {
			b := r.IntN(size)
			if r.IntN(2) == 0 {
				b = min(size-1, int(p.label[i]))
			}
			if missing && r.IntN(4) == 0 {
				b = size
			}
			column = append(column, b)
		}
		p.bins = append(p.bins, column)
		p.size = append(p.size, size)
		p.categorical = append(p.categorical, false)
	}
	cut := r.IntN(n)
	p.spans = []bins.Span{{Shard: 1, First: 0, Rows: cut}, {Shard: 4, First: cut, Rows: n - cut}}
	return p
}

// table returns the table of the problem, with all features in one block.
func (p problem) table(poisson bool) (*table, error) {
	l := &bins.Layout{}
	n, d := len(p.label), len(p.bins)
	block := bins.Block{Stride: d, Bins: make([]byte, n*d)}
	var columns [][]uint16
	for j, size := range p.size {
		f := bins.Feature{Name: "f" + strconv.Itoa(j), Number: j, Bins: size, Column: j, Slot: l.Slots, Implicit: -1, Categorical: p.categorical[j]}
		wide := p.wide && p.categorical[j]
		for b := range size {
			if p.categorical[j] {
				f.Codes = append(f.Codes, int32(b))
			} else if b > 0 {
				f.Cuts = append(f.Cuts, float32(b)-0.5)
			}
		}
		if wide {
			f.Column = -1
			l.Wide = append(l.Wide, j)
			own := make([]uint16, n)
			for i, b := range p.bins[j] {
				own[i] = uint16(b)
			}
			columns = append(columns, own)
		}
		l.Features = append(l.Features, f)
		l.Columns = append(l.Columns, bins.Column{Slot: l.Slots, Width: size + 1, Features: []int{j}, Offset: j})
		l.Slots += size + 1
		for i, b := range p.bins[j] {
			block.Bins[i*d+j] = byte(b)
		}
	}
	l.ColumnSlots = l.Slots
	var factors []float64
	for range p.classes {
		factors = append(factors, 1)
	}
	s, err := scaleAll(p.label, p.weight, factors, poisson)
	if err != nil {
		return nil, err
	}
	return newTable(l, &gathered{spans: p.spans, label: p.label, weight: p.weight, blocks: []bins.Block{block}, wide: columns}, s, p.classes), nil
}

// scaleAll scales labels and weights to integers. The rows are all rows of a job.
func scaleAll(label, weight, factors []float64, poisson bool) (scaled, error) {
	centre := 0.0
	if factors == nil && !poisson {
		centre = centreOf(slices.Min(label), slices.Max(label))
	}
	return scale(label, weight, factors, centre, int64(len(label)), extentOf(label, weight, factors, centre))
}

// row returns the features of row i in the form that predictions take.
func (p problem) row(i int) []float64 {
	var x []float64
	for j := range p.bins {
		v := float64(p.bins[j][i])
		if p.bins[j][i] == p.size[j] {
			v = math.NaN()
		}
		x = append(x, v)
	}
	return x
}

// quantiles returns a table of numbers, binned at quantiles, for benchmarks.
func quantiles(x []float32, n, d int, label []float64, classes int) *table {
	p := problem{label: label, classes: classes, spans: []bins.Span{{Rows: n}}}
	for j := range d {
		v := make([]float32, n)
		for i := range v {
			v[i] = x[i*d+j]
		}
		slices.Sort(v)
		var cuts []float32
		for k := 1; k < 255; k++ {
			cuts = append(cuts, v[k*n/255])
		}
		cuts = slices.Compact(cuts)
		column := make([]int, n)
		for i := range column {
			at, found := slices.BinarySearch(cuts, x[i*d+j])
			if found {
				at++
			}
			column[i] = at
		}
		p.bins, p.size, p.categorical = append(p.bins, column), append(p.size, len(cuts)+1), append(p.categorical, false)
	}
	t, err := p.table(false)
	if err != nil {
		panic(err)
	}
	return t
}

// fewShards is the number of shards in the tests of empty bags.
const fewShards = 4

// modelOf trains a forest on a table with the given number of subtasks.
func modelOf(t *testing.T, table trial.Table, p Params, tasks int) *Model {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(Train(table.Dataset(b), p), "model") },
		engine.Shards(fewShards), engine.Parallelism(tasks))
	m, err := ModelOf(r, "model")
	require.NoError(t, err)
	return m
}
