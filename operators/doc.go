// Package operators reads, transforms and writes datasets.
//
// # Using it
//
// Operators are functions. Each takes the datasets it reads, adds itself to the graph and
// returns the dataset it emits; nothing is computed before the job runs:
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
// A dataset has named, typed columns. Functions over single rows see them as Go structs: every
// exported field is a column, by the name in its tag `column:"name"` or else its own in snake
// case, and a field that is a pointer may be null. A struct names the columns it wants and need
// not have the others. An array [4]float64, or a slice with the tag `column:"x,dim=4"`, is a
// vector of that dimension; a slice without the tag is a vector of any dimension. Any other
// type, such as float64 or []float64, stands for the one column "value". It also reads the only
// column of a dataset with one column, whatever its name. Slices and strings in a row are
// borrowed for the call: they must not be modified, and what is kept must be copied. Functions
// over batches borrow an engine.Batch; the operator owns what they return. Text must be UTF-8;
// other text is refused when a function makes it or a sink would write it. Keep bytes that are
// not text as []byte.
//
// A function is called by several subtasks at once and keeps no state.
//
// # Shards and order
//
// Every dataset is an ordered list of shards, and rows have an order within their shard.
// Operators that work on rows one by one, such as Map, Filter and WithColumn, leave rows where
// they are. Rebalance, PartitionByHash and similar operators move rows to other shards; rows
// that arrive in a shard are in the order of their source shards. The order of a dataset is
// that of its shards. First, ZipWithIndex, Collect and the file sinks use this order. None of
// it depends on parallelism, on batch sizes or on timing.
//
// # Joins
//
// Join pairs the rows of two datasets that are equal in some columns, SemiJoin and AntiJoin
// keep the rows of one dataset with or without a partner in the other, CoGroup gathers the rows
// of both by key, and Distinct keeps the first of equal rows. MapLookup sends a small table to
// every process. On says which rows are equal.
//
// # Files
//
// ReadCSV, ReadLibSVM, ReadText and ReadArrow read a file, the files of a directory or those a
// glob names; WriteCSV and WriteArrow write one file, or one per shard into a directory:
//
//	cities := operators.ReadCSV(b, "cities.csv", operators.CSVOptions{Header: true})
//	large := operators.Filter(cities, func(c City) bool { return c.People > 100_000 })
//	operators.WriteCSV(large, "large.csv", operators.CSVWriteOptions{})
//
// Rows keep the order of the files, and bytes written are the same at every parallelism.
// Columns and types are found while the job is built; a file that has changed by the time it is
// read is an error. Outputs appear under their names when the whole run has succeeded and not
// before. Package parquet, in the folder below, adds Parquet. Other formats are added with
// ReadRowFiles, for files whose parts can be read by their row numbers, and WriteFiles.
//
// # Mistakes and failures
//
// A column that does not exist, a type that does not fit or a nil function is recorded with the
// line of the call, and engine.Run returns all of them before anything ran. An error that a
// function returns, a null in a field that cannot hold it, or a panic fails the run; the error
// names operator, subtask, shard and the row's index within the shard.
//
// # Where things are
//
// Each file has one operator or family of operators. The reading and writing of rows, which
// typed operators share, is in rows.go.
package operators
