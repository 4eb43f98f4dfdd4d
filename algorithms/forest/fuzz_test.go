package forest_test

import (
	"encoding/json"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// FuzzDecode requires that any payload with a correct checksum gives an error, or a model that
// can predict and be encoded.
func FuzzDecode(f *testing.F) {
	for _, task := range []forest.Task{forest.Regression, forest.Classification} {
		m := train(f, classes(1, 30, 3, 2), forest.Params{LabelCol: "label", Task: task, NumTrees: 2, MaxDepth: 2})
		file, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		decoded, err := model.Decode(file, forest.Kind, 1)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(decoded.Payload))
	}
	inputs := []model.Input{{Column: "features", Type: "vector[3]"}}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if !json.Valid(payload) {
			return
		}
		file, err := model.Encode(forest.Kind, 1, inputs, forest.Summary{}, json.RawMessage(payload))
		if err != nil {
			return
		}
		m, err := forest.Decode(file)
		if err != nil {
			return
		}
		m.Predict([]float64{1, 2, 3})
		m.PredictSparse([]int32{1}, []float64{2})
		if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}
