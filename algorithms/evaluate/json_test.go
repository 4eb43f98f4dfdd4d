package evaluate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
)

// FuzzReport requires that decoding any text returns either an error or a report that, encoded
// and decoded again, is the same.
func FuzzReport(f *testing.F) {
	binary, err := json.Marshal(must(evaluate.MeasureBinary(binaryTruth, binaryScore, nil, evaluate.BinaryOptions{})))
	require.NoError(f, err)
	f.Add(binary)
	clusters, err := json.Marshal(must(evaluate.MeasureClustering(clusterC, clusterX, clusterT, nil, both)))
	require.NoError(f, err)
	f.Add(clusters)
	f.Add([]byte(`{"weight":"+Inf"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, r := range []json.Unmarshaler{new(evaluate.BinaryReport), new(evaluate.ClusteringReport)} {
			if r.UnmarshalJSON(text) != nil {
				continue
			}
			first, err := json.Marshal(r)
			require.NoError(t, err)
			require.NoError(t, r.UnmarshalJSON(first))
			again, err := json.Marshal(r)
			require.NoError(t, err)
			require.Equal(t, string(first), string(again))
		}
	})
}
