// Package operators reads, transforms and writes datasets.
//
// # Usage
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
// A dataset has named, typed columns. Functions over single rows get each row as a Go struct:
// every exported field is a column, and a field that is a pointer may be null. The column's
// name is given by the tag `column:"name"`; without a tag it is the field's name in snake case.
// A struct need not have a field for every column. An array [4]float64, or a slice with the tag
// `column:"x,dim=4"`, is a vector of that dimension; a slice without the tag is a vector of any
// dimension. A row type that is not a struct, such as float64 or []float64, stands for a single
// column "value". If a dataset has only one column, such a type reads that column, whatever its
// name. Slices and strings in a row are borrowed for the call: they must not be modified, and
// must be copied if they are kept. Functions over batches borrow an engine.Batch, and the
// operator owns the batch that they return. Text must be UTF-8; other text is an error when a
// function returns it or a sink is about to write it. Use []byte for bytes that are not text.
//
// Several subtasks call a function at the same time, so it must not keep state.
//
// # Shards and order
//
// Every dataset is an ordered list of shards, and rows have an order within their shard.
// Operators that work on rows one by one, such as Map, Filter and WithColumn, do not change the
// shard or the order of rows. Rebalance, PartitionByHash and similar operators move rows to
// other shards; rows that arrive in a shard are in the order of their source shards. The rows
// of a dataset are ordered by shard, and then by their order within the shard. First,
// ZipWithIndex, Collect and the file sinks use this order. Shards and order do not depend on
// parallelism, batch sizes or timing.
//
// # Joins
//
// Join pairs the rows of two datasets that are equal in some columns. Such rows are partners.
// SemiJoin keeps the rows of one dataset that have a partner in the other dataset, and AntiJoin
// keeps the rows that have no partner. CoGroup groups the rows of both datasets by key.
// Distinct keeps the first of several equal rows. MapLookup joins with a small table that it
// sends to every process. On gives the columns by which rows are compared.
//
// # Files
//
// ReadCSV, ReadLibSVM, ReadText and ReadArrow read a file, the files of a directory or the
// files that match a glob. WriteCSV and WriteArrow write one file, or one file per shard into a
// directory:
//
//	cities := operators.ReadCSV(b, "cities.csv", operators.CSVOptions{Header: true})
//	large := operators.Filter(cities, func(c City) bool { return c.People > 100_000 })
//	operators.WriteCSV(large, "large.csv", operators.CSVWriteOptions{})
//
// Rows keep the order of the files, and the bytes of written files are the same at every
// parallelism. Columns and types are determined while the job is built; it is an error if a
// file changes before it is read. Output files get their names only when the whole run has
// succeeded. Package operators/parquet adds Parquet. Other formats can be added with
// WriteFiles, and with ReadRowFiles if files of the format can be read starting at any row.
//
// # Mistakes and failures
//
// Mistakes such as a column that does not exist, a type that does not fit or a nil function are
// recorded with the line of the call. engine.Run returns all of them before any operator runs.
// An error that a function returns, a null in a field that cannot hold it, or a panic fails the
// run; the error names the operator, the subtask, the shard and the row's index within the
// shard.
//
// # Source files
//
// Each source file has one operator or family of operators. rows.go has the code by which typed
// operators read and write rows.
package operators
