// Package model has the parts that all trained models share: their interfaces, the format of
// their files, the operators that apply them in a job, the functions that apply them to single
// rows, and the interface of a pipeline's stages.
//
// # Using a model
//
// A model of any kind is trained, saved, loaded and applied like this:
//
//	made := stage.Fit(rows)                        // in a job; stage is an estimator's Params
//	engine.Collect(made, "model")
//	...
//	m, err := linear.ModelOf(result, "model")      // after the run; each algorithm has a ModelOf
//	err = model.Save("price.json", m)              // replaces the file atomically
//
//	file, err := model.ReadFile("price.json")      // in another program; a model of any kind
//	m, err := catalog.Decode(file)                 // checks checksum, kind and version
//	scored := m.Transform(rows)                    // in a job, or
//	step, err := catalog.Bind(m, layout)           // for single rows, without an engine
//	for more() {
//		row[0].SetFloat(size)
//		if err := step(row); err != nil {          // names the column; ErrSkip: the row is left out
//			return err
//		}
//		use(row[prediction].Float)
//	}
//
// The package example is a complete program.
//
// # Writing a model
//
// An algorithm uses Encode, Decode and Unmarshal for its files, and Apply or ApplyRows for its
// operator. Command lines get further information about a model from the following interfaces.
// A model implements each interface that applies to it:
//
//	Predictor       what the model predicts, and the columns that it adds
//	Describer       facts, tables, coefficients, importances and curves to show to users
//	Categorizer     the categories that training has seen
//	Treater         how missing values and unseen categories are treated
//	Deriver         the new columns that the model makes, each from one column that it reads
//	ComponentNamer  the names of the components of vectors that the model makes
//
// The type of an algorithm's parameters implements Estimator, which describes the predictions
// of the model and the command-line flags. Once an algorithm is listed in package catalog, the
// command line can train it, and can apply, evaluate and show its models.
//
// # The file of a model
//
// The file of a model of any kind is one JSON object:
//
//	{
//	  "format": "superstep/model",
//	  "kind": "logistic",                    the algorithm
//	  "version": 1,                          version of the payload's format for this kind
//	  "inputs": [                            the columns that the model reads
//	    {"column": "features", "type": "vector[4]"}
//	  ],
//	  "summary": {…},                        about training: rows, iterations, loss, record
//	  "payload": {…},                        the model
//	  "reading": {"nulls": ["-999"]},        how to read data files, see Reading; optional
//	  "checksum": "xxh3:16 hex digits"       of the object without white space and checksum
//	}
//
// All members except reading are required. Each must be present once; they may be in any order.
// The summary may be null. Numbers are written as the shortest decimals that parse to the same
// float64.
//
// The checksum is the 64-bit xxh3 hash of all other members in the order above, without white
// space outside of strings. A changed file is still valid if only its white space or the order
// of its members differs. Decoding is strict. It returns an error for an unknown member, an
// object with the same key twice, text after the object, a truncated object, a wrong checksum,
// another format or kind, and a newer version. A file has at most MaxFile bytes.
//
// # Applying a model
//
// Apply adds the operator that receives a model by broadcast and computes columns batch by
// batch. It is for algorithms whose kernels process many rows at once. ApplyRows adds an
// operator that computes columns row by row, for models that implement Binder. Such a model can
// also compute single rows from cells, without an engine. The operator runs the same code as a
// program that applies the model to single rows, so both give the same bits:
//
//	layout := model.NewLayout("age", "fare")       // the columns of a row
//	step, err := m.Bind(layout)                    // finds the model's inputs, adds its outputs
//	row := layout.NewRow()
//	row[0].SetFloat(31)
//	row[1].SetFloat(7.25)
//	err = step(row)                                // allocates nothing; safe for concurrent use
package model
