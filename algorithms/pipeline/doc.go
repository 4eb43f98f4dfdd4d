// Package pipeline combines preparations and an estimator into a pipeline, which is trained,
// saved and applied as a unit.
//
//	p := pipeline.Pipeline{Stages: []model.Stage{
//		prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median},
//		prepare.OneHotEncoder{Columns: []string{"sex"}, Unknown: prepare.Zeros},
//		prepare.VectorAssembler{Columns: []string{"age", "sex"}},
//		kmeans.Params{VectorCol: "features", K: 3},
//	}}
//	trained := p.Fit(rows)                     // trains all stages in one job
//	scored := p.Apply(rows, trained)
//
// Each stage is trained on the output of the stages before it. The result is one model with one
// file, which contains the models of the stages:
//
//	m, err := pipeline.ModelOf(result, "model")
//	err = m.Save("model.json")
//	m, err = pipeline.Load("model.json")
//	scored := m.Transform(rows)                // in another job
//
// # Single rows
//
// A Scorer applies a model to single rows without a job. The results have the same bits as in a
// job. A Scorer is created once and may be used by any number of goroutines. Each goroutine
// needs its own Row, which it reuses without allocating memory:
//
//	s, err := m.Scorer("age", "sex")           // names the columns that the caller sets
//	row := s.NewRow()                          // one for each goroutine
//	row.Input(0).SetFloat(31)
//	row.Input(1).SetText("female")
//	err = s.Score(row)
//	cluster := row.Cell("cluster").Int
//
// # The file
//
// The file of a pipeline has the format of package model, with the kind "pipeline" and the
// payload
//
//	{"stages": [{…}, {…}]}                     the model files of the stages, in order
//
// The file of each stage has its own kind, version and checksum.
package pipeline
