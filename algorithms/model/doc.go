// Package model has what all trained models share: their interfaces, the format of their files,
// the operators that apply them in a job, the functions that apply them to single rows, and the
// stages of a pipeline.
//
// # Using a model
//
// A model of any kind is trained, saved, loaded and applied like this:
//
//	made := stage.Fit(rows)                        // in a job: a Stage is an estimator's Params
//	engine.Collect(made, "model")
//	...
//	m, err := linear.ModelOf(result, "model")      // after the run, from the algorithm's package
//	err = model.Save("price.json", m)              // the old file or the whole new one
//
//	file, err := model.ReadFile("price.json")      // in another program, of any kind
//	m, err := catalog.Decode(file)                 // checked: checksum, kind, version
//	scored := m.Transform(rows)                    // in a job, or
//	step, err := catalog.Bind(m, layout)           // one row after the other, without an engine
//	for more() {
//		row[0].SetFloat(size)
//		if err := step(row); err != nil {          // names the column; ErrSkip: leave the row out
//			return err
//		}
//		use(row[prediction].Float)
//	}
//
// The example is such a program.
//
// # Writing a model
//
// An algorithm uses Encode, Decode and Unmarshal for its files, and Apply or ApplyRows for its
// operator. Commands learn more about a model from these interfaces; a model implements those
// that suit it:
//
//	Predictor       what it predicts, and the columns that it adds
//	Describer       facts, tables, coefficients, importances and curves, for people
//	Categorizer     the categories that training has seen
//	Treater         what becomes of missing values and of unseen categories
//	Deriver         the columns that it turns into one new column each
//	ComponentNamer  the names of the components of vectors that it makes
//
// The parameters of a training are an Estimator: it tells what the model predicts, and the
// flags. With a line in the package catalog the command line trains it, and applies, evaluates
// and shows its models.
//
// # The file of a model
//
// A model is one JSON object, whatever its kind:
//
//	{
//	  "format": "superstep/model",
//	  "kind": "logistic",                    the algorithm
//	  "version": 1,                          of the payload of this kind
//	  "inputs": [                            the columns that it reads
//	    {"column": "features", "type": "vector[4]"}
//	  ],
//	  "summary": {…},                        of training: rows, iterations, loss, record
//	  "payload": {…},                        the model
//	  "reading": {"nulls": ["-999"]},        how files are written, see Reading; may be absent
//	  "checksum": "xxh3:16 hex digits"       of the object without spaces and checksum
//	}
//
// All members but reading are required, each once and in any order; the summary may be null.
// Numbers are the shortest decimals that read back to the same float64.
//
// The checksum is the 64-bit xxh3 hash of all other members in the order above, without white
// space outside of strings. So white space and the order of the members may change, and nothing
// else. Reading is strict. These are errors: an unknown member, a key that an object has twice,
// anything after the object, an object that ends too early, a wrong checksum, another format or
// kind, and a newer version. A file is at most MaxFile bytes.
//
// # Applying a model
//
// Apply adds the operator that receives a model by broadcast and computes columns batch by
// batch, for algorithms with kernels over many rows. ApplyRows does so row by row, for models
// that implement Binder. Such a model computes a row from cells, without an engine. The
// operator runs the same code, so both give the same bits:
//
//	layout := model.NewLayout("age", "fare")       // the columns of a row
//	step, err := m.Bind(layout)                    // resolves columns, adds the model's own
//	row := layout.NewRow()
//	row[0].SetFloat(31)
//	row[1].SetFloat(7.25)
//	err = step(row)                                // no allocation, concurrent with other rows
package model
