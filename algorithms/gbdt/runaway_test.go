package gbdt_test

import (
	"testing"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
)

// Gradients that grow beyond all numbers end the training with what to do.
func TestGradientsRunAway(t *testing.T) {
	table := made(91, 60, 3)
	fails(t, table, gbdt.Params{LabelCol: "label", Base: []float64{1e308}, NoTrainMetrics: true}, "round 1: the objective squared", "not finite or too large", "lower LearningRate")
	fails(t, table, gbdt.Params{LabelCol: "label", LearningRate: 1e200, NoTrainMetrics: true}, "the objective squared", "not finite or too large", "Base")
}
