package rows

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// Columns of the checked rows.
const (
	vectorColumn = "vector"
	labelColumn  = "label"
	weightColumn = "weight"
	offsetColumn = "offset"
	censorColumn = "censor"
)

// layout is how the features of a dataset are held.
type layout int

const (
	denseRows  layout = iota // vector[d]
	raggedRows               // vector: of one length, which the data show
	sparseRows               // sparse, sparse[d]
)

// Check adds to a job the operator that checks rows and joins those of a shard into one
// batch, and the queue that learns the facts about all of them. op, such as
// "logistic.Train", names that queue. What is wrong with the columns is returned, without
// op; what is wrong with rows fails the run.
//
// The checked rows are held once: the queue of the facts and those that train share them.
func Check(op string, d *engine.Dataset, c Columns, label LabelKind) (Table, error) {
	if d.Poisoned() {
		return Table{Rows: d, Facts: d, Label: label}, nil
	}
	vector, from, err := c.features(d)
	if err != nil {
		return Table{}, err
	}
	t := Table{Label: label, columns: c, vector: vector}
	if err := t.describe(arrowrows.Arrow(from.Schema())); err != nil {
		return Table{}, err
	}
	schema := from.Schema()
	t.names = componentNames(arrowrows.Arrow(d.Schema()), c.Features)
	checker := rowChecker{table: t}
	i, _ := batch.FindColumn(arrowrows.Arrow(schema), vector)
	fields := []arrow.Field{{Name: vectorColumn, Type: doublePrecision(arrowrows.Arrow(schema).Field(i).Type)}}
	checker.sources = append(checker.sources, source{column: i, name: vector, kind: featuresSource})
	attrs := []engine.Attr{{Key: "features", Value: strings.Join(append([]string{c.Vector}, c.Features...), " ")}}
	if c.Vector == "" && len(c.Features) == 0 {
		attrs[0].Value = vector
	} else {
		attrs[0].Value = strings.TrimSpace(attrs[0].Value)
	}
	for _, s := range c.scalars(label) {
		i, err := batch.FindColumn(arrowrows.Arrow(schema), s.name)
		if err != nil {
			return Table{}, fmt.Errorf("%s: %w", s.role(), err)
		}
		dt := arrowrows.Arrow(schema).Field(i).Type
		if err := s.takes(dt); err != nil {
			return Table{}, err
		}
		field := arrow.Field{Name: s.as(), Type: arrow.PrimitiveTypes.Float64}
		if s.kind == classSource {
			field.Type = dt
			t.labelType = batch.TypeName(dt)
		}
		s.column = i
		checker.sources = append(checker.sources, s)
		fields = append(fields, field)
		attrs = append(attrs, engine.Attr{Key: s.role(), Value: s.name})
	}
	if c.Skip {
		attrs = append(attrs, engine.Attr{Key: "unusable rows", Value: "skip"})
	}
	checked := arrow.NewSchema(fields, nil)
	checker.schema = checked
	t.Rows = d.Builder().Add(engine.Spec{
		Op:       "CheckRows",
		Attrs:    attrs,
		Schema:   arrowrows.Schema(checked),
		Inputs:   []engine.Port{{From: from}},
		RowByRow: !c.Skip,
		Operator: func() engine.Operator {
			own := checker
			return Joined(own.check)
		},
	})
	t.Facts = t.survey(d.Builder(), op)
	return t, nil
}

// describe notes how the features are laid out, and what columns there are.
func (t *Table) describe(schema *arrow.Schema) error {
	i, err := batch.FindColumn(schema, t.vector)
	if err != nil {
		return err
	}
	dt := schema.Field(i).Type
	if !batch.IsVector(dt) {
		return fmt.Errorf("column %q is %s, not a vector: name number columns as features, or make a vector of them with operators.Vectorize", t.vector, batch.TypeName(dt))
	}
	switch dt.(type) {
	case *arrow.FixedSizeListType:
		t.layout = denseRows
	case *arrow.ListType:
		t.layout = raggedRows
	default:
		t.layout = sparseRows
	}
	t.dim = batch.VectorDim(dt)
	t.Sparse = t.layout == sparseRows
	t.Weighted, t.Shifted, t.Censored = t.columns.Weight != "", t.columns.Offset != "", t.columns.Censor != ""
	return nil
}

