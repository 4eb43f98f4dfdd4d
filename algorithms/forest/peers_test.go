package forest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// TestSingleTreesOfScikitLearn requires the same single trees as scikit-learn 1.9.1 for rows on
// which no two splits are equally good. It compares nodes, importances, and the sum of the
// predictions for the training rows with weights 1 to 7. Each feature has fewer distinct values
// than bins, so that binning loses no split.
//
//	X[i, j] = (i²·(7+j) + i·(31+17·j) + 5·j) mod 997 / 16
//	y = X0·X1/100 + X2 + ((3·i²+11·i) mod 101)/101, classes ⌊y/20⌋ from 0 to 3
//	DecisionTreeRegressor and -Classifier, with the parameters below, the last with
//	class weights that give all classes the same total weight
func TestSingleTreesOfScikitLearn(t *testing.T) {
	const n = 150
	numbers := trial.Table{N: n, D: 4}
	classes := trial.Table{N: n, D: 4}
	for i := range n {
		for j := range 4 {
			numbers.X = append(numbers.X, float64((i*i*(7+j)+i*(31+17*j)+5*j)%997)/16)
		}
		x := numbers.Row(i)
		y := x[0]*x[1]/100 + x[2] + float64((3*i*i+11*i)%101)/101
		numbers.Label = append(numbers.Label, y)
		numbers.Weight = append(numbers.Weight, 1+float64(i%4)/2)
		classes.Label = append(classes.Label, min(3, max(0, math.Floor(y/20))))
	}
	classes.X, classes.Weight = numbers.X, numbers.Weight
	for name, c := range map[string]struct {
		p           forest.Params
		nodes       int
		importances []float64
		sum         float64
	}{
		"gini":     {forest.Params{Task: forest.Classification, MaxDepth: 3, MinSamplesLeaf: 20}, 11, []float64{0.29821840589229126, 0.08461613072291602, 0.6171654633847927, 0}, 237.44908424908425},
		"entropy":  {forest.Params{Task: forest.Classification, MaxDepth: 4, MinSamplesLeaf: 16, Criterion: forest.Entropy}, 13, []float64{0.1868290252271686, 0.06736907142182832, 0.745801903351003, 0}, 236.53374811463047},
		"variance": {forest.Params{MaxDepth: 3, WeightCol: "weight"}, 15, []float64{0.06474081944884534, 0.021281869086635322, 0.9139773114645194, 0}, 25006.592830228914},
		"poisson":  {forest.Params{MaxDepth: 4, MinSamplesSplit: 8, Criterion: forest.Poisson}, 31, []float64{0.02998691555895305, 0.08861347393465815, 0.8800723894539355, 0.001327221052453303}, 24686.138188425903},
		"leaves":   {forest.Params{MaxLeaves: 9, MaxDepth: -1}, 17, []float64{0.03815920474007309, 0.04165491553890854, 0.9201858797210184, 0}, 24849.74819847483},
		"weighted": {forest.Params{Task: forest.Classification, MaxDepth: 4, Balanced: true, MinSplitGain: 0.004, MinSamplesLeaf: 7, WeightCol: "weight"}, 17, []float64{0.23170962835844508, 0.18392442338954668, 0.584365948252008, 0}, 224.14637102352847},
	} {
		t.Run(name, func(t *testing.T) {
			p, table := c.p, numbers
			p.LabelCol, p.Method = "label", forest.SingleTree
			if p.Task == forest.Classification {
				table = classes
			}
			m := train(t, table, p)
			require.Len(t, m.Trees.Trees[0].Nodes, c.nodes)
			require.InDeltaSlice(t, c.importances, m.Importances(), 1e-7)
			sum := 0.0
			for i := range n {
				v := m.Predict(table.Row(i))
				if p.Task == forest.Classification {
					shares := make([]float64, 4)
					require.True(t, m.PredictProbability(table.Row(i), shares))
					v = shares[1]
				}
				sum += v * float64(1+i%7)
			}
			require.InEpsilon(t, c.sum, sum, 1e-7)
		})
	}
}
