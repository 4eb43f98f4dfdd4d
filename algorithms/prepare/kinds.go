package prepare

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// kindOfModel describes a kind of model file. empty returns an empty model of that kind.
type kindOfModel struct {
	name, about string
	empty       func() preparation
}

// kinds returns all kinds of models of this package.
func kinds() []kindOfModel {
	scaler := func() preparation { return &ScalerModel{} }
	bucket := func() preparation { return &BucketModel{} }
	return []kindOfModel{
		{"standard-scaler", "scales columns to mean 0 and deviation 1", scaler},
		{"min-max-scaler", "scales columns to given bounds", scaler},
		{"max-abs-scaler", "scales columns by their largest absolute value", scaler},
		{"robust-scaler", "scales columns by median and quantiles", scaler},
		{"imputer", "puts values in place of missing ones", func() preparation { return &ImputerModel{} }},
		{"string-indexer", "numbers the distinct values of columns", func() preparation { return &IndexerModel{} }},
		{"one-hot-encoder", "makes a component of each distinct value", func() preparation { return &OneHotModel{} }},
		{"bucketizer", "puts numbers into buckets between given bounds", bucket},
		{"quantile-discretizer", "puts numbers into buckets of about equally many rows", bucket},
		{"vector-assembler", "makes one vector of columns", func() preparation { return &AssemblerModel{} }},
		{"feature-hasher", "makes a vector of hashes of columns", func() preparation { return &HasherModel{} }},
		{"polynomial-features", "makes all products of components", func() preparation { return &PolynomialModel{} }},
		{"normalizer", "divides vectors by their length", func() preparation { return &NormalizerModel{} }},
		{"pca", "makes principal components", func() preparation { return &PCAModel{} }},
	}
}

// Kinds returns the kinds of the models of this package.
func Kinds() []model.Kind {
	var all []model.Kind
	for _, k := range kinds() {
		all = append(all, model.Kind{Name: k.name, About: k.about, Decode: func(file []byte) (model.Model, error) {
			return decode(file, k.name)
		}})
	}
	return all
}

// decode decodes a file that contains a model of the given kind.
func decode(file []byte, kind string) (model.Binder, error) {
	for _, k := range kinds() {
		if k.name == kind {
			m := k.empty()
			if err := decodeInto(file, kind, m); err != nil {
				return nil, err
			}
			return m, nil
		}
	}
	return nil, fmt.Errorf("model of kind %q: it is none of package prepare", kind)
}

// Decode decodes a file that contains any model of this package.
func Decode(file []byte) (model.Binder, error) {
	kind, err := model.KindOf(file)
	if err != nil {
		return nil, err
	}
	return decode(file, kind)
}

// Load reads a model of this package that model.Save wrote.
func Load(path string) (model.Binder, error) { return model.Load(path, Decode) }

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Fit returned. The type of the model, such as *ScalerModel, depends on the
// preparation.
func ModelOf(result *engine.Result, name string) (model.Binder, error) {
	return model.Collected(result, name, Decode)
}