// Dim returns the number of features where the column's type tells it, else 0.
func (t Table) Dim() int { return t.dim }

// Vector returns the name of the vector column, "" where number columns are joined.
func (t Table) Vector() string {
	if len(t.columns.Features) > 0 {
		return ""
	}
	return t.vector
}

// Named returns the checked rows with the names that vector and weights have for the user,
// for an algorithm that takes a dataset and tells of its columns.
func (t Table) Named() *engine.Dataset {
	d := t.Rows
	rename := func(from, to string) {
		if from != to {
			d = operators.Rename(d, from, to)
		}
	}
	weight := weightColumn
	if t.Weighted && t.vector == weightColumn {
		weight += "+" // it makes room
		rename(weightColumn, weight)
	}
	rename(vectorColumn, t.vector)
	if t.Weighted {
		rename(weight, t.columns.Weight)
	}
	return d
}

// LabelType returns the type of the label column of a ClassLabel, as schemas print it.
func (t Table) LabelType() string { return t.labelType }

// features returns the vector column, and the dataset that has it: with Features, d and
// a column that joins them.
func (c Columns) features(d *engine.Dataset) (string, *engine.Dataset, error) {
	schema := d.Schema()
	if c.Vector != "" && len(c.Features) > 0 {
		return "", nil, fmt.Errorf("both a vector column, %q, and feature columns are named: name one or the others", c.Vector)
	}
	if err := c.distinct(); err != nil {
		return "", nil, err
	}
	if len(c.Features) == 0 {
		name, err := c.onlyVector(arrowrows.Arrow(schema))
		return name, d, err
	}
	for _, name := range c.Features {
		i, err := batch.FindColumn(arrowrows.Arrow(schema), name)
		if err != nil {
			return "", nil, fmt.Errorf("features: %w", err)
		}
		if dt := arrowrows.Arrow(schema).Field(i).Type; !isNumber(dt) && dt.ID() != arrow.FIXED_SIZE_LIST {
			return "", nil, fmt.Errorf("features: column %q is %s, not a number", name, batch.TypeName(dt))
		}
	}
	if c.Skip {
		d = withoutNulls(d, c.Features)
	}
	name := "features"
	for arrowrows.Arrow(schema).HasField(name) {
		name += "+"
	}
	return name, operators.Vectorize(d, name, c.Features...), nil
}

// onlyVector returns the vector column named, or the only one there is.
func (c Columns) onlyVector(schema *arrow.Schema) (string, error) {
	if c.Vector != "" {
		_, err := batch.FindColumn(schema, c.Vector)
		return c.Vector, err
	}
	var found []string
	for _, f := range schema.Fields() {
		if batch.IsVector(f.Type) {
			found = append(found, f.Name)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("no features are named, and there is no vector column: name a vector column or number columns")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("no features are named, and there are several vector columns (%s): name one", strings.Join(found, ", "))
}

// distinct checks that no column is named twice.
func (c Columns) distinct() error {
	seen := map[string]string{}
	note := func(role, name string) error {
		if name == "" {
			return nil
		}
		if other, ok := seen[name]; ok {
			return fmt.Errorf("column %q is named both as %s and as %s", name, other, role)
		}
		seen[name] = role
		return nil
	}
	errs := []error{note("vector", c.Vector)}
	for _, f := range c.Features {
		if f == "" {
			errs = append(errs, errors.New("a feature column has an empty name"))
		}
		errs = append(errs, note("feature", f))
	}
	errs = append(errs, note("label", c.Label), note("weight", c.Weight), note("offset", c.Offset), note("censor", c.Censor))
	return errors.Join(errs...)
}

// withoutNulls leaves rows out in which one of the columns is null.
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
		c.Count(skippedRows, int64(n-len(keep)))
		kept, err := batch.Take(c.Allocator, rows, keep)
		return arrowrows.Batch(kept), err
	})
}

// componentNames returns, for features joined of columns, the column of each component.
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
