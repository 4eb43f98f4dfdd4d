// Package parquet reads and writes Apache Parquet files. It is separate from package operators
// so that only programs that use it link the format.
//
//	rows := parquet.Read(b, "data/*.parquet", parquet.ReadOptions{Columns: []string{"id", "features"}})
//	parquet.Write(model.Predict(rows), "predictions.parquet", parquet.WriteOptions{})
//
// # Types
//
// Booleans, integers, floats, text, bytes, dates and timestamps have the Parquet types, and JSON is
// text. Vectors are lists of floats, and sparse vectors structs of two lists, indices and values;
// other nested columns, decimals, times of day and the like are refused by name. Properties that
// Parquet does not have (the length of vectors, the size of sparse ones, seconds as the unit of
// a time, time zones) are in the file's metadata under "superstep.columns", so that reading
// restores the types; other programs see plain lists. Lists that were fixed-size lists in Arrow
// are vectors of that length again too.
//
// Timestamps with a time zone are adjusted to UTC in the file, and those without are not. They
// are read accordingly: the zone is UTC unless the file has an Arrow schema under
// "ARROW:schema" with another one. That schema is written if a column has another zone. Times
// of 96 bits do not say whether they are adjusted: they have a zone if that schema has one.
// Durations are refused by name; only that schema distinguishes them from numbers.
//
// # Pages
//
// Pages of versions 1 and 2 are read, packed by snappy, zstd, gzip, brotli or LZ4_RAW or not at all,
// and encoded as PLAIN, by a dictionary, RLE (of booleans), BYTE_STREAM_SPLIT (of numbers and times),
// DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY. The older codec LZ4, with frames
// of Hadoop, is refused by name. The header of a page is checked against its bytes before it is used:
// a page with fewer values or levels than it claims, or of more bytes than its values can take, is an
// error that names column, row group and page, both counted from 0. The checksums of gzip and zstd
// are verified where packed pages have them. Other damage that only changes values is not detected,
// as checksums of pages are not verified.
//
// # Cutting and bytes
//
// Rows are cut into shards by their index, whatever the row groups: each subtask reads from the
// row group in which its first shard begins. The bytes written depend on the rows alone. A row
// group has 65,536 rows, or fewer if they take 16 MiB.
package parquet
