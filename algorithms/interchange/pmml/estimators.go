package pmml

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// predictors returns the fields that have coefficients.
func (b *builder) predictors(m *linearmodel.Model) []string {
	if len(m.Coefficients[0]) == 0 {
		b.fail("it has no coefficients")
		return nil
	}
	var names []string
	var widths []int
	for _, in := range m.Reads {
		names, widths = append(names, in.Column), append(widths, sizeOf(in.Type))
	}
	fields := b.join(names, widths)
	if m.Columns == nil || b.err != nil {
		return fields
	}
	some := make([]string, len(m.Columns))
	for k, j := range m.Columns {
		some[k] = fields[j]
	}
	return some
}

// table returns the regression table of margin a.
func (b *builder) table(m *linearmodel.Model, fields []string, a int, attributes ...string) element {
	e := el("RegressionTable", append([]string{"intercept", number(m.Intercepts[a])}, attributes...)...)
	for j, f := range fields {
		e.children = append(e.children, el("NumericPredictor", "name", f, "coefficient", number(m.Coefficients[a][j])))
	}
	if m.OffsetCol != "" && a == 0 {
		e.children = append(e.children, el("NumericPredictor", "name", b.numbers(m.OffsetCol, 1)[0], "coefficient", "1"))
	}
	return e
}

// schema returns the mining schema: the fields that are read and the predicted field, if there
// is one.
func (b *builder) schema(target string) element {
	e := el("MiningSchema")
	if target != "" {
		e.children = append(e.children, el("MiningField", "name", target, "usageType", "target"))
	}
	for _, f := range b.active {
		e.children = append(e.children, el("MiningField", "name", f, "invalidValueTreatment", "asIs"))
	}
	return e
}

// predicted declares the predicted field. Models do not have a name for this field, so
// predicted chooses one. It returns the name, and the output field with the predictions.
func (b *builder) predicted(name, op, kind string, values ...string) (target string, output element) {
	field := b.name("target")
	e := el("DataField", "name", field, "optype", op, "dataType", kind)
	for _, v := range values {
		e.children = append(e.children, el("Value", "value", v))
	}
	b.target = append(b.target, e)
	return field, el("OutputField", "name", b.name(name), "optype", op, "dataType", kind, "feature", "predictedValue")
}

// add adds the element of a model. A document of this package has at most one.
func (b *builder) add(e element) {
	if len(b.models) > 0 {
		b.fail("the pipeline has a model before it, and a PMML file has one")
	}
	b.models = append(b.models, e)
}

// regression adds the element of a model that predicts the margin.
func (b *builder) regression(m *linearmodel.Model, name, prediction string) {
	fields := b.predictors(m)
	if b.err != nil {
		return
	}
	table := b.table(m, fields, 0)
	target, out := b.predicted(cmp.Or(prediction, "prediction"), "continuous", "double")
	b.add(el("RegressionModel", "modelName", name, "functionName", "regression", "normalizationMethod", "none").
		with(b.schema(target), el("Output").with(out), table))
	b.refs = []string{"coefficients", "intercepts"}
}

// links has PMML's names of the links.
var links = map[glm.Link][]string{
	glm.Identity: {"linkFunction", "identity"},
	glm.Log:      {"linkFunction", "log"},
	glm.Logit:    {"linkFunction", "logit"},
	glm.Inverse:  {"linkFunction", "power", "linkParameter", "-1"},
}

// families has PMML's names of the distributions.
var families = map[glm.Family]string{
	glm.Gaussian: "normal", glm.Binomial: "binomial", glm.Poisson: "poisson", glm.Gamma: "gamma", glm.Tweedie: "tweedie",
}

// glm adds the element of a generalised linear model, which predicts the mean from a margin.
// Parameter p0 is the intercept; the other parameters belong to the fields, in order.
func (b *builder) glm(m *glm.Model) {
	fields := b.predictors(&m.Model)
	attributes := append([]string{"modelName", "glm", "modelType", "generalizedLinear", "functionName", "regression", "distribution", families[m.Family]}, links[m.Link]...)
	if links[m.Link] == nil || families[m.Family] == "" {
		b.fail("PMML has no name for the family %v with the link %v", m.Family, m.Link)
	}
	if m.Family == glm.Tweedie {
		attributes = append(attributes, "distParameter", number(m.Power))
	}
	if m.OffsetCol != "" {
		attributes = append(attributes, "offsetVariable", b.numbers(m.OffsetCol, 1)[0])
	}
	if b.err != nil {
		return
	}
	parameters, covariates, matrix := el("ParameterList"), el("CovariateList"), el("PPMatrix")
	parameters = parameters.with(el("Parameter", "name", "p0", "label", "Intercept"))
	betas := el("ParamMatrix").with(el("PCell", "parameterName", "p0", "beta", number(m.Intercepts[0])))
	for j, f := range fields {
		p := "p" + strconv.Itoa(j+1)
		parameters = parameters.with(el("Parameter", "name", p, "label", f))
		covariates = covariates.with(el("Predictor", "name", f))
		matrix = matrix.with(el("PPCell", "value", "1", "predictorName", f, "parameterName", p))
		betas = betas.with(el("PCell", "parameterName", p, "beta", number(m.Coefficients[0][j])))
	}
	target, out := b.predicted(cmp.Or(m.PredictionCol, "prediction"), "continuous", "double")
	b.add(el("GeneralRegressionModel", attributes...).
		with(b.schema(target), el("Output").with(out), parameters, covariates, matrix, betas))
	b.refs = []string{"coefficients", "intercepts"}
}

