// Package pipeline chains preparations and an estimator. The chain is trained, saved and
// applied as one.
//
//	p := pipeline.Pipeline{Stages: []model.Stage{
//		prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median},
//		prepare.OneHotEncoder{Columns: []string{"sex"}, Unknown: prepare.Zeros},
//		prepare.VectorAssembler{Columns: []string{"age", "sex"}},
//		kmeans.Params{VectorCol: "features", K: 3},
//	}}
//	trained := p.Fit(rows)                     // all stages, in the one job
//	scored := p.Apply(rows, trained)
//
// Each stage is trained on the output of the stages before it. The result is one model, in
// one file, which holds the models of the stages:
//
//	m, err := pipeline.ModelOf(result, "model")
//	err = m.Save("model.json")
//	m, err = pipeline.Load("model.json")
//	scored := m.Transform(rows)                // in another job
//
// # Single rows
//
// A Scorer computes single rows without a job, with the bits that a job gives. It is made
// once and may be used by any number of goroutines. Each goroutine has rows of its own and
// fills them again and again without allocating:
//
//	s, err := m.Scorer("age", "sex")           // the columns that the caller has
//	row := s.NewRow()                          // one for each goroutine
//	row.Input(0).SetFloat(31)
//	row.Input(1).SetText("female")
//	err = s.Score(row)
//	cluster := row.Cell("cluster").Int
//
// # The file
//
// The file has the format of package model, with kind "pipeline" and the payload
//
//	{"stages": [{…}, {…}]}                     the files of the stages' models, in order
//
// The file of each stage has its own kind, version and checksum.
package pipeline
