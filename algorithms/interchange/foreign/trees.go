package foreign

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// ByOutput returns the trees of each output, in order. Trees with values for several outputs
// are an error, and so are different numbers of trees.
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

// InRounds returns the ensemble with its trees in rounds, as boosting makes them: one tree
// of each output in turn. Averages become sums. The trees of an output keep their order.
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

// Scaled returns an ensemble with the outputs of e times s.
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

// Single returns an ensemble that compares features as float32 and sends rows of float32 the
// same way. Each threshold becomes the least float32 that is not below it. A file may have
// other thresholds for a Single ensemble, for rows of float64. Single restores the original
// ones.
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
