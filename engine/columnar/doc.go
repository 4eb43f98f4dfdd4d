// Package columnar is for code that handles rows by column: a [Schema] lists the columns, a
// [Batch] holds some rows, [Get] returns the values of a column without a copy, and [NewBatch]
// makes a batch from slices. Code that uses only operators on structs, such as operators.Map,
// does not need this package.
//
//	price, err := columnar.Get[[]float64](rows, "price")
//	name, nulls, err := columnar.GetNullable[columnar.Texts](rows, "name")
//
// # Types
//
// Types of columns are written as text:
//
//	bool, int8 to int64, uint8 to uint64, float32, float64, utf8, binary, date32
//	timestamp[us]                unit s, ms, us or ns; optional time zone: timestamp[us, UTC]
//	vector[4], vector32[4]       4 components of float64 or float32
//	vector, vector32             any number of components
//	sparse[1000], sparse         float64 values with their indices: below 1000, or without a limit
//
// Components of vectors are never null; a whole vector may be.
//
// # Ownership
//
// Batches are reference-counted, as their memory may belong to the run and not to the garbage
// collector. One rule holds everywhere: a function that receives a batch as a return value owns
// it and must release it once; a function that receives a batch as an argument borrows it, and
// must retain it to keep it. Slices that Get returns are valid as long as the batch is valid.
//
// # Arrow
//
// Batches have the memory layout of Apache Arrow. Package operators/arrowbridge converts them
// to and from Arrow records, and to and from Arrow streams for programs that use another version
// of Arrow.
package columnar
