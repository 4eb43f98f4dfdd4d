// Command numpy shows how a program defines its own source and sink. It reads points from a file
// that NumPy saved, and writes them as lines of JSON, with the distance of each point from the
// origin.
//
//	go run ./examples/numpy --output points.json
package main

import (
	"math"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type args struct { // the job's arguments are the program's flags
	Input  string `help:"File of points, an array of float64 that numpy.save wrote." default:"examples/numpy/data/points.npy"`
	Output string `help:"File to write, of lines of JSON." required:""`
}

type point struct{ X []float64 }

// distance returns the distance of a point from the origin. Each product is converted to float64
// before it is added. This forbids fused multiply-add, so that the result has the same bits on
// all processors.
func distance(p point) float64 {
	sum := 0.0
	for _, x := range p.X {
		sum += float64(x * x)
	}
	return math.Sqrt(sum)
}

var job = engine.Define("numpy", func(b *engine.Builder, a args) error {
	points := ReadNPY(b, a.Input, "x")
	WriteJSON(operators.WithColumn(operators.ZipWithIndex(points, "point"), "distance", distance), a.Output)
	return nil
})

func main() { engine.Main(job) }
