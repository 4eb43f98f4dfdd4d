// Package batch is the one place that knows how rows are held in Arrow
// record batches: who owns a batch, how column types are written as text, how
// Go structs become columns and back, and how rows are taken, concatenated,
// hashed, ordered, printed and parsed without a value ever being boxed.
//
// # Ownership
//
// One rule holds everywhere in this module:
//
//	a batch received as a return value is owned (Release it once);
//	a batch received as an argument is borrowed (Retain it to keep it).
//
// Every function here follows it: Take, Concat, Slice, Select and the rest
// return a new batch and leave their arguments alone, and on error they return
// nil and own nothing.
//
// # Where to start
//
//	codec, err := batch.NewCodec[Point]()      // struct <-> columns, by reflection, once
//	app := codec.Appender(mem)
//	defer app.Release()
//	err = app.Append(Point{...})               // many times
//	rec, err := app.NewRecord()                // owned
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
// Column types have a short text form ([TypeName], [ParseType]) used in
// schemas, plans and error messages: bool, int8 to int64, uint8 to uint64,
// float32, float64, utf8, binary, date32, timestamp[us] and vectors:
// vector[d] (d float64 in one contiguous block), vector32[d], the variable
// vector and vector32, and sparse[size]. Their components are never null; a
// whole vector may be. Types outside this list are refused by name.
//
// # Trust
//
// Arrow trusts its buffers. Batches that come from outside (files, the
// network) go through [Validate] or [Normalize] once; everything else here
// assumes that its arguments passed.
package batch
