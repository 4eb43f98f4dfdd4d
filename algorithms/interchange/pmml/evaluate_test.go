package pmml

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// value is the value of a field: a number, a text, or nil if it is missing.
type value any

// evaluation evaluates a document for a row, by the definitions of PMML 4.4.
type evaluation struct {
	t      testing.TB
	fields map[string]value
}

func missing(v value) bool { return v == nil }

func parsed(t testing.TB, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return v
}

// evaluate evaluates a document for a row, which has a value for each data field. It returns
// the derived fields, the predictions and the output fields.
func evaluate(t testing.TB, root *element, row map[string]value) map[string]value {
	e := evaluation{t, map[string]value{}}
	declared := root.child("DataDictionary").all("DataField")
	require.Equal(t, root.child("DataDictionary").attr("numberOfFields"), strconv.Itoa(len(declared)))
	for _, d := range declared {
		v := row[d.attr("name")]
		if v != nil && d.attr("dataType") == "string" {
			require.IsType(t, "", v)
		}
		e.fields[d.attr("name")] = v
	}
	if derived := root.child("TransformationDictionary"); derived != nil {
		for i := range derived.children {
			d := &derived.children[i]
			require.NotContains(t, e.fields, d.attr("name"))
			require.Len(t, d.children, 1)
			e.fields[d.attr("name")] = e.expression(&d.children[0])
		}
	}
	if m := root.child("RegressionModel"); m != nil {
		e.regression(m)
	}
	if m := root.child("GeneralRegressionModel"); m != nil {
		e.general(m)
	}
	if m := root.child("ClusteringModel"); m != nil {
		e.clustering(m)
	}
	return e.fields
}

func (e evaluation) field(name string) value {
	v, ok := e.fields[name]
	require.True(e.t, ok, "field %q is not there", name)
	return v
}

func (e evaluation) expression(x *element) value {
	switch x.name {
	case "FieldRef":
		return e.field(x.attr("field"))
	case "Constant":
		if x.attr("dataType") == "string" {
			return x.text
		}
		return parsed(e.t, x.text)
	case "Apply":
		var arguments []value
		for i := range x.children {
			arguments = append(arguments, e.expression(&x.children[i]))
		}
		return e.apply(x.attr("function"), arguments)
	case "MapValues":
		return e.mapValues(x)
	case "Discretize":
		return e.discretize(x)
	}
	require.Fail(e.t, "no expression", x.name)
	return nil
}

func (e evaluation) apply(function string, a []value) value {
	switch function {
	case "isMissing":
		return missing(a[0])
	case "if":
		switch {
		case missing(a[0]):
			return nil
		case a[0].(bool):
			return a[1]
		}
		return a[2]
	case "max":
		var most value
		for _, v := range a {
			if v != nil && (most == nil || v.(float64) > most.(float64)) {
				most = v
			}
		}
		return most
	}
	if slices.ContainsFunc(a, missing) {
		return nil
	}
	x := a[0].(float64)
	switch function {
	case "abs":
		return math.Abs(x)
	case "sqrt":
		return math.Sqrt(x)
	}
	y := a[1].(float64)
	switch function {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "equal":
		return x == y
	case "lessThan":
		return x < y
	case "greaterThan":
		return x > y
	}
	require.Fail(e.t, "no function", function)
	return nil
}

// otherwise returns the number in an attribute, or a missing value if there is no such
// attribute.
func (e evaluation) otherwise(x *element, attribute string) value {
	if text := x.attr(attribute); text != "" {
		return parsed(e.t, text)
	}
	return nil
}

func (e evaluation) mapValues(x *element) value {
	v := e.field(x.child("FieldColumnPair").attr("field"))
	if missing(v) {
		return e.otherwise(x, "mapMissingTo")
	}
	for _, row := range x.child("InlineTable").all("row") {
		if row.child(x.child("FieldColumnPair").attr("column")).text == v.(string) {
			return parsed(e.t, row.child(x.attr("outputColumn")).text)
		}
	}
	return e.otherwise(x, "defaultValue")
}

func (e evaluation) discretize(x *element) value {
	v := e.field(x.attr("field"))
	if missing(v) {
		return e.otherwise(x, "mapMissingTo")
	}
	for _, bin := range x.all("DiscretizeBin") {
		i := bin.child("Interval")
		low, high := math.Inf(-1), math.Inf(1)
		if text := i.attr("leftMargin"); text != "" {
			low = parsed(e.t, text)
		}
		if text := i.attr("rightMargin"); text != "" {
			high = parsed(e.t, text)
		}
		n := v.(float64)
		above, below := n > low, n < high
		switch i.attr("closure") {
		case "closedOpen":
			above = n >= low
		case "closedClosed":
			above, below = n >= low, n <= high
		case "openOpen":
		default:
			require.Fail(e.t, "no closure", i.attr("closure"))
		}
		if above && below {
			return parsed(e.t, bin.attr("binValue"))
		}
	}
	return e.otherwise(x, "defaultValue")
}

