package rows

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// These are the columns of the checked rows.
const (
	vectorColumn = "vector"
	labelColumn  = "label"
	weightColumn = "weight"
	offsetColumn = "offset"
	censorColumn = "censor"
)

// Check adds two things to a job: the operator that checks rows and joins the rows of each
// shard into one batch, and the queue that computes the facts about all rows. op is the name of
// the algorithm, such as "logistic.Train"; the queue is named after it. Check returns an error
// for mistakes in the columns; the text of the error does not contain op. Mistakes in rows make
// the run fail.
//
// Only one copy of the checked rows is held in memory: the queue that computes the facts and
// the training queues share it.
func Check(op string, d *engine.Dataset, c Columns, label LabelKind) (Table, error) {
	if d.Poisoned() {
		return Table{Rows: d, Facts: d, Label: label}, nil
	}
	name, from, err := c.features(d, label)
	if err != nil {
		return Table{}, err
	}
	schema := arrowrows.Arrow(from.Schema())
	vector := Column{Name: name, Use: Vector, Range: Finite, Help: "name number columns as features, or make a vector of them with operators.Vectorize"}
	if err := vector.Bind(schema); err != nil {
		return Table{}, err
	}
	dt := schema.Field(vector.At).Type
	vector.As = arrow.Field{Name: vectorColumn, Type: VectorsOf(dt, arrow.PrimitiveTypes.Float64)}
	layout := LayoutOf(dt)
	t := Table{
		Label: label, columns: c, vector: name, layout: layout, dim: batch.VectorDim(dt),
		Sparse: layout == SparseRows, Weighted: c.Weight != "", Shifted: c.Offset != "", Censored: c.Censor != "",
	}
	checker := Checker{Columns: []Column{vector}, Skip: c.Skip, Advice: SkipAdvice, Components: componentNames(arrowrows.Arrow(d.Schema()), c.Features)}
	t.components = checker.Components
	features := strings.TrimSpace(strings.Join(append([]string{c.Vector}, c.Features...), " "))
	attrs := []engine.Attr{{Key: "features", Value: cmp.Or(features, vector.Name)}}
	for _, s := range c.scalars(label) {
		if err := s.Bind(schema); err != nil {
			return Table{}, err
		}
		if s.Use == Class {
			s.As = arrow.Field{Name: labelColumn, Type: schema.Field(s.At).Type}
			t.labelType = batch.TypeName(s.As.Type)
		}
		checker.Columns = append(checker.Columns, s)
		attrs = append(attrs, engine.Attr{Key: s.Role, Value: s.Name})
	}
	if c.Skip {
		attrs = append(attrs, engine.Attr{Key: "unusable rows", Value: "skip"})
	}
	t.Rows = d.Builder().Add(engine.Spec{
		Op:       "CheckRows",
		Attrs:    attrs,
		Schema:   arrowrows.Schema(checker.Schema()),
		Inputs:   []engine.Port{{From: from}},
		RowByRow: !c.Skip,
		Operator: func() engine.Operator {
			own := checker
			return Joined(own.Rows)
		},
	})
	t.Facts = t.survey(d.Builder(), op)
	return t, nil
}

// SkipAdvice is the advice in the error about a row that Skip would leave out.
const SkipAdvice = "fill it in, or set Skip to train without such rows"

// scalars returns the columns that are read in addition to the features.
func (c Columns) scalars(label LabelKind) []Column {
	var all []Column
	if label != NoLabel {
		all = append(all, Labels(c.Label, label))
	}
	for _, column := range []Column{
		Weights(c.Weight),
		{Name: c.Offset, Role: "offset", Range: Finite, As: floatField(offsetColumn)},
		{Name: c.Censor, Role: "censor", Range: events, As: floatField(censorColumn)},
	} {
		if column.Name != "" {
			all = append(all, column)
		}
	}
	return all
}

// Dim returns the number of features if the type of the vector column says it, else 0.
func (t Table) Dim() int { return t.dim }

// Vector returns the name of the vector column, or "" if the features are separate columns.
func (t Table) Vector() string {
	if len(t.columns.Features) > 0 {
		return ""
	}
	return t.vector
}

// Named returns the checked rows with the column of vectors and the column of weights renamed
// to the user's names. It is meant for algorithms whose messages name the columns of their
// dataset.
func (t Table) Named() *engine.Dataset {
	d := t.Rows
	rename := func(from, to string) {
		if from != to {
			d = operators.Rename(d, from, to)
		}
	}
	weight := weightColumn
	if t.Weighted && t.vector == weightColumn {
		weight += "+" // makes the name available for the vector column
		rename(weightColumn, weight)
	}
	rename(vectorColumn, t.vector)
	if t.Weighted {
		rename(weight, t.columns.Weight)
	}
	return d
}

// features returns the name of the vector column and the dataset that has it. If c.Features is
// set, this dataset is d with an added vector column, in which the columns c.Features are
// joined.
func (c Columns) features(d *engine.Dataset, label LabelKind) (string, *engine.Dataset, error) {
	schema := arrowrows.Arrow(d.Schema())
	if err := CheckNames(c.Vector, c.Features, c.scalars(label)...); err != nil {
		return "", nil, err
	}
	switch {
	case c.Vector != "":
		return c.Vector, d, nil
	case len(c.Features) == 0:
		name, err := OnlyVector(schema)
		return name, d, err
	}
	for _, name := range c.Features {
		column := Column{Name: name, Use: Component, Option: "features"}
		if err := column.Bind(schema); err != nil {
			return "", nil, err
		}
	}
	if c.Skip {
		d = withoutNulls(d, c.Features)
	}
	name := "features"
	for schema.HasField(name) {
		name += "+"
	}
	return name, operators.Vectorize(d, name, c.Features...), nil
}

// withoutNulls returns d without the rows that have a null in one of the columns.
func withoutNulls(d *engine.Dataset, columns []string) *engine.Dataset {
	var at []int
	for _, name := range columns {
		i, _ := batch.FindColumn(arrowrows.Arrow(d.Schema()), name)
		at = append(at, i)
	}
	return operators.MapBatch(d, engine.Schema{}, func(c *engine.Context, in engine.Batch) (engine.Batch, error) {
		rows := arrowrows.Record(in)
		n := int(rows.NumRows())
		keep := make([]int32, 0, n)
		for row := range n {
			null := false
			for _, i := range at {
				null = null || rows.Column(i).IsNull(row)
			}
			if !null {
				keep = append(keep, int32(row))
			}
		}
		if len(keep) == n {
			rows.Retain()
			return arrowrows.Batch(rows), nil
		}
		c.Count(Skipped, int64(n-len(keep)))
		kept, err := batch.Take(c.Allocator, rows, keep)
		return arrowrows.Batch(kept), err
	})
}

// componentNames returns the names that messages use for the components of a vector in which
// the given columns are joined.
func componentNames(schema *arrow.Schema, columns []string) []string {
	var names []string
	for _, name := range columns {
		i, err := batch.FindColumn(schema, name)
		if err != nil {
			return nil
		}
		width := max(1, batch.VectorDim(schema.Field(i).Type))
		for k := range width {
			if width == 1 {
				names = append(names, fmt.Sprintf("column %q", name))
			} else {
				names = append(names, fmt.Sprintf("column %q: component %d", name, k))
			}
		}
	}
	return names
}
