package pmml

import (
	"cmp"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// Null and NaN are represented by PMML's missing value, which propagates through expressions as
// NaN does. A value that a preparation refuses becomes missing, and so does everything computed
// from it. PMML cannot leave rows out.

// policy checks the policy for unknown values. It returns whether unknown values are kept as a
// category of their own.
func (b *builder) policy(u prepare.Unknown) (keep bool) {
	if u == prepare.Skip {
		b.fail("it skips rows with unknown values, and PMML cannot leave rows out: train it with another policy")
	}
	return u == prepare.Keep
}

// each derives the n fields of the column to from the n fields of the column from, which has
// numbers.
func (b *builder) each(from, to string, n int, expression func(j int, x element) element) {
	fields := b.numbers(from, n)
	if b.err != nil {
		return
	}
	kind := "float64"
	vector := model.IsVector(b.columns[from].kind)
	if vector {
		kind = "vector"
	}
	var made []string
	for j, f := range fields {
		made = append(made, b.deriveNumber(componentName(to, j, vector), expression(j, fieldRef(f))))
	}
	b.output(to, kind, made...)
}

func (b *builder) scaler(m *prepare.ScalerModel) {
	for i, name := range m.Columns {
		if len(m.Shift[i]) == 0 {
			b.fail("column %q has no components", name)
			return
		}
		b.each(name, m.Outputs[i], len(m.Shift[i]), func(j int, x element) element {
			x = apply("/", apply("-", x, b.constant(m.Shift[i][j])), b.constant(m.Scale[i][j]))
			if m.Width != 1 {
				x = apply("*", x, b.constant(m.Width))
			}
			if m.Low != 0 {
				x = apply("+", x, b.constant(m.Low))
			}
			if m.Clip { // "if" is needed, because min and max ignore missing values
				low, high := b.constant(m.Low), b.constant(m.Low+m.Width)
				x = apply("if", apply("lessThan", x, low), low, apply("if", apply("greaterThan", x, high), high, x))
			}
			return x
		})
	}
}

func (b *builder) imputer(m *prepare.ImputerModel) {
	p := m.Params
	for i, name := range p.Columns {
		fill, out := m.Fills[i], prepare.OutputNames(p.Columns, p.Outputs)[i]
		put := func(x, value element) element { return apply("if", apply("isMissing", x), value, x) }
		if n := len(fill.Numbers); n > 0 {
			b.each(name, out, n, func(j int, x element) element { return put(x, b.constant(fill.Numbers[j])) })
			continue
		}
		c := b.find(name, 1)
		if c.text {
			value := el("Constant", "dataType", "string")
			value.text = fill.Value
			b.output(out, c.kind, b.derive(out, "categorical", "string", put(fieldRef(c.fields[0]), value)))
			continue
		}
		v, err := prepare.CategoryNumber(c.kind, fill.Value)
		if err != nil {
			b.fail("column %q: %w", name, err)
		}
		b.output(out, c.kind, b.deriveNumber(out, put(fieldRef(c.fields[0]), b.constant(v))))
	}
}

// index returns an expression for the numbers of a column's categories, counted from first.
// Values that are not categories become the value of otherwise. Missing values become the value
// of absent, or remain missing if absent is "".
func (b *builder) index(name string, values []string, first int, otherwise, absent string) element {
	c := b.find(name, 1)
	var options []string
	if otherwise != "" {
		options = []string{"defaultValue", otherwise}
	}
	if absent != "" {
		options = append(options, "mapMissingTo", absent)
	}
	if c.text {
		table := el("InlineTable")
		for i, text := range values {
			from, to := el("from"), el("to")
			from.text, to.text = text, strconv.Itoa(first+i)
			table.children = append(table.children, el("row").with(from, to))
		}
		return el("MapValues", append([]string{"outputColumn", "to", "dataType", "integer"}, options...)...).
			with(el("FieldColumnPair", "field", c.fields[0], "column", "from"), table)
	}
	e := el("Discretize", append([]string{"field", c.fields[0], "dataType", "integer"}, options...)...)
	for i, text := range values {
		v, err := prepare.CategoryNumber(c.kind, text)
		if err != nil {
			b.fail("column %q: %w", name, err)
		}
		e.children = append(e.children, el("DiscretizeBin", "binValue", strconv.Itoa(first+i)).
			with(el("Interval", "closure", "closedClosed", "leftMargin", number(v), "rightMargin", number(v))))
	}
	return e
}

func (b *builder) indexer(m *prepare.IndexerModel) {
	p := m.Params
	otherwise := func(i int) string { return "" }
	if b.policy(p.Unknown) {
		otherwise = func(i int) string { return strconv.Itoa(len(m.Values[i])) }
	}
	for i, name := range p.Columns {
		out := prepare.OutputNames(p.Columns, p.Outputs)[i]
		b.output(out, "int64", b.derive(out, "continuous", "integer", b.index(name, m.Values[i], 0, otherwise(i), otherwise(i))))
	}
}

func (b *builder) oneHot(m *prepare.OneHotModel) {
	p := m.Params
	first, otherwise := 0, ""
	switch {
	case b.policy(p.Unknown):
		first, otherwise = 1, "0"
	case p.Unknown == prepare.Zeros, p.Unknown == prepare.Shares:
		otherwise = "-1"
	}
	absent := otherwise
	if p.RefuseMissing || p.NullMissing {
		absent = ""
	}
	for i, name := range p.Columns {
		out, size := prepare.OutputNames(p.Columns, p.Outputs)[i], m.Size(i)
		if size < 1 {
			b.fail("column %q has one value, and so no components", name)
			return
		}
		at := b.derive(out+" number", "continuous", "integer", b.index(name, m.Values[i], first, otherwise, absent))
		var made []string
		for k := range size {
			// The constant has the type integer, because programs may distinguish it from the
			// same number of another type.
			numbered := func(n int) element {
				which := el("Constant", "dataType", "integer")
				which.text = strconv.Itoa(n)
				return apply("equal", fieldRef(at), which)
			}
			otherwise := b.constant(0)
			if p.Unknown == prepare.Shares {
				otherwise = apply("if", numbered(-1), b.constant(m.Shares[i][k]), b.constant(0))
			}
			made = append(made, b.deriveNumber(componentName(out, k, true), apply("if", numbered(k), b.constant(1), otherwise)))
		}
		b.output(out, "sparse", made...)
	}
}

func (b *builder) buckets(m *prepare.BucketModel) {
	keep := b.policy(m.Unknown)
	for i, name := range m.Columns {
		bounds := m.Bounds[i]
		field := b.numbers(name, 1)[0]
		e := el("Discretize", "field", field, "dataType", "integer")
		if keep {
			e = el("Discretize", "field", field, "dataType", "integer", "mapMissingTo", strconv.Itoa(len(bounds)+1))
		}
		for k := range len(bounds) + 1 {
			interval := el("Interval", "closure", "closedOpen")
			if k == 0 {
				interval = el("Interval", "closure", "openOpen")
			} else {
				interval.attrs = append(interval.attrs, attr{"leftMargin", number(bounds[k-1])})
			}
			if k < len(bounds) {
				interval.attrs = append(interval.attrs, attr{"rightMargin", number(bounds[k])})
			}
			e.children = append(e.children, el("DiscretizeBin", "binValue", strconv.Itoa(k)).with(interval))
		}
		b.output(m.Outputs[i], "int64", b.derive(m.Outputs[i], "continuous", "integer", e))
	}
}

// assembler adds no fields, because a vector consists of the fields of its components.
func (b *builder) assembler(m *prepare.AssemblerModel) {
	b.policy(m.Params.Unknown)
	b.output(cmp.Or(m.Params.Output, "features"), "vector", b.join(m.Params.Columns, m.Sizes)...)
}

func (b *builder) normalizer(m *prepare.NormalizerModel) {
	p := m.Params
	for i, name := range p.Columns {
		fields, out := b.numbers(name, 0), prepare.OutputNames(p.Columns, p.Outputs)[i]
		if b.err != nil {
			return
		}
		var squares, sizes []element
		for _, f := range fields {
			squares, sizes = append(squares, apply("*", fieldRef(f), fieldRef(f))), append(sizes, apply("abs", fieldRef(f)))
		}
		var length element
		switch p.Norm {
		case prepare.L2:
			length = apply("sqrt", sum(squares))
		case prepare.L1:
			length = sum(sizes)
		default: // the second part is missing if a component is missing, while max ignores missing components
			length = apply("+", apply("max", sizes...), apply("*", b.constant(0), sum(sizes)))
		}
		raw := b.deriveNumber(out+" length", length)
		// Vectors of zeros are not changed.
		by := b.deriveNumber(out+" divisor", apply("if", apply("equal", fieldRef(raw), b.constant(0)), b.constant(1), fieldRef(raw)))
		b.each(name, out, len(fields), func(_ int, x element) element { return apply("/", x, fieldRef(by)) })
	}
}

func (b *builder) pca(m *prepare.PCAModel) {
	fields, out := b.join(m.Params.Columns, m.Sizes), cmp.Or(m.Params.Output, "components")
	if b.err != nil {
		return
	}
	var centred, made []string
	for j, f := range fields {
		centred = append(centred, b.deriveNumber(componentName(out+" centred", j, true), apply("-", fieldRef(f), b.constant(m.Mean[j]))))
	}
	for k, direction := range m.Components {
		var terms []element
		for j, v := range direction {
			terms = append(terms, apply("*", fieldRef(centred[j]), b.constant(v)))
		}
		e := sum(terms)
		if m.Params.Whiten {
			by := b.constant(math.Sqrt(m.Variance[k]))
			if e = apply("/", e, by); m.Variance[k] == 0 {
				e = b.constant(0)
			}
		}
		made = append(made, b.deriveNumber(componentName(out, k, true), e))
	}
	b.output(out, "vector", made...)
}

// polynomial derives each product from an earlier product and a component.
func (b *builder) polynomial(m *prepare.PolynomialModel) {
	p := m.Params
	fields, out := b.join(p.Columns, m.Sizes), cmp.Or(p.Output, "features")
	degree := cmp.Or(p.Degree, 2)
	type product struct {
		field string
		last  int
	}
	var made []string
	var before []product
	if p.Bias {
		made = append(made, b.deriveNumber(componentName(out, 0, true), b.constant(1)))
	}
	for j, f := range fields {
		made, before = append(made, f), append(before, product{f, j})
	}
	for ; degree > 1; degree-- {
		var next []product
		for _, q := range before {
			first := q.last
			if p.InteractionOnly {
				first++
			}
			for j := first; j < len(fields) && b.err == nil; j++ {
				f := b.deriveNumber(componentName(out, len(made), true), apply("*", fieldRef(q.field), fieldRef(fields[j])))
				made, next = append(made, f), append(next, product{f, j})
			}
		}
		before = next
	}
	b.output(out, "vector", made...)
}
