package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// modelPrefix is the prefix of the names under which models are collected.
const modelPrefix = "model "

// train trains stage on rows and applies the model to the same rows. It collects the model, and
// the columns that the model adds, under name. adds has the names of these columns.
func (e *env) train(b *engine.Builder, name string, rows *engine.Dataset, stage model.Stage, adds ...string) {
	made := stage.Fit(rows)
	engine.Collect(made, modelPrefix+name)
	engine.Collect(operators.Select(stage.Apply(rows, made), adds...), "applied "+name)
}

// modelFiles returns a model file of each collected model. Reading the file and writing it
// again must give the same bytes.
func modelFiles(r *engine.Result) ([]piece, error) {
	var pieces []piece
	for _, name := range r.Names() {
		if !strings.HasPrefix(name, modelPrefix) {
			continue
		}
		file, err := model.Encoded(r, name)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{"file of " + name, file})
		m, err := pipeline.DecodeAny(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		again, err := m.Encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(file, again) {
			return nil, fmt.Errorf("%s: the file that was read is\n%s\nand is written as\n%s", name, file, again)
		}
	}
	return pieces, nil
}

// samples is the number of rows on which models are trained, ten in each of 128 shards.
const samples = 1280

// sample is a row on which models are trained. The values of Any, Tiny, Huge and Other have
// magnitudes from 1e-8 to 1e16, so that every sum over rows is rounded. The values of Unit,
// Step and Amount have ordinary magnitudes, for algorithms that cannot handle other magnitudes.
type sample struct {
	Any, Tiny, Huge, Other float64
	Unit, Step             float64
	Weight                 float64
	// The following fields are labels.
	Extreme float64 // has magnitudes from 1e-8 to 1e16
	Target  float64 // approximately linear in Unit and Step
	Amount  float64 // above 0
	Count   int64   // 0 or more
	Kind    string  // one of three texts
	Good    bool
	// The following fields are null in some rows.
	Gap  *float64
	City *string
}

var cities = []string{"Ur", "Uruk", "Eridu", "Kish", "Lagash"}

// makeSample draws row i. The labels depend on the features, and also on random draws.
func (e *env) makeSample(draws sharding.Random, i int64) sample {
	if i%211 == 0 {
		e.pause(50, int(i))
	}
	kind := draws.IntN(3)
	shift := float64(kind) - 1
	s := sample{
		Any:    wide(&draws),
		Tiny:   float64(shift*1e-8) + float64(draws.NormFloat64()*1e-8),
		Huge:   float64(shift*1e15) + float64(draws.NormFloat64()*1e15),
		Other:  wide(&draws),
		Unit:   shift + draws.NormFloat64(),
		Step:   float64(draws.IntN(4)),
		Weight: 0.25 + draws.Float64(),

		Extreme: wide(&draws),
		Kind:    string(rune('p' + kind)),
	}
	noise := draws.NormFloat64()
	s.Target = float64(1.5*s.Unit) - s.Step + noise
	s.Good = s.Target > 0
	s.Amount = 0.5 + float64(noise*noise) + float64(0.25*s.Step)
	s.Count = int64(s.Amount * (1 + draws.Float64()))
	if gap := wide(&draws); draws.IntN(9) > 0 {
		s.Gap = &gap
	}
	if city := cities[min(draws.IntN(5), draws.IntN(7))]; draws.IntN(9) > 0 {
		s.City = &city
	}
	return s
}

// table generates the rows. The vector column "wild" has the features with extreme magnitudes,
// and "tame" has the features with ordinary magnitudes.
func (e *env) table(b *engine.Builder) *engine.Dataset {
	rows := operators.Generate(b, samples, e.makeSample)
	rows = operators.Vectorize(rows, "wild", "any", "tiny", "huge", "other", "unit")
	return operators.Vectorize(rows, "tame", "unit", "step", "target")
}
