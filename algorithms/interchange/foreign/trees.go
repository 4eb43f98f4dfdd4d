package foreign

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// ByOutput returns the trees of each output, in order. It returns an error if trees have values
// for several outputs, or if outputs have different numbers of trees.
func ByOutput(e *tree.Ensemble) ([][]tree.Tree, error) {
	of := make([][]tree.Tree, e.Outputs)
	for i := range e.Trees {
		t := e.Trees[i]
		if t.Values != nil {
			return nil, fmt.Errorf("tree %d has values for several outputs", i)
		}
		of[t.Output] = append(of[t.Output], t)
	}
	for k := range of {
		if len(of[k]) != len(of[0]) {
			return nil, fmt.Errorf("output %d has %d trees, output 0 %d", k, len(of[k]), len(of[0]))
		}
	}
	return of, nil
}

// InRounds returns the ensemble with its trees in rounds, as boosting makes them: each round
// has one tree for each output. If the ensemble averages, the weights of trees are divided so
// that sums equal the averages. The trees of each output keep their order.
func InRounds(e *tree.Ensemble) (*tree.Ensemble, error) {
	of, err := ByOutput(e)
	if err != nil {
		return nil, err
	}
	made := *e
	made.Average, made.Trees = false, make([]tree.Tree, 0, len(e.Trees))
	for i := range of[0] {
		for k := range of {
			t := of[k][i]
			if e.Average {
				t.Weight /= float64(len(of[k]))
			}
			made.Trees = append(made.Trees, t)
		}
	}
	return &made, nil
}

// Scaled returns an ensemble whose outputs are the outputs of e multiplied by s.
func Scaled(e *tree.Ensemble, s float64) *tree.Ensemble {
	made := *e
	made.Base, made.Trees = slices.Clone(e.Base), slices.Clone(e.Trees)
	for k := range made.Base {
		made.Base[k] *= s
	}
	for i := range made.Trees {
		made.Trees[i].Weight *= s
	}
	return &made
}

// Single returns an ensemble that compares features as float32, and that sends rows of float32
// the same way as e. Each threshold is replaced by the smallest float32 that is not below it.
// Files may have other thresholds for a Single ensemble, so that rows of float64 are routed
// correctly. Single restores the original thresholds.
func Single(e *tree.Ensemble) *tree.Ensemble {
	if e.Single {
		return e
	}
	made := *e
	made.Single, made.Trees = true, slices.Clone(e.Trees)
	for i := range made.Trees {
		nodes := slices.Clone(made.Trees[i].Nodes)
		for k := range nodes {
			nodes[k].Threshold = float64(nodes[k].SingleThreshold())
		}
		made.Trees[i].Nodes = nodes
	}
	return &made
}
