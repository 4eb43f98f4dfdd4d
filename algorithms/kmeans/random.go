package kmeans

import (
	"cmp"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Random initialisation draws a random number for every row, and takes the distinct rows with
// the smallest numbers. Each superstep gathers rows from every shard: of the rows that differ
// from all rows taken so far, those with the smallest random numbers. So each superstep finds
// at least one more row, and usually all missing rows.

// These are the keys of the queue's objects.
var (
	randomTaken   = shared.Replicated("taken", shared.Float64s()) // rows of d values
	randomDim     = shared.Replicated("dim", shared.Int())
	rowMass       = shared.Scratch[[]float64]("massAllReduce")
	randomKeys    = shared.Scratch[[]float64]("smallestAllReduce")
	randomRows    = shared.Scratch[[]float64]("rowsAllReduce")
	randomScratch = shared.Scratch[*randomWork]("work")
)

// randomWork has what a subtask needs in addition to the state.
type randomWork struct {
	blocks
	picked []pick // the rows whose vectors are currently gathered
}

// pick is a row of a shard with its random number.
type pick struct {
	draw       float64
	shard, row int
}

// compare orders picks by draw, and picks with the same draw by shard and row.
func (p pick) compare(o pick) int {
	return cmp.Or(cmp.Compare(p.draw, o.draw), cmp.Compare(p.shard, o.shard), cmp.Compare(p.row, o.row))
}

func (p pick) before(o pick) bool { return p.compare(o) < 0 }

// randomInit has the parameters of the queue; its methods are the stages.
type randomInit struct {
	in     input
	params Params
}

func (t randomInit) addQueue(b *engine.Builder, rows *engine.Dataset) *engine.Dataset {
	return t.in.begin(b, "kmeans random", rows, t.preallocate).
		Add(comqueue.Named("open", comqueue.Do(t.open))).
		Add(comqueue.Named("find smallest draws", comqueue.ForEachShard(randomKeys, t.findSmallest))).
		Add(comqueue.AllReduce(randomKeys)).
		Add(comqueue.Named("choose rows", comqueue.Do(t.choose))).
		Add(comqueue.Named("gather rows", comqueue.ForEachShard(randomRows, t.gather))).
		Add(comqueue.AllReduce(randomRows)).
		Add(comqueue.Named("take distinct", comqueue.Do(t.take))).
		SetCompareCriterionOfNode0(t.complete).
		CloseOnNode0(comqueue.Output(t.output)).
		Exec()
}

// preallocate makes the objects of the queue.
func (t randomInit) preallocate(ctx *comqueue.ComContext) {
	randomKeys.Put(ctx, nil)
	randomRows.Put(ctx, nil)
}

// massSize is the size of a shard's slot in the first stage of every initialisation, which
// measures the shards. The slot has the number of rows, their total weight and their dimension.
const massSize = 3

// begin returns a new queue whose first stage measures the shards. preallocate makes the
// objects of the queue, once on each subtask.
func (in input) begin(b *engine.Builder, name string, rows *engine.Dataset, preallocate func(ctx *comqueue.ComContext)) *comqueue.IterativeComQueue {
	return comqueue.New(b, name).
		InitWithPartitionedData(points.WithState(in.state(0)), rows).
		Add(comqueue.Named("preallocate", comqueue.Do(func(ctx *comqueue.ComContext) error {
			if !rowMass.Has(ctx) {
				rowMass.Put(ctx, make([]float64, massSize*ctx.TotalShards()))
				preallocate(ctx)
			}
			return nil
		}))).
		Add(comqueue.Named("measure", comqueue.ForEachShard(rowMass, in.measure))).
		Add(comqueue.AllReduce(rowMass))
}

// measure writes the measures of a shard to its slot, once.
func (in input) measure(ctx *comqueue.ComContext, shard int, out []float64) error {
	if len(out) == 0 {
		return nil
	}
	f := points.Get(ctx, shard)
	slot := out[massSize*shard:]
	slot[0], slot[1], slot[2] = float64(f.Rows()), float64(f.Rows()), float64(in.dimension(f))
	if in.weighted {
		slot[1] = 0
		for _, w := range f.Floats(weightColumn) {
			slot[1] += w
		}
	}
	return nil
}

// measured returns the weight of each shard and the dimension of the rows, or an error if there
// are no rows, no components or no positive weights.
func (p Params) measured(slots []float64) (mass []float64, dim int, err error) {
	var rows, total float64
	for i := 0; i < len(slots); i += massSize {
		rows += slots[i]
		total += slots[i+1]
		dim = max(dim, int(slots[i+2]))
		mass = append(mass, slots[i+1])
	}
	switch {
	case rows == 0 && p.NonFinite == Skip:
		return nil, 0, errNoUsableRows
	case rows == 0:
		return nil, 0, errNoRows
	case dim == 0:
		return nil, 0, errNoComponents
	case total == 0:
		return nil, 0, p.noWeight()
	case !kernel.Finite(total):
		return nil, 0, p.overflow()
	}
	return mass, dim, nil
}

// open evaluates the measures and opens the shards, once.
func (t randomInit) open(ctx *comqueue.ComContext) error {
	if !randomDim.Has(ctx) {
		_, dim, err := t.params.measured(rowMass.Get(ctx))
		if err != nil {
			return err
		}
		randomDim.Put(ctx, dim)
		randomTaken.Put(ctx, nil)
	}
	if !randomScratch.Has(ctx) {
		open, err := t.in.openBlocks(ctx, randomDim.Get(ctx))
		if err != nil {
			return err
		}
		randomScratch.Put(ctx, &randomWork{blocks: open})
	}
	resize(ctx, rowMass, 0)
	resize(ctx, randomKeys, ctx.TotalShards()*t.missing(ctx)*2)
	return nil
}

// missing returns the number of centres that are not found yet.
func (t randomInit) missing(ctx *comqueue.ComContext) int {
	return t.params.K - len(randomTaken.Get(ctx))/randomDim.Get(ctx)
}

// findSmallest finds the smallest draws among the rows of a shard that have a weight above 0
// and differ from all rows taken. For each of them it writes the number of the row plus 1, and
// the draw, to the shard's slots.
func (t randomInit) findSmallest(ctx *comqueue.ComContext, shard int, out []float64) error {
	b, m := randomScratch.Get(ctx).at(shard), t.missing(ctx)
	random := draws(t.params.Seed, "kmeans random", shard, 0)
	var smallest []pick // a heap with the largest pick on top
	var search *searcher
	if taken := randomTaken.Get(ctx); len(taken) > 0 {
		search = newSearcher(t.in, len(taken)/b.d, b.d)
		search.setRows(taken, len(taken)/b.d)
	}
	for lo := 0; lo < b.n; lo += chunkRows {
		part := b.rows(lo, min(lo+chunkRows, b.n))
		if search != nil {
			search.costs(&part, search.near[:part.n], search.dist[:part.n])
		}
		for i := range part.n {
			if part.weight(i) > 0 && (search == nil || search.dist[i] > 0) {
				smallest = keepSmallest(smallest, m, pick{random.Float64At(uint64(lo + i)), shard, lo + i})
			}
		}
	}
	slots := out[shard*m*2:]
	for i, p := range smallest {
		slots[2*i], slots[2*i+1] = float64(p.row+1), p.draw
	}
	return nil
}

// keepSmallest adds p to a heap and returns the heap. The heap has the m smallest picks that
// were added to it, with the largest of them on top.
func keepSmallest(heap []pick, m int, p pick) []pick {
	if len(heap) < m {
		heap = append(heap, p)
		for i := len(heap) - 1; i > 0 && heap[(i-1)/2].before(heap[i]); i = (i - 1) / 2 {
			heap[i], heap[(i-1)/2] = heap[(i-1)/2], heap[i]
		}
		return heap
	}
	if m == 0 || !p.before(heap[0]) {
		return heap
	}
	heap[0] = p
	for i := 0; ; {
		top := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && heap[top].before(heap[child]) {
				top = child
			}
		}
		if top == i {
			return heap
		}
		heap[i], heap[top] = heap[top], heap[i]
		i = top
	}
}