func (b *builder) logistic(m *logistic.Model) {
	if m.Threshold != 0.5 && len(m.Coefficients) == 1 {
		b.fail("PMML predicts the more probable class: a threshold of %v has no counterpart", m.Threshold)
	}
	a := &m.Model
	method := "softmax"
	if len(m.Coefficients) == 1 {
		method = "logit"
	}
	b.classification(a, "logistic", method, m.PredictionCol, m.Classes.Type, m.Classes.Values, cmp.Or(m.ProbabilityCol, "probability"))
}

// svc adds the element of a classifier that predicts the class with the largest margin or, with
// two classes, the second class if the margin is above 0. The element uses softmax, which keeps
// the order of the margins. The values of softmax are not probabilities here, so they are not
// output.
func (b *builder) svc(m *svm.SVCModel) {
	a := &m.Model
	b.classification(a, "linear-svc", "softmax", m.PredictionCol, m.Classes.Type, m.Classes.Values, "")
}

// classification adds the element of a classifier, with a table for each class. If there is
// only one margin for two classes, it belongs to the second class, and the first has the margin
// 0. Probabilities are output under the name probability, unless it is empty.
func (b *builder) classification(m *linearmodel.Model, name, method, prediction, kind string, classes []string, probability string) {
	fields := b.predictors(m)
	if b.err != nil {
		return
	}
	var tables []element
	if len(m.Coefficients) == 1 { // the table of the first class has no coefficients
		tables = []element{b.table(m, fields, 0, "targetCategory", classes[1]), el("RegressionTable", "intercept", "0", "targetCategory", classes[0])}
	} else {
		for k := range m.Coefficients {
			tables = append(tables, b.table(m, fields, k, "targetCategory", classes[k]))
		}
	}
	target, first := b.predicted(cmp.Or(prediction, "prediction"), "categorical", labelType(kind), classes...)
	out := el("Output").with(first)
	if probability != "" {
		for k, text := range classes {
			field := b.name(componentName(probability, k, true))
			out.children = append(out.children, el("OutputField", "name", field, "optype", "continuous", "dataType", "double", "feature", "probability", "value", text))
		}
	}
	b.add(el("RegressionModel", "modelName", name, "functionName", "classification", "normalizationMethod", method).
		with(b.schema(target), out).with(tables...))
	b.refs = []string{"coefficients", "intercepts"}
}

// labelType returns the PMML type of a label field. Dates and timestamps are text.
func labelType(kind string) string {
	switch {
	case kind == "bool":
		return "boolean"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "integer"
	case strings.HasPrefix(kind, "float"):
		return "double"
	}
	return "string"
}

func (b *builder) kmeans(m *kmeans.Model) {
	if m.Distance != kmeans.Euclidean {
		b.fail("PMML has no cosine distance: normalize the vectors, and train by Euclidean distance")
	}
	fields := b.numbers(m.VectorCol, m.Dim)
	if b.err != nil {
		return
	}
	e := el("ClusteringModel", "modelName", "kmeans", "functionName", "clustering", "modelClass", "centerBased", "numberOfClusters", strconv.Itoa(len(m.Centers))).
		with(b.schema(""), el("Output").with(
			el("OutputField", "name", b.name(cmp.Or(m.PredictionCol, "cluster")), "optype", "categorical", "dataType", "integer", "feature", "predictedValue"),
			el("OutputField", "name", b.name(cmp.Or(m.DistanceCol, "distance")), "optype", "continuous", "dataType", "double", "feature", "affinity"),
		), el("ComparisonMeasure", "kind", "distance").with(el("euclidean")))
	for _, f := range fields {
		e.children = append(e.children, el("ClusteringField", "field", f, "compareFunction", "absDiff"))
	}
	for a, center := range m.Centers {
		array := el("Array", "n", strconv.Itoa(len(center)), "type", "real")
		parts := make([]string, len(center))
		for j, v := range center {
			parts[j] = number(v)
		}
		array.text = strings.Join(parts, " ")
		e.children = append(e.children, el("Cluster", "id", strconv.Itoa(a)).with(array))
	}
	b.add(e)
	b.refs = []string{"centers"}
}
