package kmeans

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// The parameters of each training are a stage of a pipeline.
var (
	_ model.Stage  = Params{}
	_ model.Stage  = MiniBatchParams{}
	_ model.Stage  = BisectingParams{}
	_ model.Binder = (*Model)(nil)
)

// Kind returns "kmeans".
func (p Params) Kind() string { return modelKind }

// Fit is Train.
func (p Params) Fit(points *engine.Dataset) *engine.Dataset { return Train(points, p) }

// Apply adds cluster and distance, as Predict does, under the names in the parameters.
func (p Params) Apply(points, trained *engine.Dataset) *engine.Dataset {
	return Predict(points, trained, PredictOptions{VectorCol: p.VectorCol, ClusterCol: p.PredictionCol, DistanceCol: p.DistanceCol, NonFinite: p.NonFinite})
}

// Fit is TrainMiniBatch.
func (p MiniBatchParams) Fit(points *engine.Dataset) *engine.Dataset {
	return TrainMiniBatch(points, p)
}

// Fit is TrainBisecting.
func (p BisectingParams) Fit(points *engine.Dataset) *engine.Dataset {
	return TrainBisecting(points, p)
}