// choose picks the rows with the smallest draws of all shards.
func (t randomInit) choose(ctx *comqueue.ComContext) error {
	w, slots, m := randomScratch.Get(ctx), randomKeys.Get(ctx), t.missing(ctx)
	w.picked = w.picked[:0]
	for i := 0; i < len(slots); i += 2 {
		if slots[i] > 0 {
			w.picked = append(w.picked, pick{slots[i+1], i / (2 * m), int(slots[i]) - 1})
		}
	}
	if len(w.picked) == 0 {
		return t.params.tooFewPoints(t.params.K-m, t.in.cosine)
	}
	slices.SortFunc(w.picked, pick.compare)
	w.picked = w.picked[:min(m, len(w.picked))]
	resize(ctx, randomRows, len(w.picked)*randomDim.Get(ctx))
	return nil
}

// gather writes the picked rows of a shard to their slots.
func (t randomInit) gather(ctx *comqueue.ComContext, shard int, out []float64) error {
	w, d := randomScratch.Get(ctx), randomDim.Get(ctx)
	for i, p := range w.picked {
		if p.shard == shard {
			w.at(shard).expand(p.row, t.in.cosine, out[i*d:(i+1)*d])
		}
	}
	return nil
}

// take adds the gathered rows that differ from all rows taken so far to the rows taken.
func (t randomInit) take(ctx *comqueue.ComContext) error {
	randomTaken.Put(ctx, addDistinct(t.in, randomTaken.Get(ctx), randomRows.Get(ctx), randomDim.Get(ctx)))
	return nil
}

// addDistinct returns taken with rows of more appended, except those that equal a row of taken
// or an earlier row of more. A row has d values.
func addDistinct(in input, taken, more []float64, d int) []float64 {
	search := newSearcher(input{layout: rows.DenseRows, cosine: in.cosine}, 1, d)
	near, cost := make([]int32, chunkRows), make([]float64, chunkRows)
	for lo := 0; lo < len(more); lo += d {
		row := more[lo : lo+d]
		search.set(row)
		all, known := block{n: len(taken) / d, d: d, dense: taken}, false
		for from := 0; from < all.n && !known; from += chunkRows {
			part := all.rows(from, min(from+chunkRows, all.n))
			search.costs(&part, near, cost)
			known = slices.Contains(cost[:part.n], 0)
		}
		if !known {
			taken = append(taken, row...)
		}
	}
	return taken
}

// complete is the stop criterion of the queue: all centres are found.
func (t randomInit) complete(ctx *comqueue.ComContext) (bool, error) { return t.missing(ctx) == 0, nil }

// output returns the centres.
func (t randomInit) output(ctx *comqueue.ComContext) ([]centerRow, error) {
	return centerRows(randomTaken.Get(ctx), randomDim.Get(ctx)), nil
}

// centerRows returns the rows of a row-major matrix with d columns.
func centerRows(flat []float64, d int) []centerRow {
	rows := make([]centerRow, len(flat)/d)
	for a := range rows {
		rows[a].Center = flat[a*d : (a+1)*d]
	}
	return rows
}