// target returns the field that a model predicts.
func target(m *element) string {
	for _, f := range m.child("MiningSchema").all("MiningField") {
		if f.attr("usageType") == "target" {
			return f.attr("name")
		}
	}
	return ""
}

func (e evaluation) regression(m *element) {
	var margins []float64
	var classes []string
	lacks := false
	for _, table := range m.all("RegressionTable") {
		sum := parsed(e.t, table.attr("intercept"))
		for _, p := range table.all("NumericPredictor") {
			v := e.field(p.attr("name"))
			if lacks = lacks || missing(v); !lacks {
				sum += parsed(e.t, p.attr("coefficient")) * v.(float64)
			}
		}
		margins, classes = append(margins, sum), append(classes, table.attr("targetCategory"))
	}
	require.Contains(e.t, e.fields, target(m))
	out := m.child("Output").all("OutputField")
	for _, o := range out {
		e.fields[o.attr("name")] = nil
	}
	if lacks {
		return
	}
	if m.attr("functionName") == "regression" {
		e.fields[out[0].attr("name")] = margins[0]
		return
	}
	p := make([]float64, len(margins))
	switch m.attr("normalizationMethod") {
	case "logit":
		rest := 1.0
		for k := range p[:len(p)-1] {
			p[k] = 1 / (1 + math.Exp(-margins[k]))
			rest -= p[k]
		}
		p[len(p)-1] = rest
	case "softmax":
		sum := 0.0
		for k, z := range margins {
			p[k] = math.Exp(z - slices.Max(margins))
			sum += p[k]
		}
		for k := range p {
			p[k] /= sum
		}
	}
	for _, o := range out {
		if o.attr("feature") == "predictedValue" {
			e.fields[o.attr("name")] = classes[slices.Index(p, slices.Max(p))]
		} else {
			e.fields[o.attr("name")] = p[slices.Index(classes, o.attr("value"))]
		}
	}
}

func (e evaluation) clustering(m *element) {
	require.Equal(e.t, "distance", m.child("ComparisonMeasure").attr("kind"))
	require.NotNil(e.t, m.child("ComparisonMeasure").child("euclidean"))
	best, id := math.Inf(1), ""
	for _, c := range m.all("Cluster") {
		sum := 0.0
		parts := strings.Fields(c.child("Array").text)
		require.Equal(e.t, c.child("Array").attr("n"), strconv.Itoa(len(parts)))
		for j, f := range m.all("ClusteringField") {
			v := e.field(f.attr("field"))
			if missing(v) {
				return
			}
			d := v.(float64) - parsed(e.t, parts[j])
			sum += d * d
		}
		if d := math.Sqrt(sum); d < best {
			best, id = d, c.attr("id")
		}
	}
	for _, o := range m.child("Output").all("OutputField") {
		if o.attr("feature") == "affinity" {
			e.fields[o.attr("name")] = best
		} else {
			e.fields[o.attr("name")] = parsed(e.t, id)
		}
	}
}

func (e evaluation) general(m *element) {
	require.Equal(e.t, "generalizedLinear", m.attr("modelType"))
	to := m.child("Output").child("OutputField").attr("name")
	e.fields[to] = nil
	terms := map[string]float64{}
	for _, p := range m.child("ParameterList").all("Parameter") {
		terms[p.attr("name")] = 1
	}
	for _, c := range m.child("PPMatrix").all("PPCell") {
		v := e.field(c.attr("predictorName"))
		if missing(v) {
			return
		}
		terms[c.attr("parameterName")] *= math.Pow(v.(float64), parsed(e.t, c.attr("value")))
	}
	sum := 0.0
	if name := m.attr("offsetVariable"); name != "" {
		sum = e.field(name).(float64)
	}
	for _, c := range m.child("ParamMatrix").all("PCell") {
		require.Contains(e.t, terms, c.attr("parameterName"))
		sum += parsed(e.t, c.attr("beta")) * terms[c.attr("parameterName")]
	}
	switch m.attr("linkFunction") {
	case "identity":
		e.fields[to] = sum
	case "log":
		e.fields[to] = math.Exp(sum)
	case "logit":
		e.fields[to] = 1 / (1 + math.Exp(-sum))
	case "power":
		e.fields[to] = math.Pow(sum, 1/parsed(e.t, m.attr("linkParameter")))
	default:
		require.Fail(e.t, "no link", m.attr("linkFunction"))
	}
}
