// Package parquet reads and writes Apache Parquet files. It is separate from package operators
// so that only programs that import it link the Parquet library.
//
//	rows := parquet.Read(b, "data/*.parquet", parquet.ReadOptions{Columns: []string{"id", "features"}})
//	parquet.Write(model.Predict(rows), "predictions.parquet", parquet.WriteOptions{})
//
// # Types
//
// Booleans, integers, floats, text, bytes, dates and timestamps have the corresponding Parquet
// types, and JSON is read as text. Vectors are lists of floats, and sparse vectors are structs
// of two lists, indices and values. Columns of other nested types, decimals, times of day and
// the like are refused with an error that names the column. Properties that Parquet does not
// have (the length of vectors, the size of sparse vectors, seconds as the unit of a time, time
// zones) are stored in the file's metadata under "superstep.columns", from which Read restores
// the types; other programs read plain lists. If the file has an Arrow schema, lists that are
// fixed-size lists in that schema are read as vectors of that length.
//
// Timestamps with a time zone are stored as adjusted to UTC, and timestamps without a zone as
// not adjusted. The metadata of a file may contain an Arrow schema, under "ARROW:schema". Read
// gives adjusted timestamps their zone in that schema, or UTC if the schema has none. Write
// adds an Arrow schema if a column has a zone other than UTC. Times of 96 bits (INT96) do not
// record whether they are adjusted, so Read gives them a zone only if the Arrow schema has one
// for them. Durations, which only the Arrow schema distinguishes from numbers, are refused with
// an error that names the column.
//
// # Pages
//
// Read supports data pages of versions 1 and 2, uncompressed or compressed by snappy, zstd,
// gzip, brotli or LZ4_RAW, in the encodings PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, RLE (for
// booleans), BYTE_STREAM_SPLIT (for numbers and times), DELTA_BINARY_PACKED,
// DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY. The older codec LZ4, with Hadoop's frames, is
// refused with an error that names it. The header of a page is checked against the page's bytes
// before it is used: it is an error if a page has fewer values or levels than it claims, or
// more bytes than its values can take. The error contains the name of the column and the
// numbers of the row group and page, counted from 0. The checksums of gzip and zstd are
// verified if compressed pages have them. Other damage that changes only values is not
// detected, as checksums of pages are not verified.
//
// # Shards and bytes
//
// Rows are divided into shards by their index, independently of row groups: each subtask begins
// to read at the row group in which its first shard begins. The written bytes depend only on
// the rows. A row group has 65,536 rows, or fewer if fewer rows already take 16 MiB.
package parquet
