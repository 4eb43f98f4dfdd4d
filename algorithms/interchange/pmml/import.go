package pmml

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/interchange/internal/manifest"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// Import returns the model, or the *pipeline.Model, in a document that Export wrote. The
// imported model has the same model file as the exported model. The numbers of regressions and
// clusters are read from their elements. Import returns an error for a document of another
// producer, for a damaged document, and for a document that differs from the one that Export
// makes from its content.
func Import(data []byte) (model.Model, error) {
	m, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("pmml: %w", err)
	}
	return m, nil
}

func read(data []byte) (model.Model, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	about, err := manifestOf(root)
	if err != nil {
		return nil, err
	}
	r := &reader{root: root}
	m, err := about.Model(func(payload any) (any, error) {
		object, _ := payload.(map[string]any)
		return payload, r.fill(object)
	})
	if err != nil {
		return nil, err
	}
	want, err := build(m)
	if err != nil {
		return nil, fmt.Errorf("the document is damaged: %w", err)
	}
	if what := difference(root, want); what != "" {
		return nil, fmt.Errorf("the document differs from what Export makes of its model: %s", what)
	}
	return m, nil
}

// manifestOf returns the content of the extension. It returns an error for a document that this
// package did not write.
func manifestOf(root *element) (about manifest.Manifest, err error) {
	header := root.child("Header")
	if header == nil {
		return about, errors.New("there is no <Header>")
	}
	application := header.child("Application")
	if application == nil || application.attr("name") != producer {
		return about, errors.New("the application is another one: only what this package wrote is read")
	}
	if v := application.attr("version"); v != formatVersion {
		return about, fmt.Errorf("the document is of version %q: this program reads version %s", v, formatVersion)
	}
	extension := header.child("Extension")
	if extension == nil || extension.attr("name") != extensionName {
		return about, fmt.Errorf("there is no <Extension> %q", extensionName)
	}
	if about, err = manifest.Decode(extension.attr("value")); err != nil {
		return about, fmt.Errorf("extension %q: %w", extensionName, err)
	}
	return about, nil
}

// reader makes models from a document. Only one stage may use the numbers of the model's
// element, so that a short extension cannot cause many copies.
type reader struct {
	root *element
	used bool
}

func (r *reader) use() error {
	if r.used {
		return errors.New("the numbers of the model's element are those of another stage")
	}
	r.used = true
	return nil
}

// fill replaces ofModel in a payload by the numbers of the model's element.
func (r *reader) fill(payload map[string]any) error {
	if payload["centers"] == ofModel {
		if err := r.use(); err != nil {
			return err
		}
		centers, err := r.centers()
		if err != nil {
			return err
		}
		payload["centers"] = centers
	}
	if payload["coefficients"] != ofModel || payload["intercepts"] != ofModel {
		return nil
	}
	if err := r.use(); err != nil {
		return err
	}
	offset, _ := payload["offset_column"].(string)
	coefficients, intercepts, err := r.regression(offset != "")
	payload["coefficients"], payload["intercepts"] = coefficients, intercepts
	return err
}

// regression returns the coefficients and intercepts in the regression tables. If offset is
// true, the last coefficient of the first table is that of the offset.
func (r *reader) regression(offset bool) (coefficients [][]float64, intercepts []float64, err error) {
	if e := r.root.child("GeneralRegressionModel"); e != nil {
		return r.general(e)
	}
	e := r.root.child("RegressionModel")
	if e == nil {
		return nil, nil, errors.New("there is no <RegressionModel>")
	}
	tables := e.all("RegressionTable")
	if len(tables) == 2 && len(tables[1].children) == 0 { // one margin for two classes
		tables = tables[:1]
	}
	for a, t := range tables {
		row := []float64{}
		for _, p := range t.all("NumericPredictor") {
			v, err := parseNumber(p.attr("coefficient"))
			if err != nil {
				return nil, nil, fmt.Errorf("the coefficient of %q: %w", p.attr("name"), err)
			}
			row = append(row, v)
		}
		if a == 0 && offset {
			if len(row) == 0 {
				return nil, nil, errors.New("there is no coefficient of the offset")
			}
			row = row[:len(row)-1]
		}
		c, err := parseNumber(t.attr("intercept"))
		if err != nil {
			return nil, nil, fmt.Errorf("intercept %d: %w", a, err)
		}
		coefficients, intercepts = append(coefficients, row), append(intercepts, c)
	}
	return coefficients, intercepts, nil
}

// general returns the parameters of a generalised linear model, of which the first is the
// intercept.
func (r *reader) general(e *element) (coefficients [][]float64, intercepts []float64, err error) {
	matrix := e.child("ParamMatrix")
	if matrix == nil {
		return nil, nil, errors.New("there is no <ParamMatrix>")
	}
	row := []float64{}
	for _, c := range matrix.all("PCell") {
		v, err := parseNumber(c.attr("beta"))
		if err != nil {
			return nil, nil, fmt.Errorf("the parameter %q: %w", c.attr("parameterName"), err)
		}
		row = append(row, v)
	}
	if len(row) == 0 {
		return nil, nil, errors.New("there is no parameter of the intercept")
	}
	return [][]float64{row[1:]}, row[:1], nil
}

// centers returns the components in the arrays of the clusters.
func (r *reader) centers() ([][]float64, error) {
	e := r.root.child("ClusteringModel")
	if e == nil {
		return nil, errors.New("there is no <ClusteringModel>")
	}
	var centers [][]float64
	for i, c := range e.all("Cluster") {
		array := c.child("Array")
		if array == nil {
			return nil, fmt.Errorf("cluster %d has no <Array>", i)
		}
		row := []float64{}
		for _, text := range strings.Fields(array.text) {
			v, err := parseNumber(text)
			if err != nil {
				return nil, fmt.Errorf("cluster %d: %w", i, err)
			}
			row = append(row, v)
		}
		centers = append(centers, row)
	}
	return centers, nil
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no finite number", text)
	}
	return v, nil
}

// difference returns the first difference between two documents, or "" if they are equal.
func difference(got, want *element) string {
	switch {
	case got.name != want.name:
		return fmt.Sprintf("there is <%s> in the place of <%s>", got.name, want.name)
	case !reflect.DeepEqual(got.attrs, want.attrs):
		return fmt.Sprintf("the attributes of <%s %s> differ", got.name, got.attr("name"))
	case got.text != want.text:
		return fmt.Sprintf("the text of <%s> is %.40q", got.name, got.text)
	case len(got.children) != len(want.children):
		return fmt.Sprintf("<%s> has %d elements, not %d", got.name, len(got.children), len(want.children))
	}
	for i := range want.children {
		if what := difference(&got.children[i], &want.children[i]); what != "" {
			return what
		}
	}
	return ""
}
