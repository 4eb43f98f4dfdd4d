// Package textfile reads delimited text, LibSVM lines and plain lines as Arrow batches. The
// text is cut into S shards of equal numbers of bytes.
//
// # The caller's loop
//
//	files, err := textfile.Resolve("data/*.csv.gz")        // when the job is built
//	layout, err := textfile.InferCSV(ctx, files, dialect, textfile.InferOptions{})
//	layout, err = layout.Select("age", "income")
//
//	c, err := textfile.OpenCSV(ctx, files, dialect, layout, textfile.Config{Shards: 128})
//	defer c.Close()                                        // in every process that runs the job
//	for shard := range mine {                              // any goroutine, any order
//		err = c.ReadShard(ctx, shard, 1024, func(rec arrow.Record) error { ... })
//	}
//
// The facts that are determined when the job is built ([File], [Layout], [LibSVMLayout]) are
// plain data. Opening verifies the files: a file that has changed since the job was built is an
// error, and so is a file that changes while it is read.
//
// # Cutting
//
// The files are read as one text, in the order of their paths, without byte order marks and
// headers. The end of a file ends its last record. Range i of S holds the bytes from i·n/S to
// (i+1)·n/S, and a record belongs to the range in which its first byte lies. The cut depends on
// nothing else; in particular, it does not depend on the number of workers or the batch size.
//
// A newline may be in quotes, so the beginnings of records cannot be found from the bytes of a
// range alone. Therefore every range is first scanned for its transition: the state of the
// quoting automaton after the range, for each possible state before it. The transitions are
// composed in order, and then every range can be parsed separately from its first record on.
// [CSV.Index] computes the states before all ranges once for all goroutines of a process.
// Without quoting there is no scan, and for a block without quotes the scan only searches for a
// byte.
//
// # Records
//
// Records are defined as in encoding/csv. Lines end in LF or CR LF; inside quotes, both are
// read as a newline. Empty lines are ignored. A comment is a line that begins with the comment
// byte. There are two differences from encoding/csv. A quote inside an unquoted cell is text.
// In files of one column, an empty line after the header is a record with an empty cell, unless
// it is the last line of the file. In such files an empty text, or a missing value in the last
// line, must be written as "", which encoding/csv and other programs do. A CR alone does not
// end a line. Therefore a header with a CR outside quotes is an error. A file without a header
// whose lines all end in CR would be a single line, and is an error too.
//
// # Errors
//
// Errors about a record begin with file and line. Lines are not counted while records are read;
// for an error, the file is read again up to the record to count lines. A record with a byte of
// 0 is bad, even if the byte is in a cell that is not read.
//
// The source files of the package are: files.go and tree.go (list of input files), text.go and
// unpack.go (plain bytes of the input), automaton.go and cut.go (beginnings of records),
// tokenizer.go and scanner.go (cells), columns.go, number.go and zeros.go (values), header.go
// and infer.go (columns and types), csv.go, libsvm.go and lines.go (the formats), and base.go
// (common parts of the formats).
package textfile
