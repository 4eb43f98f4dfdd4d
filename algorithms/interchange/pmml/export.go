package pmml

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/interchange/internal/manifest"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

const (
	producer = "superstep"
	// formatVersion is the version of the extension's layout.
	formatVersion = "1"
	// extensionName is the name of the extension, which has the facts about a model that PMML
	// cannot express, such as how it was trained.
	extensionName = "superstep.model"
	// ofModel replaces, in the extension, the numbers that are in the model's element.
	ofModel = "$model"
)

// Export returns a model, or a pipeline of preparations and a model, as a PMML document. Equal
// models give equal bytes. If PMML cannot express the model, the error names the stage and the
// reason.
func Export(m model.Model) ([]byte, error) {
	root, err := build(m)
	if err != nil {
		return nil, fmt.Errorf("pmml: %w", err)
	}
	data, err := root.encode()
	if err != nil {
		return nil, fmt.Errorf("pmml: %w", err)
	}
	return data, nil
}

// build returns the document of a model.
func build(m model.Model) (*element, error) {
	if m == nil {
		return nil, errors.New("there is no model")
	}
	b := newBuilder()
	for _, in := range m.Inputs() {
		b.input(in)
	}
	if b.err != nil {
		return nil, b.err
	}
	about, err := manifest.Of(m, b.stage, b.refer)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	root := el("PMML", "version", "4.4").with(
		el("Header").with(
			el("Extension", "name", extensionName, "value", string(text)),
			el("Application", "name", producer, "version", formatVersion)),
		el("DataDictionary", "numberOfFields", strconv.Itoa(len(b.data)+len(b.target))).with(b.data...).with(b.target...))
	if len(b.derived) > 0 {
		root = root.with(el("TransformationDictionary").with(b.derived...))
	}
	root = root.with(b.models...)
	return &root, nil
}

// stage adds a model to the document. Its errors begin with the given name.
func (b *builder) stage(m model.Model, _ string) error {
	b.refs = nil
	b.single(m)
	return b.err
}

// refer replaces those numbers of a payload that are in the model's element by ofModel.
func (b *builder) refer(payload any) error {
	for _, member := range b.refs {
		payload.(map[string]any)[member] = ofModel
	}
	return nil
}

// single adds a model that is not a pipeline to the document.
func (b *builder) single(m model.Model) {
	switch m := m.(type) {
	case *prepare.ScalerModel:
		b.scaler(m)
	case *prepare.ImputerModel:
		b.imputer(m)
	case *prepare.IndexerModel:
		b.indexer(m)
	case *prepare.OneHotModel:
		b.oneHot(m)
	case *prepare.BucketModel:
		b.buckets(m)
	case *prepare.AssemblerModel:
		b.assembler(m)
	case *prepare.NormalizerModel:
		b.normalizer(m)
	case *prepare.PCAModel:
		b.pca(m)
	case *prepare.PolynomialModel:
		b.polynomial(m)
	case *linear.Model:
		b.regression(&m.Model, m.Kind(), m.PredictionCol)
	case *glm.Model:
		b.glm(m)
	case *svm.SVCModel:
		b.svc(m)
	case *svm.SVRModel:
		b.regression(&m.Model, m.Kind(), m.PredictionCol)
	case *logistic.Model:
		b.logistic(m)
	case *kmeans.Model:
		b.kmeans(m)
	case *prepare.HasherModel:
		b.fail("PMML has no function for the hashes of a feature hasher")
	default:
		b.fail("models of kind %q cannot be written as PMML", m.Kind())
	}
}
