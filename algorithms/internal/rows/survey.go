package rows

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The queue that computes the facts has one superstep with these stages:
//
//	scan              per shard: rows, dimension, weight, labels, classes
//	merge             the statistics of all shards, in the order of a tree
//	agree             first facts; or an error: different dimensions, no weight, too many classes
//	mark columns      per shard, if sparse rows declare many features: a bitmap of those
//	                  that occur
//	AllReduce         bitwise or of the bitmaps
//	choose columns    all features, or only those that occur
//	then, for one window of columns after the other, so that buffers stay small:
//	  sums            per shard: Σ weight·x; for sparse rows also Σ weight·x²
//	  AllReduce
//	  means
//	  spreads         per shard: Σ weight·(x−mean) and Σ weight·(x−mean)²; for sparse rows
//	                  only for the columns that need a second pass
//	  AllReduce
//	  extremes        the largest and the smallest value, in any order of shards
//	  AllReduce
//	  note            on subtask 0: means, corrected by Σ weight·(x−mean), and deviations
//
// The variance is computed by the corrected two-pass algorithm (Chan, Golub and LeVeque,
// Algorithms for computing the sample variance, The American Statistician 37, 1983).

const (
	// windowColumns is the number of columns whose statistics are computed at a time, which
	// bounds the length of the buffers.
	windowColumns = 1 << 17
	// If sparse rows declare more than compactFrom features, the queue determines which of them
	// occur.
	compactFrom = 1 << 16
)

// manyWeights is the mean weight above which messages about sums that exceed float64 blame the
// weights instead of the values.
const manyWeights = 1e100

// These are the keys of the queue's objects.
var (
	checkedRows  = comqueue.PartitionedRows("rows")
	statsOfShard = shared.PerShard[shardStats]("statistics", shardStatsCodec{})
	statsOfAll   = shared.Replicated[shardStats]("agreed", shardStatsCodec{})
	marked       = shared.Scratch[[]int64]("marked columns")
	columnSums   = shared.Scratch[[]float64]("sums")
	columnSpread = shared.Scratch[[]float64]("spreads")
	columnRange  = shared.Scratch[[]float64]("extremes")
	surveyor     = shared.Scratch[*survey]("survey")
)

// shardStats holds the facts that the stage scan computes about a shard, or that merge computes
// about a range of shards.
type shardStats struct {
	Rows     int64
	Weighing int64 // number of rows of positive weight
	Dim      int   // length of a dense row; for sparse rows, the largest index plus 1
	Weight   float64
	Classes  Dictionary
	Label    Moments
	Offset   Moments
	Min, Max float64 // smallest and largest label, if labels are numbers
}

// merge returns the statistics of two ranges of shards together. The range of o follows the
// range of l.
func (l shardStats) merge(o shardStats) shardStats {
	dim := l.Dim // vectors of different lengths are found by sameLength
	if dim < o.Dim {
		dim = o.Dim
	}
	return shardStats{
		Rows: l.Rows + o.Rows, Weighing: l.Weighing + o.Weighing, Dim: dim, Weight: l.Weight + o.Weight,
		Classes: l.Classes.Merge(o.Classes, MaxClasses), Label: l.Label.Merge(o.Label), Offset: l.Offset.Merge(o.Offset),
		Min: min(l.Min, o.Min), Max: max(l.Max, o.Max),
	}
}

// survey is the state of one subtask in the queue that computes the facts.
type survey struct {
	table  Table
	blocks shardBlocks
	facts  Facts // Mean, Std and MaxAbs are set on subtask 0 only
	space  columnSpace

	window     sharding.Range // the columns whose statistics are being computed
	sized      int            // number of columns of the current buffers
	mean       []float64      // means of the columns of the window
	deviation  []float64      // standard deviations of the columns of the window, for sparse columns without a second pass
	twice      []bool         // twice[j] is set if the sparse column j of the window needs a second pass; nil if no column does
	high, low  []float64      // extremes over the shards of the subtask; for sparse columns in the first pass, high has the largest absolute values
	handedOver bool           // whether extremes has written high and low to a buffer
}

