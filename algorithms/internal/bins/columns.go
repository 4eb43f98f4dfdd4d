package bins

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// layoutKind says whether each feature has its own column or all are in one vector column, and
// of which type the vectors are.
type layoutKind = rows.Layout

const (
	separate   = rows.SeparateColumns // columns of numbers and text
	denseRows  = rows.DenseRows       // type vector[d] or vector32[d]
	raggedRows = rows.RaggedRows      // type vector or vector32
	sparseRows = rows.SparseRows
)

// plan says which columns of a dataset are read, and what each is used for. It is created when
// the job is built, and does not change.
type plan struct {
	columns Columns
	options Options
	label   LabelKind
	schema  *arrow.Schema

	kind     layoutKind
	vector   int   // index of the vector column
	features []int // indices of the separate columns
	text     []bool
	coded    []bool // for each feature, whether its values are integer codes; nil for vectors, for which codedAt is used
	codedAt  map[int]bool
	dim      int // number of features; 0 if it is known only from the data

	labelAt, upperAt, weightAt, groupAt int // indices of these columns; −1 if there is no such column
	marginsAt                           []int
	lenient                             bool // for an evaluation set: invalid codes are missing values

	reads []rows.Column // the columns whose values a rows.Checker checks
}

// newPlan finds the columns in schema. lenient is set for evaluation sets: an invalid code of a
// category is then a missing value instead of an error.
func newPlan(schema *arrow.Schema, c Columns, label LabelKind, o Options, lenient bool) (*plan, error) {
	if o.MaxBins == 0 {
		o.MaxBins = MaxBins
	}
	if o.MaxBins < 2 || o.MaxBins > MaxBins {
		return nil, fmt.Errorf("at most %d bins are asked for; it must be 2 to %d", o.MaxBins, MaxBins)
	}
	p := &plan{columns: c, options: o, label: label, schema: schema, lenient: lenient, vector: -1, labelAt: -1, upperAt: -1, weightAt: -1, groupAt: -1}
	if err := c.checkNames(label); err != nil {
		return nil, err
	}
	if err := p.findFeatures(); err != nil {
		return nil, err
	}
	return p, p.findScalars()
}

// scalars returns the columns that are read in addition to the features.
func (c Columns) scalars(label LabelKind) []rows.Column {
	var all []rows.Column
	if label != NoLabel {
		labels := rows.Labels(c.Label, label)
		if c.LabelUpper != "" {
			labels.Least = rows.Any.Least
		}
		all = append(all, labels)
	}
	upper := rows.Column{Name: c.LabelUpper, Role: upperRole, Range: rows.Finite}
	upper.Most = rows.Any.Most
	others := []rows.Column{upper, rows.Weights(c.Weight), {Name: c.Group, Role: "group", Use: rows.Scalar, Range: rows.Finite}}
	for _, name := range c.Margins {
		others = append(others, rows.Column{Name: name, Role: "margin", Range: rows.Finite})
	}
	for _, c := range others {
		if c.Name != "" {
			all = append(all, c)
		}
	}
	return all
}

const upperRole = "upper end of the label"

// checkNames returns all errors about the names of the columns.
func (c Columns) checkNames(label LabelKind) error {
	errs := append(c.Validate(label), rows.CheckNames(c.Vector, c.Features, c.scalars(label)...))
	if slices.Contains(c.Margins, "") {
		errs = append(errs, errors.New("a column has an empty name"))
	}
	if label == NoLabel && c.Label != "" {
		errs = append(errs, fmt.Errorf("label column %q is named, but no label is read", c.Label))
	}
	if c.LabelUpper != "" && label != NumberLabel {
		errs = append(errs, errors.New("an upper end of the label is named, but labels are not numbers"))
	}
	return errors.Join(errs...)
}

// findFeatures finds the columns of the features.
func (p *plan) findFeatures() error {
	if len(p.columns.Features) > 0 {
		return p.findSeparate()
	}
	name := p.columns.Vector
	if name == "" {
		var err error
		if name, err = rows.OnlyVector(p.schema); err != nil {
			return err
		}
	}
	vector := rows.Column{Name: name, Use: rows.Vector, Range: rows.Any, Help: "name columns that are features each as features"}
	if err := vector.Bind(p.schema); err != nil {
		return err
	}
	p.reads = append(p.reads, vector)
	dt := p.schema.Field(vector.At).Type
	p.vector, p.dim, p.kind = vector.At, batch.VectorDim(dt), rows.LayoutOf(dt)
	p.codedAt = map[int]bool{}
	for _, at := range p.columns.CategoricalAt {
		if at < 0 || p.dim > 0 && at >= p.dim {
			return fmt.Errorf("categorical component %d is not one of column %q, which has %d", at, name, p.dim)
		}
		p.codedAt[at] = true
	}
	return nil
}

