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
// # Pages
//
// Pages of versions 1 and 2 are read, packed by snappy, zstd, gzip or brotli or not at all, and
// encoded as PLAIN, by a dictionary, RLE (of booleans), DELTA_BINARY_PACKED,
// DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY. Nothing that a page says of itself is believed
// before it was compared with the bytes that are there: one that has fewer values or levels than
// it says is an error with column, row group and page, both counted from 0. Of packed pages the
// checksums of gzip and zstd are verified, where these have them. What else was changed to other
// values that could be is not noticed, as checksums of pages are not looked at.
//
// # Cutting and bytes
//
// Rows are cut into shards by their index, whatever the row groups: each subtask
// reads from the row group in which its first shard begins. What is written
// depends on the rows alone; a row group has 65,536 rows, or fewer when they take
// 16 MiB.
package parquet
