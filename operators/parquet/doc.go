// Package parquet reads and writes Apache Parquet files. It stands apart from
// package operators so that only programs that use it link the format.
//
//	rows := parquet.Read(b, "data/*.parquet", parquet.ReadOptions{Columns: []string{"id", "features"}})
//	parquet.Write(model.Predict(rows), "predictions.parquet", parquet.WriteOptions{})
//
// # Types
//
// Booleans, integers, floats, text, bytes, dates and timestamps are what they
// are in Parquet. Vectors are lists of floats, and sparse vectors structs of two
// lists, indices and values; other nested columns, decimals, times of day and
// the like are refused by name. What Parquet cannot say (the length of vectors,
// the size of sparse ones, seconds as the unit of a time, time zones) stands in
// the file's metadata under "superstep.columns", so that types come back as they
// were; other programs see plain lists. Lists that were fixed-size lists in Arrow
// are vectors of that length again too.
//
// Timestamps with a time zone are adjusted to UTC in the file, those without are
// not, and so they are read: the zone is UTC unless the file has the schema that
// Arrow had, under "ARROW:schema", which is written where a column has another
// zone. Times of 96 bits, which do not tell, have a zone where that schema has one.
// Durations, which only that schema tells from numbers, are refused by name.
//
// # Cutting and bytes
//
// Rows are cut into shards by their index, whatever the row groups: each subtask
// reads from the row group in which its first shard begins. What is written
// depends on the rows alone; a row group has 65,536 rows, or fewer when they take
// 16 MiB.
package parquet
