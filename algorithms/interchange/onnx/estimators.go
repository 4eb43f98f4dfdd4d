package onnx

import (
	"cmp"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// features returns the tensor of the features that have coefficients.
func (b *builder) features(m *linearmodel.Model) string {
	if len(m.Coefficients[0]) == 0 {
		b.fail("it has no coefficients")
		return ""
	}
	var names []string
	var widths []int
	for _, in := range m.Reads {
		names, widths = append(names, in.Column), append(widths, max(1, model.VectorDim(in.Type)))
	}
	x := b.join(names, widths)
	if m.Columns != nil {
		at := make([]int64, len(m.Columns))
		for k, j := range m.Columns {
			at[k] = int64(j)
		}
		x = b.gather(x, at)
	}
	return x
}

// margins returns the tensor of the margins of the rows.
func (b *builder) margins(m *linearmodel.Model) string {
	x := b.features(m)
	if b.err != nil {
		return ""
	}
	w := b.learnedRows("coefficients", m.Coefficients, "coefficients")
	z := b.op("Gemm", []string{x, w, b.learned("intercepts", m.Intercepts, "intercepts")}, intAttr("transB", 1))
	return b.addOffset(z, m.OffsetCol)
}

func (b *builder) addOffset(z, column string) string {
	if column == "" {
		return z
	}
	return b.op("Add", []string{z, b.numbers(column, 1)})
}

// regression adds the margin as the column prediction.
func (b *builder) regression(m *linearmodel.Model, prediction string) {
	b.output(cmp.Or(prediction, "prediction"), b.margin(m), b.real, 1, "float64")
}

// margin returns the only margin of a model. It uses ONNX-ML's operator LinearRegressor if the
// graph computes in float32, because the coefficients of that operator are float32.
func (b *builder) margin(m *linearmodel.Model) string {
	if b.real == typeFloat {
		return b.regressor(m)
	}
	return b.margins(m)
}

// glm adds a prediction of the mean, computed by the inverse of the link.
func (b *builder) glm(m *glm.Model) {
	y := b.margin(&m.Model)
	if b.err != nil {
		return
	}
	switch m.Link {
	case glm.Log:
		y = b.op("Exp", []string{y})
	case glm.Logit:
		y = b.op("Sigmoid", []string{y})
	case glm.Inverse:
		y = b.op("Div", []string{b.constant("one", 1), y})
	case glm.Identity:
	default:
		b.fail("there is no operator for the link %v", m.Link)
	}
	b.output(cmp.Or(m.PredictionCol, "prediction"), y, b.real, 1, "float64")
}

// svc adds a prediction of the class. With two classes this is the second class if the margin
// is above 0. With more classes it is the class with the largest margin.
func (b *builder) svc(m *svm.SVCModel) {
	z := b.margins(&m.Model)
	if b.err != nil {
		return
	}
	var at string
	if len(m.Coefficients) == 1 {
		at = b.cast(b.op("Greater", []string{z, b.constant("zero", 0)}), typeInt64)
	} else {
		at = b.largest(z)
	}
	b.classes(cmp.Or(m.PredictionCol, "prediction"), at, m.Classes.Type, m.Classes.Values)
	b.output(cmp.Or(m.DecisionCol, "decision"), z, b.real, len(m.Coefficients), "vector")
}

// largest returns the index of the largest number of each row. If several numbers are the
// largest, it returns the index of the first.
func (b *builder) largest(x string) string {
	return b.op("ArgMax", []string{x}, intAttr("axis", 1), intAttr("keepdims", 1), intAttr("select_last_index", 0))
}

// floats returns an attribute with numbers of the stage, and records which attribute has these
// numbers.
func (b *builder) floats(node, name string, rows [][]float64, from int, shape []int, path ...any) attribute {
	a := attribute{name: name, kind: attrFloats}
	for _, row := range rows {
		for i, v := range row {
			a.floats = append(a.floats, b.narrow(name, i, v))
		}
	}
	b.refs = append(b.refs, ref{path: path, tensor: node + "." + name, shape: shape, from: from})
	return a
}

// upcoming returns the name that the next node with the operator op will get.
func (b *builder) upcoming(op string) string {
	name := b.local(op)
	delete(b.taken, name)
	return name
}

// regressor adds ONNX-ML's operator for linear regressions, whose coefficients are float32.
func (b *builder) regressor(m *linearmodel.Model) string {
	x := b.features(m)
	if b.err != nil {
		return ""
	}
	name := b.upcoming("LinearRegressor")
	y := b.node(mlDomain, "LinearRegressor", []string{x}, 1,
		b.floats(name, "coefficients", m.Coefficients, 0, []int{1, len(m.Coefficients[0])}, "coefficients"),
		b.floats(name, "intercepts", [][]float64{m.Intercepts}, 0, []int{1}, "intercepts"), intAttr("targets", 1))[0]
	return b.addOffset(y, m.OffsetCol)
}

func (b *builder) logistic(m *logistic.Model) {
	a := &m.Model
	k := len(m.Classes.Values)
	var p string
	switch {
	case b.real == typeFloat && m.OffsetCol == "":
		p = b.classifier(a, k)
	case len(a.Coefficients) == 1:
		z := b.margins(a)
		p = b.concat([]string{b.op("Sigmoid", []string{b.op("Neg", []string{z})}), b.op("Sigmoid", []string{z})})
	default:
		p = b.op("Softmax", []string{b.margins(a)}, intAttr("axis", 1))
	}
	if b.err != nil {
		return
	}
	var at string
	if len(a.Coefficients) == 1 {
		at = b.cast(b.op("Greater", []string{b.gather(p, []int64{1}), b.constant("threshold", m.Threshold)}), typeInt64)
	} else {
		at = b.largest(p)
	}
	b.classes(cmp.Or(m.PredictionCol, "prediction"), at, m.Classes.Type, m.Classes.Values)
	b.output(cmp.Or(m.ProbabilityCol, "probability"), p, b.real, k, "vector")
}

// classifier adds ONNX-ML's operator for linear classifiers, whose coefficients are float32. It
// returns the probabilities. Other nodes determine the class, because the operator does not
// support all label types and thresholds of the models.
func (b *builder) classifier(m *linearmodel.Model, k int) string {
	x := b.features(m)
	if b.err != nil {
		return ""
	}
	rows, intercepts, from, post := m.Coefficients, m.Intercepts, 0, "SOFTMAX"
	d := len(rows[0])
	if len(rows) == 1 { // the margins of the two classes are −z and z
		rows, intercepts = [][]float64{negated(rows[0]), rows[0]}, []float64{-intercepts[0], intercepts[0]}
		from, post = 1, "LOGISTIC"
	}
	labels := make([]int64, k)
	for i := range labels {
		labels[i] = int64(i)
	}
	name := b.upcoming("LinearClassifier")
	return b.node(mlDomain, "LinearClassifier", []string{x}, 2,
		b.floats(name, "coefficients", rows, from*d, []int{len(m.Coefficients), d}, "coefficients"),
		b.floats(name, "intercepts", [][]float64{intercepts}, from, []int{len(m.Intercepts)}, "intercepts"),
		intsAttr("classlabels_ints", labels), textAttr("post_transform", post))[1]
}

func negated(row []float64) []float64 {
	made := make([]float64, len(row))
	for j, v := range row {
		made[j] = -v
	}
	return made
}

// classes adds a column with the labels whose indices are in the tensor with the name at.
func (b *builder) classes(name, at, kind string, values []string) {
	var table string
	var elem int32
	switch kind {
	case "bool":
		flags := make([]bool, len(values))
		for i, text := range values {
			flags[i] = text == "true"
		}
		table, elem = b.bools("classes", flags...), typeBool
	case "float32", "float64":
		numbers := make([]float64, len(values))
		for i, text := range values {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.fail("the class %q is no number", text)
			}
			numbers[i] = v
		}
		table, elem = b.constant("classes", numbers...), b.real
	case "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
		numbers := make([]int64, len(values))
		for i, text := range values {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				b.fail("the class %s is no integer of 64 bits", text)
			}
			numbers[i] = v
		}
		table, elem = b.ints("classes", numbers...), typeInt64
	default:
		table, elem = b.texts("classes", values...), typeString
	}
	b.output(name, b.op("Gather", []string{table, at}, intAttr("axis", 0)), elem, 1, kind)
}

