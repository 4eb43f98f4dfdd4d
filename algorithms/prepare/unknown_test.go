package prepare

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPreparationsThatLeaveRowsOut requires that a preparation that may leave out rows declares
// this. Errors of later operators then contain no row numbers.
func TestPreparationsThatLeaveRowsOut(t *testing.T) {
	for _, u := range []Unknown{Refuse, Keep, Skip, Shares} {
		for _, p := range []any{
			VectorAssembler{Unknown: u}, StringIndexer{Unknown: u}, OneHotEncoder{Unknown: u}, Bucketizer{Unknown: u}, QuantileDiscretizer{Unknown: u},
			&AssemblerModel{Params: VectorAssembler{Unknown: u}}, &IndexerModel{Params: StringIndexer{Unknown: u}},
			&OneHotModel{Params: OneHotEncoder{Unknown: u}}, &BucketModel{Unknown: u},
		} {
			require.Equal(t, u == Skip, skips(p), "%T", p)
		}
	}
	require.False(t, skips(StandardScaler{}))
}
