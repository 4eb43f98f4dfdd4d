package selection

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Candidate is an estimator with its parameters, or a pipeline, that is compared with other
// candidates.
type Candidate struct {
	Name  string // unique among the candidates
	Stage model.Stage
}

// Axis is a parameter and the values that it takes in a grid. Over returns an Axis.
type Axis[P any] struct {
	name   string
	values []func(p *P) string // each sets a value and returns its text
}

// Over returns an Axis with the given name and values. set stores a value in p.
func Over[P, V any](name string, set func(p *P, value V), values ...V) Axis[P] {
	a := Axis[P]{name: name}
	for _, v := range values {
		a.values = append(a.values, func(p *P) string {
			set(p, v)
			return fmt.Sprint(v)
		})
	}
	return a
}

// Grid returns a candidate for every combination of the values of the axes; the last axis
// changes fastest. Parameters that no axis sets are copied from base. stage returns the stage
// with the given parameters. The name of a candidate consists of its values, such as "k=3
// seed=1".
//
//	selection.Grid(kmeans.Params{VectorCol: "x"}, stageOf,
//		selection.Over("k", func(p *kmeans.Params, k int) { p.K = k }, 2, 3, 4),
//		selection.Over("init", func(p *kmeans.Params, i kmeans.Init) { p.Init = i }, kmeans.KMeansParallel, kmeans.Random))
//
// If an axis has no values, the grid has no candidates.
func Grid[P any](base P, stage func(p P) model.Stage, axes ...Axis[P]) []Candidate {
	count := 1
	for _, a := range axes {
		count *= len(a.values)
	}
	list := make([]Candidate, 0, count)
	for i := range count {
		p, names, block := base, make([]string, len(axes)), count
		for j, a := range axes { // in the order of axes, because the function set of an axis may read parameters that earlier axes have set
			n := len(a.values)
			block /= n
			names[j] = a.name + "=" + a.values[i/block%n](&p)
		}
		list = append(list, Candidate{Name: strings.Join(names, " "), Stage: stage(p)})
	}
	return list
}
