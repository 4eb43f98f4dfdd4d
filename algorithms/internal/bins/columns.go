package bins

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// layoutKind is how the features of a dataset are held.
type layoutKind int

const (
	separate   layoutKind = iota // columns of numbers and text
	denseRows                    // vector[d], vector32[d]
	raggedRows                   // vector, vector32: of one length, which the data show
	sparseRows                   // sparse, sparse[d]
)

// plan says which columns of a dataset are read and as what: what is known when the job is
// built. It does not change.
type plan struct {
	columns Columns
	options Options
	label   LabelKind
	schema  *arrow.Schema

	kind     layoutKind
	vector   int   // number of the vector's column
	features []int // of the separate columns
	text     []bool
	coded    []bool // by feature; nil for vectors, where codedAt tells
	codedAt  map[int]bool
	dim      int // 0 where only the data show it

	labelAt, upperAt, weightAt, groupAt int // −1: none
	marginsAt                           []int
	lenient                             bool // codes need not be codes: an evaluation set's
}

// newPlan resolves the names.
func newPlan(schema *arrow.Schema, c Columns, label LabelKind, o Options) (*plan, error) {
	if o.MaxBins == 0 {
		o.MaxBins = MaxBins
	}
	if o.MaxBins < 2 || o.MaxBins > MaxBins {
		return nil, fmt.Errorf("at most %d bins are asked for; it must be 2 to %d", o.MaxBins, MaxBins)
	}
	p := &plan{columns: c, options: o, label: label, schema: schema, vector: -1, labelAt: -1, upperAt: -1, weightAt: -1, groupAt: -1}
	if err := c.distinct(label); err != nil {
		return nil, err
	}
	if err := p.findFeatures(); err != nil {
		return nil, err
	}
	return p, p.findScalars()
}

// distinct checks that no column is named twice.
func (c Columns) distinct(label LabelKind) error {
	if c.Vector != "" && len(c.Features) > 0 {
		return fmt.Errorf("both a vector column, %q, and feature columns are named: name one or the others", c.Vector)
	}
	seen := map[string]string{}
	var errs []error
	note := func(role string, names ...string) {
		for _, name := range names {
			if other, ok := seen[name]; ok && name != "" {
				errs = append(errs, fmt.Errorf("column %q is named both as %s and as %s", name, other, role))
			}
			seen[name] = role
		}
	}
	note("vector", c.Vector)
	note("feature", c.Features...)
	note("label", c.Label)
	note("upper end of the label", c.LabelUpper)
	note("weight", c.Weight)
	note("margin", c.Margins...)
	note("group", c.Group)
	if slices.Contains(c.Features, "") || slices.Contains(c.Margins, "") {
		errs = append(errs, errors.New("a column has an empty name"))
	}
	for _, name := range c.Categorical {
		if !slices.Contains(c.Features, name) {
			errs = append(errs, fmt.Errorf("categorical column %q is not among the features; of a vector's components tell the numbers", name))
		}
	}
	if len(c.CategoricalAt) > 0 && len(c.Features) > 0 {
		errs = append(errs, errors.New("categorical components are named, but the features are columns: name those that are categorical"))
	}
	if label == NoLabel && c.Label != "" {
		errs = append(errs, fmt.Errorf("label column %q is named where none is read", c.Label))
	}
	if label != NoLabel && c.Label == "" {
		errs = append(errs, errors.New("no label column is named"))
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
		var found []string
		for _, f := range p.schema.Fields() {
			if batch.IsVector(f.Type) {
				found = append(found, f.Name)
			}
		}
		switch len(found) {
		case 0:
			return errors.New("no features are named, and there is no vector column: name a vector column or feature columns")
		case 1:
			name = found[0]
		default:
			return fmt.Errorf("no features are named, and there are several vector columns (%s): name one", strings.Join(found, ", "))
		}
	}
	i, err := batch.FindColumn(p.schema, name)
	if err != nil {
		return err
	}
	dt := p.schema.Field(i).Type
	if !batch.IsVector(dt) {
		return fmt.Errorf("column %q is %s, not a vector: name columns that are features each as features", name, batch.TypeName(dt))
	}
	p.vector, p.dim = i, batch.VectorDim(dt)
	switch dt.(type) {
	case *arrow.FixedSizeListType:
		p.kind = denseRows
	case *arrow.ListType:
		p.kind = raggedRows
	default:
		p.kind = sparseRows
	}
	p.codedAt = map[int]bool{}
	for _, at := range p.columns.CategoricalAt {
		if at < 0 || p.dim > 0 && at >= p.dim {
			return fmt.Errorf("categorical component %d is not one of column %q, which has %d", at, name, p.dim)
		}
		p.codedAt[at] = true
	}
	return nil
}

