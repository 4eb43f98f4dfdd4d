// Package catalog lists every kind of model, so that any model file can be read.
//
//	file, err := model.ReadFile("model.json")
//	m, err := catalog.Decode(file)                 // a model of any kind
//	scored := m.Transform(rows)                    // in a job
//	step, err := catalog.Bind(m, layout)           // for single rows, without a job
//
// The models of pipelines are not in the catalog; package pipeline decodes them.
package catalog
