// Package columnar is for code that handles rows by the column: a [Schema] lists the columns, a
// [Batch] holds some rows, [Get] returns the values of a column without a copy, and [NewBatch]
// makes a batch of slices. Operators on structs, such as operators.Map, need none of it.
//
//	price, err := columnar.Get[[]float64](rows, "price")
//	name, nulls, err := columnar.GetNullable[columnar.Texts](rows, "name")
//
// # Types
//
// Types of columns are written as text:
//
//	bool, int8 to int64, uint8 to uint64, float32, float64, utf8, binary, date32
//	timestamp[us]                with s, ms, us or ns, and perhaps a time zone: timestamp[us, UTC]
//	vector[4], vector32[4]       4 components of float64 or float32
//	vector, vector32             any number of components
//	sparse[1000], sparse         indices and values of float64, below a size or of none
//
// Components of vectors are never null; a whole vector may be.
//
// # Ownership
//
// Batches are reference-counted, as their memory may belong to the run and not to the garbage
// collector. One rule holds everywhere: a batch received as a return value is owned, and is
// released once; a batch received as an argument is borrowed, and is retained to be kept.
// Slices that Get returns are valid while the batch is.
//
// # Arrow
//
// Batches are held in the layout of Apache Arrow. Package operators/arrowbridge converts them
// to and from Arrow records, and Arrow streams for other versions of Arrow.
package columnar
