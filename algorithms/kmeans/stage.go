package kmeans

import (
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// These variables check that the parameters of each training implement model.Stage, and that
// Model implements model.Binder.
var (
	_ model.Stage  = Params{}
	_ model.Stage  = MiniBatchParams{}
	_ model.Stage  = BisectingParams{}
	_ model.Binder = (*Model)(nil)
)

// Kind returns "kmeans".
func (p Params) Kind() string { return modelKind }

// Fit calls Train.
func (p Params) Fit(points *engine.Dataset) *engine.Dataset { return Train(points, p) }

// Apply adds cluster and distance to points as Predict does. p has the names of the columns.
func (p Params) Apply(points, trained *engine.Dataset) *engine.Dataset {
	return Predict(points, trained, PredictOptions{VectorCol: p.VectorCol, ClusterCol: p.PredictionCol, DistanceCol: p.DistanceCol, NonFinite: p.NonFinite})
}

// Fit calls TrainMiniBatch.
func (p MiniBatchParams) Fit(points *engine.Dataset) *engine.Dataset {
	return TrainMiniBatch(points, p)
}

// Fit calls TrainBisecting.
func (p BisectingParams) Fit(points *engine.Dataset) *engine.Dataset {
	return TrainBisecting(points, p)
}
