// Package operators reads, transforms and writes datasets.
//
// # Using it
//
// Operators are functions. Each takes the datasets it reads, adds itself to the
// graph and returns the dataset it emits; nothing is computed before the job
// runs:
//
//	type Point struct {
//		X, Y float64
//	}
//	type Polar struct {
//		Radius float64
//	}
//
//	points := operators.FromSlice(b, []Point{{3, 4}, {6, 8}})
//	polar := operators.Map(points, func(p Point) Polar {
//		return Polar{Radius: math.Sqrt(p.X*p.X + p.Y*p.Y)}
//	})
//	engine.Collect(polar, "polar")
//
// # Rows
//
// A dataset has named, typed columns. Functions over single rows see them as Go
// structs: every exported field is a column, by the name in its tag
// `column:"name"` or else its own in snake case, and a field that is a pointer
// may be null. A struct names the columns it wants and need not have the
// others. An array [4]float64, or a slice with the tag `column:"x,dim=4"`, is a
// vector of that dimension, a slice without one a vector of any. Any other type,
// such as float64 or []float64, stands for the one column "value", and reads the
// only column of a dataset that has but one, whatever its name is. Slices and strings in a row are lent for the call: they must
// not be modified, and what is kept must be copied. Functions over batches see
// an engine.Batch, which they borrow; what they return is the operator's. Text is
// UTF-8, and anything else refused where a function makes it or a sink would write
// it: bytes that are no text are kept as []byte.
//
// A function is called by several subtasks at once and keeps no state.
//
// # Shards and order
//
// Every dataset is an ordered list of shards, and rows have an order within
// their shard. Operators that work on rows one by one, such as Map, Filter and
// WithColumn, leave rows where they are. Rebalance, PartitionByHash and their
// kin move rows to other shards; rows that arrive in a shard come in the order
// of the shards they came from. The order of a dataset is that of its shards,
// which is what First, ZipWithIndex, Collect and the file sinks go by. None of
// it depends on parallelism, on batch sizes or on timing.
//
// # Joins
//
// Join pairs the rows of two datasets that are equal in some columns, SemiJoin and
// AntiJoin keep rows of one that have a partner in the other or have none, CoGroup
// gathers the rows of both by key, and Distinct keeps the first of equal rows.
// MapLookup brings a small table to where the rows are. On says what is equal.
//
// # Files
//
// ReadCSV, ReadLibSVM, ReadText and ReadArrow read a file, the files of a directory
// or those a glob names; WriteCSV and WriteArrow write one file, or one per shard
// into a directory:
//
//	cities := operators.ReadCSV(b, "cities.csv", operators.CSVOptions{Header: true})
//	large := operators.Filter(cities, func(c City) bool { return c.People > 100_000 })
//	operators.WriteCSV(large, "large.csv", operators.CSVWriteOptions{})
//
// Rows keep the order of the files, and bytes written are the same at every
// parallelism. Columns and types are found while the job is built; a file that
// has changed by the time it is read is an error. What is written appears under
// its name when the whole run has succeeded and not before. Package parquet, in
// the folder below, adds Parquet. Other formats are added with ReadRowFiles,
// for files whose parts can be read by their row numbers, and WriteFiles.
//
// # Mistakes and failures
//
// A column that does not exist, a type that does not fit or a nil function is
// recorded with the line of the call, and engine.Run returns all of them before
// anything ran. An error that a function returns, a null in a field that cannot
// hold it, or a panic fails the run; the error names operator, subtask, shard
// and the row's index within the shard.
//
// # Where things are
//
// One operator or family of operators stands in each file. What typed operators
// share, the reading and writing of rows, is in rows.go.
package operators
