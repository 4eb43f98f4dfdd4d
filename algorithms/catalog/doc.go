// Package catalog lists every kind of model, so that any model file can be read.
//
//	file, err := model.ReadFile("model.json")
//	m, err := catalog.Decode(file)                 // of whatever kind
//	scored := m.Transform(rows)                    // in a job
//	step, err := catalog.Bind(m, layout)           // or row by row, without one
//
// Pipelines consist of models of these kinds; package pipeline reads them.
package catalog