// kmeans adds nodes that compute the distances of each row to all centres. Euclidean distances
// are computed from differences, because formulas with products would lose digits by
// cancellation. For these a runtime needs memory for rows · centres · components numbers.
func (b *builder) kmeans(m *kmeans.Model) {
	x := b.numbers(m.VectorCol, m.Dim)
	var distances string
	centers := b.learnedRows("centers", m.Centers, "centers")
	if m.Distance == kmeans.Cosine {
		one, zero := b.constant("one", 1), b.constant("zero", 0)
		length := b.reduce("ReduceL2", x)
		length = b.op("Where", []string{b.op("Equal", []string{length, zero}), one, length})
		products := b.op("Gemm", []string{b.op("Div", []string{x, length}), centers}, intAttr("transB", 1))
		distances = b.op("Sub", []string{one, products})
	} else {
		difference := b.op("Sub", []string{b.op("Unsqueeze", []string{x, b.ints("axis", 1)}), centers})
		distances = b.op("Sqrt", []string{b.op("ReduceSumSquare", []string{difference, b.ints("components", 2)}, intAttr("keepdims", 0))})
	}
	at := b.op("ArgMin", []string{distances}, intAttr("axis", 1), intAttr("keepdims", 1), intAttr("select_last_index", 0))
	b.output(cmp.Or(m.PredictionCol, "cluster"), at, typeInt64, 1, "int64")
	distance := b.reduce("ReduceMin", distances)
	if m.Distance == kmeans.Cosine { // because of rounding, results may be outside 0 to 2
		zero, two := b.constant("least", 0), b.constant("most", 2)
		distance = b.op("Where", []string{b.op("Less", []string{distance, zero}), zero, distance})
		distance = b.op("Where", []string{b.op("Greater", []string{distance, two}), two, distance})
	}
	b.output(cmp.Or(m.DistanceCol, "distance"), distance, b.real, 1, "float64")
}
