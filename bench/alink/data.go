package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// rowFunc draws the features of a row into x and returns the label of the row.
type rowFunc func(draw *sharding.Random, x []float64) (label int)

// Columns of the CSV files.
const (
	labelColumn    = "label"
	distanceColumn = "distance" // a column of predictions only: the distance to the nearest centre
)

// featureColumn returns the name of a feature's column.
func featureColumn(j int) string { return "x" + strconv.Itoa(j) }

// writeRows draws the rows of problem p and writes them to a CSV file, which has a header and
// values with six significant digits. A row depends only on the problem, the seed and the
// number of the row.
func writeRows(file string, p *problem, seed uint64) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	var names []string
	for j := range p.Features {
		names = append(names, featureColumn(j))
	}
	if p.Labelled {
		names = append(names, labelColumn)
	}
	fmt.Fprintln(out, strings.Join(names, ","))
	draw := sharding.NewRandom(seed, "bench/alink "+p.Name, 0, 0)
	row := p.rows(&draw, p.Features)
	x, line := make([]float64, p.Features), []byte(nil)
	for i := range p.Rows {
		draw := sharding.NewRandom(seed, "bench/alink "+p.Name+" rows", 0, i)
		label := row(&draw, x)
		line = line[:0]
		for _, v := range x {
			line = append(strconv.AppendFloat(line, v, 'g', 6, 64), ',')
		}
		if line = line[:len(line)-1]; p.Labelled {
			line = strconv.AppendInt(append(line, ','), int64(label), 10)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// components is the number of normal distributions from which the rows of the problem kmeans
// are drawn.
const components = 8

// mixture returns a function that draws rows from normal distributions whose means lie close
// together. On such rows, k-means moves its centres in every iteration, and ends with about the
// same inertia from any initial centres.
func mixture(draw *sharding.Random, features int) rowFunc {
	means := make([]float64, components*features)
	for i := range means {
		means[i] = 0.5 * draw.NormFloat64()
	}
	return func(draw *sharding.Random, x []float64) int {
		own := means[draw.IntN(components)*features:]
		for j := range x {
			x[j] = own[j] + draw.NormFloat64()
		}
		return 0
	}
}

// linear returns a function that draws normal features with standard deviations from 0.1 to 3,
// and a label whose log odds are linear in the features.
func linear(draw *sharding.Random, features int) rowFunc {
	weights := make([]float64, features)
	for j := range weights {
		weights[j] = draw.NormFloat64() / math.Sqrt(float64(features))
	}
	return func(draw *sharding.Random, x []float64) int {
		margin := 0.0
		for j := range x {
			x[j] = 0.1 * math.Pow(30, float64(j)/float64(max(1, features-1))) * draw.NormFloat64()
			margin += x[j] * weights[j]
		}
		return flip(draw, margin)
	}
}

// stepped returns a function that draws standard normal features, and a label whose log odds
// are a sum of sines, steps and products of features.
func stepped(*sharding.Random, int) rowFunc {
	return func(draw *sharding.Random, x []float64) int {
		for j := range x {
			x[j] = draw.NormFloat64()
		}
		margin := 0.0
		for part := range slices.Chunk(x, 4) {
			margin += 0.5 * math.Sin(2*part[0])
			if len(part) == 4 {
				margin += 0.4 * part[1] * part[2]
				if part[3] > 0.3 {
					margin += 0.6
				}
			}
		}
		return flip(draw, margin-1)
	}
}

// flip draws a label, 0 or 1. margin is the log odds of label 1.
func flip(draw *sharding.Random, margin float64) int {
	if draw.Float64() < 1/(1+math.Exp(-margin)) {
		return 1
	}
	return 0
}
