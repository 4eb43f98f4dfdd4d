package pmml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

const (
	producer = "superstep"
	// formatVersion is the version of the extension's layout.
	formatVersion = "1"
	// extensionName is the name of the extension. It has what PMML cannot express about a
	// model, such as how it was trained.
	extensionName = "superstep.model"
	// ofModel replaces, in the extension, numbers that are in the model's element.
	ofModel = "$model"
)

// manifest is the content of the extension for a model: its file without the numbers that
// are in the model's element. A pipeline has the manifests of its stages.
type manifest struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version,omitempty"`
	Inputs  []model.Input   `json:"inputs,omitempty"`
	Summary json.RawMessage `json:"summary,omitempty"`
	Payload map[string]any  `json:"payload,omitempty"`
	Stages  []manifest      `json:"stages,omitempty"`
}

// Export writes a model, or a pipeline of preparations and a model, as a PMML document. The
// same model gives the same bytes. What PMML cannot express is an error that names the stage
// and why.
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

// build makes the document of a model.
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
	about, err := b.stage(m, m.Kind())
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

// stage adds a model. Its errors begin with name.
func (b *builder) stage(m model.Model, name string) (manifest, error) {
	if p, ok := m.(*pipeline.Model); ok {
		about := manifest{Kind: p.Kind()}
		for i, s := range p.Stages() {
			one, err := b.stage(s, fmt.Sprintf("%s/%d-%s", name, i, s.Kind()))
			if err != nil {
				return manifest{}, err
			}
			about.Stages = append(about.Stages, one)
		}
		return about, nil
	}
	text, err := m.Encode() // checks the model
	if err != nil {
		return manifest{}, err
	}
	b.refs = nil
	if b.single(m); b.err != nil {
		return manifest{}, fmt.Errorf("%s: %w", name, b.err)
	}
	f, err := model.Decode(text, m.Kind(), math.MaxInt)
	if err != nil {
		return manifest{}, err
	}
	about := manifest{Kind: f.Kind, Version: f.Version, Inputs: f.Inputs, Summary: f.Summary}
	d := json.NewDecoder(bytes.NewReader(f.Payload))
	d.UseNumber()
	if err := d.Decode(&about.Payload); err != nil {
		return manifest{}, err
	}
	for _, member := range b.refs {
		about.Payload[member] = ofModel
	}
	return about, nil
}

// single adds a model that is not a pipeline.
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