// findSeparate finds features that are columns each.
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
		if !text && !isNumber(dt) {
			return fmt.Errorf("features: column %q is %s: features are numbers, bools and text", name, batch.TypeName(dt))
		}
		p.features = append(p.features, i)
		p.text = append(p.text, text)
		p.coded = append(p.coded, coded && !text)
	}
	return nil
}

// checkCodes tells which column of codes has no integers. That of an evaluation set may have
// others: what is no code is missing there.
func (p *plan) checkCodes() error {
	for j, coded := range p.coded {
		if dt := p.schema.Field(p.features[j]).Type; coded && !arrow.IsInteger(dt.ID()) && dt.ID() != arrow.BOOL {
			return fmt.Errorf("features: column %q is categorical and %s: categories are text or integers", p.columns.Features[j], batch.TypeName(dt))
		}
	}
	return nil
}

// findScalars finds the columns besides the features.
func (p *plan) findScalars() error {
	find := func(role, name string, takes func(arrow.DataType) bool, want string) (int, error) {
		if name == "" {
			return -1, nil
		}
		i, err := batch.FindColumn(p.schema, name)
		if err != nil {
			return -1, fmt.Errorf("%s: %w", role, err)
		}
		if dt := p.schema.Field(i).Type; !takes(dt) {
			return -1, fmt.Errorf("%s: column %q is %s, not %s", role, name, batch.TypeName(dt), want)
		}
		return i, nil
	}
	c := p.columns
	labels, want := isNumber, "a number"
	if p.label == ClassLabel {
		labels, want = isClass, "numbers, text, bools, dates or times, which classes are"
	}
	var errs [5]error
	if p.label != NoLabel {
		p.labelAt, errs[0] = find("label", c.Label, labels, want)
	}
	p.upperAt, errs[1] = find("upper end of the label", c.LabelUpper, isNumber, "a number")
	p.weightAt, errs[2] = find("weight", c.Weight, isNumber, "a number")
	p.groupAt, errs[3] = find("group", c.Group, func(dt arrow.DataType) bool { return isClass(dt) || dt.ID() == arrow.BINARY }, "a scalar")
	for _, name := range c.Margins {
		at, err := find("margin", name, isNumber, "a number")
		p.marginsAt = append(p.marginsAt, at)
		errs[4] = errors.Join(errs[4], err)
	}
	return errors.Join(errs[:]...)
}

// categorical tells whether a feature is, and whether it is text.
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

// nameOf is what messages and trees call a feature.
func (p *plan) nameOf(feature int) string {
	if p.kind == separate {
		return p.columns.Features[feature]
	}
	return fmt.Sprintf("f%d", feature)
}

// describe is how messages about a value of a row call the place of it.
func (p *plan) describe(feature int) string {
	if p.kind == separate {
		return fmt.Sprintf("column %q", p.columns.Features[feature])
	}
	return fmt.Sprintf("column %q: component %d", p.schema.Field(p.vector).Name, feature)
}

// attrs are what the plan of the job shows.
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

// isNumber says that a column can be taken as float64: numbers, and bools as 0 and 1.
func isNumber(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32 || dt.ID() == arrow.BOOL
}

// isClass says that the values of a column can be classes.
func isClass(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRING, arrow.DATE32, arrow.TIMESTAMP:
		return true
	}
	return isNumber(dt)
}
