package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
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
	// formatVersion is the version of the metadata's layout.
	formatVersion = "1"
	// metadataKey is the key of the metadata, which have the facts that a graph cannot express,
	// such as how the model was trained.
	metadataKey = "superstep.model"
)

// Export returns a model, or a pipeline of models, as an ONNX file, with numbers of float64.
// Equal models give equal bytes. If ONNX cannot express the model, the error names the stage
// and the reason.
func Export(m model.Model) ([]byte, error) { return export(m, false) }

// ExportSingle does what Export does, with numbers of float32. Linear models become the
// operators LinearRegressor and LinearClassifier of ONNX-ML, which have only float32.
func ExportSingle(m model.Model) ([]byte, error) { return export(m, true) }

func export(m model.Model, single bool) ([]byte, error) {
	f, err := build(m, single)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	data := f.encode()
	if len(data) > math.MaxInt32 {
		return nil, fmt.Errorf("onnx: the file would have %d bytes, and %d are the limit of the format", len(data), math.MaxInt32)
	}
	return data, nil
}

// build returns the file of a model.
func build(m model.Model, single bool) (*file, error) {
	if m == nil {
		return nil, errors.New("there is no model")
	}
	b := newBuilder(single)
	b.graph.name = m.Kind()
	for _, in := range m.Inputs() {
		b.input(in)
	}
	if b.err != nil {
		return nil, b.err
	}
	about, err := manifest.Of(m, b.add, func(payload any) error { return refer(payload, b.refs) })
	if err != nil {
		return nil, err
	}
	if b.finish(); b.err != nil {
		return nil, b.err
	}
	about.Single = single
	text, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	return &file{
		irVersion: irVersion, producer: producer, version: formatVersion, graph: b.graph,
		opsets:   []opset{{"", coreVersion}, {mlDomain, mlVersion}},
		metadata: []entry{{metadataKey, string(text)}},
	}, nil
}

// add adds a model to the graph. Its errors and the names of its tensors begin with name.
func (b *builder) add(m model.Model, name string) error {
	b.stage, b.refs = name, nil
	b.stages(m)
	return b.err
}

// stages adds the nodes of a model that is not a pipeline.
func (b *builder) stages(m model.Model) {
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
		b.regression(&m.Model, m.PredictionCol)
	case *logistic.Model:
		b.logistic(m)
	case *glm.Model:
		b.glm(m)
	case *svm.SVCModel:
		b.svc(m)
	case *svm.SVRModel:
		b.regression(&m.Model, m.PredictionCol)
	case *kmeans.Model:
		b.kmeans(m)
	case *gbdt.Model:
		b.gbdt(m)
	case *forest.Model:
		b.forest(m)
	case *prepare.HasherModel:
		b.fail("ONNX has no operator for the hashes of a feature hasher")
	default:
		b.fail("models of kind %q cannot be written as ONNX", m.Kind())
	}
}

// These are the members of a reference in a manifest.
const (
	refTensor = "$tensor"
	refShape  = "$shape"
	refFrom   = "$from"
)

// refer replaces those numbers of a payload that are in tensors by references to the tensors.
func refer(tree any, refs []ref) error {
	for _, r := range refs {
		at := tree
		last := len(r.path) - 1
		for _, step := range r.path[:last] {
			at = child(at, step)
		}
		put := map[string]any{refTensor: r.tensor, refShape: r.shape}
		if r.from > 0 {
			put[refFrom] = r.from
		}
		if child(at, r.path[last]) == nil {
			return fmt.Errorf("the payload has no member %v", r.path)
		}
		switch step := r.path[last].(type) {
		case string:
			at.(map[string]any)[step] = put
		case int:
			at.([]any)[step] = put
		}
	}
	return nil
}

// child returns a member of an object or array, or nil if there is none.
func child(at, step any) any {
	switch step := step.(type) {
	case string:
		if object, ok := at.(map[string]any); ok {
			return object[step]
		}
	case int:
		if list, ok := at.([]any); ok && step < len(list) {
			return list[step]
		}
	}
	return nil
}
