package bins

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// skippedSetRows is the name of the counter of rows that were left out of evaluation sets.
const skippedSetRows = "rows of evaluation sets skipped"

// checker is the operator that checks the rows of one subtask and packs them, a shard at a
// time. It holds a shard's batches until the shard ends, so that it can allocate packed columns
// at their final length.
type checker struct {
	engine.BaseOperator
	plan  *plan
	check rows.Checker

	rows    int            // rows of the current shard so far
	batches []arrow.Record // batches of the shard, retained
	skip    [][]bool       // skip[b][i] reports whether row i of batch b is left out; skip[b] is nil if no row of b is left out
	skipped int64
	width   int // length of the shard's ragged vectors; −1 before the first vector
}

func newChecker(p *plan) *checker {
	check := rows.Checker{Columns: p.reads, Skip: p.columns.Skip, Advice: rows.SkipAdvice}
	return &checker{plan: p, check: check, width: -1}
}

func (o *checker) Close() error {
	o.drop()
	return nil
}

// drop releases the batches of a shard and resets the checker for the next one.
func (o *checker) drop() {
	for i, b := range o.batches {
		b.Release()
		o.batches[i] = nil
	}
	o.batches, o.skip = o.batches[:0], o.skip[:0]
	o.rows, o.skipped, o.width = 0, 0, -1
}

func (o *checker) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rec := arrowrows.Record(in)
	if o.rows == 0 {
		o.drop()
	}
	n := int(rec.NumRows())
	if n == 0 {
		return nil
	}
	if o.rows > math.MaxInt32-n {
		return fmt.Errorf("a shard has more than 2^31 rows: cut the data into more shards")
	}
	rec.Retain()
	o.batches = append(o.batches, rec)
	o.check.Begin(o.rows, n)
	for i := range o.check.Columns {
		column := rec.Column(o.check.Columns[i].At)
		o.check.Check(i, column, column)
	}
	o.checkLabels(rec)
	if o.plan.kind != separate {
		o.checkVectors(rec.Column(o.plan.vector))
	}
	o.skip = append(o.skip, o.check.LeftOut())
	for _, lacking := range o.check.Lacking {
		o.skipped += lacking
	}
	o.rows += n
	return o.check.Err()
}

// EndShard packs the shard's rows and emits them.
func (o *checker) EndShard(c *engine.Context, shard int, out engine.Output) error {
	defer o.drop()
	if o.skipped > 0 {
		counter := rows.Skipped
		if o.plan.lenient {
			counter = skippedSetRows
		}
		c.Count(counter, o.skipped)
	}
	if o.rows == 0 || o.skipped == int64(o.rows) {
		return nil
	}
	rec, err := o.pack(c.RowAllocator)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// checkLabels makes the checks of labels that package rows does not make: that intervals are
// not empty and, with Skip, that CheckLabel accepts the numbers.
func (o *checker) checkLabels(rec arrow.Record) {
	p := o.plan
	switch {
	case p.label != NumberLabel:
	case p.upperAt >= 0:
		lower, upper := rec.Column(p.labelAt), rec.Column(p.upperAt)
		for i := range lower.Len() {
			if a, b := numberAt(lower, i), numberAt(upper, i); a > b {
				o.check.Refuse(i, "columns %q and %q: the label ends at %v, below where it begins, %v", p.columns.Label, p.columns.LabelUpper, b, a)
			}
		}
	case p.columns.Skip && p.columns.CheckLabel != nil:
		column := rec.Column(p.labelAt)
		for i := 0; i < column.Len() && !o.check.Done(i); i++ {
			v := numberAt(column, i)
			if math.IsNaN(v) {
				continue // the row is left out
			}
			if err := p.columns.CheckLabel(v); err != nil {
				o.check.Refuse(i, "column %q: %v", p.columns.Label, err)
			}
		}
	}
}

// checkVectors makes the checks of vectors that package rows does not make: that ragged vectors
// have one length, and that codes of categories are valid.
func (o *checker) checkVectors(column arrow.Array) {
	coded, ragged := o.plan.categories(), o.plan.kind == raggedRows
	if len(coded) == 0 && !ragged {
		return
	}
	vectors := batch.VectorsOf(column)
	for i := 0; i < column.Len() && !o.check.Done(i); i++ {
		switch {
		case vectors.Null(i):
		case o.plan.kind == sparseRows:
			indices, values := vectors.Sparse(i)
			for k, at := range indices {
				if o.plan.codedAt[int(at)] {
					o.checkCode(i, int(at), values[k])
				}
			}
		default:
			row := vectors.Dense(i)
			if o.width < 0 {
				o.width = len(row)
			}
			if len(row) != o.width {
				o.check.Refuse(i, "column %q has %d components, where other rows have %d: all vectors must have one size", o.plan.schema.Field(o.plan.vector).Name, len(row), o.width)
			}
			for _, at := range coded {
				if at < len(row) {
					o.checkCode(i, at, row[at])
				}
			}
		}
	}
}

// checkCode checks that v, the component of a vector with index feature, is the code of a
// category.
func (o *checker) checkCode(row, feature int, v float64) {
	if !o.plan.lenient && v == v && !codes.Has(v) {
		o.check.Refuse(row, "%s: the category is %v; %s", o.plan.describe(feature), v, codes.Want)
	}
}
