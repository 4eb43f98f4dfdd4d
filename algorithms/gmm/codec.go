package gmm

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// clusterCodec reads the row that holds the model of k-means; it is never written to.
var clusterCodec = mustCodec()

func mustCodec() *batch.Codec[model.EncodedRow] {
	codec, err := batch.NewCodec[model.EncodedRow]()
	if err != nil {
		panic(err) // the struct is this module's
	}
	return codec
}