// codes is the range of the codes of categories.
var codes = rows.Range{
	Most: MaxCategory, Whole: true,
	Want: fmt.Sprintf("codes of categories are the integers from 0 to %d; use text for other categories", MaxCategory),
}

// findSeparate finds the columns of the features if each feature has its own column.
func (p *plan) findSeparate() error {
	p.kind, p.dim = separate, len(p.columns.Features)
	for _, name := range p.columns.Features {
		i, err := batch.FindColumn(p.schema, name)
		if err != nil {
			return fmt.Errorf("features: %w", err)
		}
		dt := p.schema.Field(i).Type
		coded := slices.Contains(p.columns.Categorical, name)
		text := dt.ID() == arrow.STRING
		if !text && !batch.IsNumber(dt) {
			return fmt.Errorf("features: column %q is %s: features are numbers, bools and text", name, batch.TypeName(dt))
		}
		p.features = append(p.features, i)
		p.text = append(p.text, text)
		p.coded = append(p.coded, coded && !text)
		if coded && !text && !p.lenient && (dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32) {
			return fmt.Errorf("features: column %q is categorical and %s: categories are text or integers", name, batch.TypeName(dt))
		}
		category := rows.Column{Name: name, Role: "category", At: i, Range: codes, Missing: true, Required: true}
		if text {
			category.Use = rows.Class
		}
		if text || coded && !p.lenient {
			p.reads = append(p.reads, category)
		}
	}
	return nil
}

// findScalars finds the columns that are read in addition to the features.
func (p *plan) findScalars() error {
	var errs []error
	for _, c := range p.columns.scalars(p.label) {
		errs = append(errs, c.Bind(p.schema))
		p.reads = append(p.reads, c)
		switch c.Role {
		case "label":
			p.labelAt = c.At
		case upperRole:
			p.upperAt = c.At
		case "weight":
			p.weightAt = c.At
		case "group":
			p.groupAt = c.At
		default:
			p.marginsAt = append(p.marginsAt, c.At)
		}
	}
	return errors.Join(errs...)
}

// categorical returns two booleans: whether a feature is categorical, and whether it is a text
// column.
func (p *plan) categorical(feature int) (is, text bool) {
	if p.kind == separate {
		return p.text[feature] || p.coded[feature], p.text[feature]
	}
	return p.codedAt[feature], false
}

// categories returns the numbers of the categorical features in ascending order.
func (p *plan) categories() []int {
	var all []int
	if p.kind == separate {
		for j := range p.features {
			if is, _ := p.categorical(j); is {
				all = append(all, j)
			}
		}
		return all
	}
	for j := range p.codedAt {
		all = append(all, j)
	}
	slices.Sort(all)
	return all
}

// nameOf returns the name of a feature in messages and trees.
func (p *plan) nameOf(feature int) string {
	if p.kind == separate {
		return p.columns.Features[feature]
	}
	return fmt.Sprintf("f%d", feature)
}

// describe returns the name of a feature's column and, for a vector, also of its component, for
// messages about rows.
func (p *plan) describe(feature int) string {
	if p.kind == separate {
		return fmt.Sprintf("column %q", p.columns.Features[feature])
	}
	return fmt.Sprintf("column %q: component %d", p.schema.Field(p.vector).Name, feature)
}

// attrs returns the attributes that the printed plan of the job shows for the operator.
func (p *plan) attrs() []engine.Attr {
	c := p.columns
	features := strings.Join(c.Features, " ")
	if p.kind != separate {
		features = p.schema.Field(p.vector).Name
	}
	attrs := []engine.Attr{{Key: "features", Value: features}}
	for _, a := range []engine.Attr{
		{Key: "label", Value: c.Label}, {Key: "upper label", Value: c.LabelUpper}, {Key: "weight", Value: c.Weight},
		{Key: "margins", Value: strings.Join(c.Margins, " ")}, {Key: "group", Value: c.Group},
	} {
		if a.Value != "" {
			attrs = append(attrs, a)
		}
	}
	if c.Skip {
		attrs = append(attrs, engine.Attr{Key: "unusable rows", Value: "skip"})
	}
	return attrs
}