// survey adds the queue that computes the facts to b, and returns its output. op is the first
// word of the queue's name.
func (t Table) survey(b *engine.Builder, op string) *engine.Dataset {
	or := comqueue.CommutativeOperator("or", int64(0), func(dst, src []int64) {
		for i, v := range src[:len(dst)] {
			dst[i] |= v
		}
	})
	return comqueue.New(b, op+" facts").
		InitWithPartitionedData(checkedRows, t.Rows).
		Add(comqueue.Named("scan", comqueue.Do(t.scanShards))).
		Add(comqueue.AllReduceShardObjects(statsOfShard, statsOfAll, shardStats.merge)).
		Add(comqueue.Named("agree", comqueue.Do(t.agree))).
		Add(comqueue.Named("mark columns", comqueue.ForEachShard(marked, markColumns))).
		Add(comqueue.AllReduce(marked, or)).
		Add(comqueue.Named("choose columns", comqueue.Do(chooseColumns))).
		Add(comqueue.Repeat(math.MaxInt32, lastWindow,
			comqueue.Named("sums of columns", comqueue.ForEachShard(columnSums, sumColumns)),
			comqueue.AllReduce(columnSums),
			comqueue.Named("means", comqueue.Do(means)),
			comqueue.Named("spreads of columns", comqueue.ForEachShard(columnSpread, spreadColumns)),
			comqueue.AllReduce(columnSpread),
			comqueue.Named("extremes of columns", comqueue.ForEachShard(columnRange, extremesOfShard, comqueue.FoldedBy(extremes))),
			comqueue.AllReduce(columnRange, comqueue.Max),
			comqueue.Named("note", comqueue.Do(note)))).
		SetMaxIter(1).
		CloseOnNode0(comqueue.Output(outputFacts)).
		Exec().Named("facts")
}

// scanShards opens the shards and stores the statistics of each.
func (t Table) scanShards(ctx *comqueue.ComContext) error {
	s := &survey{table: t}
	surveyor.Put(ctx, s)
	marked.Put(ctx, nil)
	columnSums.Put(ctx, nil)
	columnSpread.Put(ctx, nil)
	columnRange.Put(ctx, nil)
	s.blocks = newShardBlocks(ctx)
	return ctx.ForShards(func(shard int) error {
		frame := checkedRows.Get(ctx, shard)
		block, err := t.view(frame)
		if err != nil {
			return err
		}
		*s.blocks.at(shard) = block
		l := shardStats{Rows: int64(block.N), Dim: block.D, Min: math.Inf(1), Max: math.Inf(-1)}
		if t.layout == SparseRows && t.dim == 0 {
			l.Dim = highestColumn(block)
		}
		l.Weight, l.Weighing = totalWeight(block), weighing(block)
		if t.Shifted {
			l.Offset = MomentsOf(block.Offset, block.Weight)
		}
		switch t.Label {
		case NumberLabel:
			l.Label = MomentsOf(block.Label, block.Weight)
			for _, y := range block.Label {
				l.Min, l.Max = min(l.Min, y), max(l.Max, y)
			}
		case ClassLabel:
			i, err := batch.FindColumn(arrowrows.Record(frame.Batch()).Schema(), labelColumn)
			if err != nil {
				return err
			}
			if l.Classes, err = classesOf(arrowrows.Record(frame.Batch()).Column(i), block.Weight); err != nil {
				return fmt.Errorf("column %q: %w", t.columns.Label, err)
			}
		}
		statsOfShard.Put(ctx, shard, l)
		return nil
	})
}

func totalWeight(b *Block) float64 {
	if b.Weight == nil {
		return float64(b.N)
	}
	var total float64
	for _, w := range b.Weight {
		total += w
	}
	return total
}

// weighing returns the number of rows of positive weight.
func weighing(b *Block) int64 {
	n := int64(b.N)
	for _, w := range b.Weight {
		if w == 0 {
			n--
		}
	}
	return n
}

// highestColumn returns the largest column index of the sparse rows plus 1, or 0 if there are
// no entries.
func highestColumn(b *Block) int {
	high := int32(0)
	for i := range b.N {
		if col, _ := b.Sparse.Row(i); len(col) > 0 {
			high = max(high, col[len(col)-1]+1)
		}
	}
	return int(high)
}

// Totals has sums over all rows.
type Totals struct {
	Rows    int64
	Weight  float64
	Label   Moments // moments of the labels, for a NumberLabel
	Classes int     // number of classes, for a ClassLabel
}

// Usable returns an error if no model can be trained on rows with the totals t.
func (c Columns) Usable(label LabelKind, t Totals) error {
	immense := label == NumberLabel && !(kernel.Finite(t.Label.Mean) && kernel.Finite(t.Label.Squares))
	switch {
	case t.Rows == 0 && c.Skip:
		return errors.New("there are no rows to train on: the input is empty, or every row was skipped")
	case t.Rows == 0:
		return errors.New("there are no rows to train on: the input is empty")
	case c.Weight != "" && t.Weight == 0:
		return fmt.Errorf("every weight in column %q is 0: some row needs a positive one", c.Weight)
	case !kernel.Finite(t.Weight):
		return fmt.Errorf("the weights in column %q add up to more than float64 holds: scale them down", c.Weight)
	case label == ClassLabel && t.Classes > MaxClasses:
		return fmt.Errorf("column %q: %w", c.Label, TooManyClasses())
	case immense && t.Weight > manyWeights*float64(t.Rows):
		return fmt.Errorf("the weights in column %q are so large, %v in all, that sums of weighted labels exceed float64: scale them down", c.Weight, t.Weight)
	case immense:
		return fmt.Errorf("the labels in column %q are so large that their mean or spread exceeds float64: scale them down", c.Label)
	}
	return nil
}

