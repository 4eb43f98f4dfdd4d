// Package batch defines how the engine holds rows in Arrow record batches: who owns a batch,
// how column types are written as text, and how Go structs are converted to columns and back.
// It also selects, concatenates, hashes, orders, prints and parses rows, without an interface
// value per row.
//
// # Ownership
//
// One rule holds everywhere in this module:
//
//	a batch received as a return value is owned (Release it once);
//	a batch received as an argument is borrowed (Retain it to keep it).
//
// Every function of this package follows the rule: Take, Concat, Slice, Select and the others
// return a new batch, which the caller owns, and do not change the references to their
// arguments. On error they return nil, and the caller owns nothing.
//
// # Where to start
//
//	codec, err := batch.NewCodec[Point]()      // struct <-> columns, by reflection, once
//	app := codec.Appender(mem)
//	defer app.Release()
//	err = app.Append(Point{...})               // many times
//	rec := app.NewRecord()                     // owned
//	defer rec.Release()
//
//	rd, err := codec.Bind(rec.Schema())        // names and types checked once
//	err = rd.Reset(rec)                        // borrows rec
//	for i := range int(rec.NumRows()) {
//		err = rd.Read(i, &p)                   // no allocation for scalar fields
//	}
//
// # Types
//
// Column types have a short text form ([TypeName], [ParseType]) used in schemas, plans and
// error messages: bool, int8 to int64, uint8 to uint64, float32, float64, utf8, binary, date32,
// timestamp[us] and vectors. The vector types are vector[d] (d values of float64 per row, in
// one contiguous block), vector32[d], vector and vector32 (of variable length), and
// sparse[size]. The components of a vector are never null, but a whole vector may be. A column
// of any other type is an error that names the type.
//
// # Trust
//
// Arrow does not check the contents of its buffers. Batches that come from outside (files, the
// network) must be checked once by [Validate] or [Normalize]; all other functions of this
// package assume that their arguments are valid.
package batch
