// Package textfile reads delimited text, LibSVM lines and plain lines as Arrow batches, cut
// into S shards of equal bytes.
//
// # The caller's loop
//
//	files, err := textfile.Resolve("data/*.csv.gz")        // facts of the job,
//	layout, err := textfile.InferCSV(ctx, files, dialect, textfile.InferOptions{})
//	layout, err = layout.Select("age", "income")           // when it is built
//
//	c, err := textfile.OpenCSV(ctx, files, dialect, layout, textfile.Config{Shards: 128})
//	defer c.Close()                                        // where it runs, once a process
//	for shard := range mine {                              // any goroutine, any order
//		err = c.ReadShard(ctx, shard, 1024, func(rec arrow.Record) error { ... })
//	}
//
// The facts found when the job is built ([File], [Layout], [LibSVMLayout]) are plain data.
// Opening verifies them: a file that has changed is an error, and so is one that changes while
// it is read.
//
// # Cutting
//
// The files are one text in the order of their paths, without byte order marks and headers; the
// end of a file ends its last record. Range i of S holds the bytes from i·n/S to (i+1)·n/S, and
// a record belongs to the range in which its first byte lies. The cut depends on nothing else:
// not on the number of workers, nor on the batch size.
//
// The beginnings of records cannot be found locally, since a newline may be in quotes. So every
// range is first scanned for its transition: the state of the quoting automaton after the
// range, for each possible state before it. The transitions are composed in order, and then
// every range can be parsed by itself from its first record on. [CSV.Index] does so once for
// all readers of a process. Without quoting there is nothing to scan, and a block without
// quotes costs a search for a byte.
//
// # Records
//
// Records are those of encoding/csv: either line end, also inside quotes, where it reads as a
// newline; empty lines do not count; a comment is a line that begins with the comment byte. It
// differs in two points: a quote inside an unquoted cell is text, and in files of one column an
// empty line behind the header is a record with an empty cell, unless it is the last line of
// the file. In such files an empty text, or a missing value in the last line, is written as ""
// in quotes, as encoding/csv and others do. A CR alone ends no line: a header with a CR outside
// quotes is an error, and so is a file without header that is a single line because its lines
// end in CR.
//
// # Errors
//
// Errors about a record begin with file and line. Lines are not counted while reading; the file
// is read again up to the place when an error needs it. A record with a byte of 0 is bad, even
// if that cell is not read.
//
// The files of the package: files.go and tree.go (which files), text.go and unpack.go (their plain bytes),
// automaton.go and cut.go (where records begin), tokenizer.go and scanner.go
// (cells), columns.go, number.go and zeros.go (values), header.go and infer.go (which
// columns), csv.go, libsvm.go and lines.go (the formats), base.go (what these share).
package textfile