// agree computes facts from the statistics of all shards, or returns an error if no model can
// be trained on the rows.
func (t Table) agree(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	all, ok := statsOfAll.Lookup(ctx)
	if !ok {
		all = shardStats{}
	}
	if err := t.columns.Usable(t.Label, Totals{Rows: all.Rows, Weight: all.Weight, Label: all.Label, Classes: len(all.Classes.Keys)}); err != nil {
		return err
	}
	if !kernel.Finite(all.Offset.Mean) {
		return fmt.Errorf("the offsets in column %q are so large that their mean exceeds float64: scale them down", t.columns.Offset)
	}
	dim := t.dim
	if dim == 0 {
		dim = all.Dim
	}
	if dim == 0 && t.layout != SparseRows {
		return fmt.Errorf("column %q: the vectors have no components", t.vector)
	}
	s.facts = Facts{
		Declared: dim, Rows: all.Rows, Weighing: all.Weighing, Weight: all.Weight,
		OffsetMean: all.Offset.Mean,
		Classes:    all.Classes.Texts, ClassWeights: all.Classes.Weight, keys: all.Classes.Keys, LabelType: t.labelType,
	}
	if t.Label == NumberLabel {
		s.facts.LabelMean, s.facts.LabelStd = all.Label.Mean, math.Sqrt(all.Label.Squares/all.Label.Weight)
		s.facts.LabelMin, s.facts.LabelMax = all.Min, all.Max
	}
	if t.layout != SparseRows {
		return ctx.ForShards(func(shard int) error {
			return t.sameLength(checkedRows.Get(ctx, shard), dim)
		})
	}
	for _, b := range s.blocks.block {
		if b != nil {
			b.D = dim
		}
	}
	if dim > compactFrom {
		marked.Put(ctx, make([]int64, (dim+63)/64))
	}
	return nil
}

// markColumns sets the bits of the columns that occur in a shard.
func markColumns(ctx *comqueue.ComContext, shard int, out []int64) error {
	if len(out) == 0 {
		return nil
	}
	b := *surveyor.Get(ctx).blocks.at(shard)
	for _, j := range b.Sparse.Col[b.Sparse.RowPtr[0]:b.Sparse.RowPtr[b.N]] {
		out[j>>6] |= 1 << (j & 63)
	}
	return nil
}

// chooseColumns decides which columns training uses, and begins the first window.
func chooseColumns(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.space = columnSpace{declared: s.facts.Declared}
	if bits := marked.Get(ctx); len(bits) > 0 {
		if columns := columnsOf(bits); 2*len(columns) <= s.facts.Declared {
			s.facts.Columns = columns
			s.space = newColumnSpace(columns, s.facts.Declared)
		}
		marked.Put(ctx, nil)
	}
	d := s.facts.Dim()
	if ctx.TaskID() == 0 {
		s.facts.Mean, s.facts.Std, s.facts.MaxAbs = make([]float64, d), make([]float64, d), make([]float64, d)
	}
	s.begin(ctx, 0)
	return nil
}

// begin prepares the buffers for the window that begins at column lo.
func (s *survey) begin(ctx *comqueue.ComContext, lo int) {
	s.window = sharding.Range{Lo: lo, Hi: min(lo+windowColumns, s.facts.Dim())}
	width := s.window.Len()
	if s.sized != width {
		s.sized = width
		s.mean = make([]float64, width)
		s.high, s.low = make([]float64, width), make([]float64, width)
		columnRange.Put(ctx, make([]float64, 2*width))
		if s.table.layout == SparseRows {
			s.deviation = make([]float64, width)
			columnSums.Put(ctx, make([]float64, 2*width))
		} else {
			columnSums.Put(ctx, make([]float64, width))
			columnSpread.Put(ctx, make([]float64, 2*width))
		}
	}
	for j := range s.high {
		s.high[j], s.low[j] = math.Inf(-1), math.Inf(1)
		if s.table.layout == SparseRows {
			s.high[j], s.low[j] = 0, 0
		}
	}
	s.handedOver = false
}

func lastWindow(ctx *comqueue.ComContext) (bool, error) {
	return surveyor.Get(ctx).window.Lo >= surveyor.Get(ctx).facts.Dim(), nil
}
