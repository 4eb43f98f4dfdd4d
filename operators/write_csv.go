package operators

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// CSVWriteOptions describes how delimited text is written. The zero value means comma-separated
// text with a header, in which a missing value is an empty cell.
type CSVWriteOptions struct {
	// NoHeader leaves out the line of column names.
	NoHeader bool
	// Delimiter separates cells; 0 means a comma.
	Delimiter byte
	// Null is the spelling of a missing value. In text columns, a value with that spelling is
	// quoted to distinguish it. In other columns, quotes do not distinguish them. So it is an
	// error if Null is the spelling of a value that a nullable column of another type can have:
	// "NaN" or "-1" for floats, or "NULL" for bytes, as "NULL" is valid base64.
	Null string
	// PerShard makes WriteCSV write one file per shard, including empty shards, into a
	// directory at the path. Each file has a header. The files are named part-00000.csv and so
	// on.
	PerShard bool
}

// WriteCSV writes the rows of d, in their order, as delimited text to the file at path. See
// WriteFiles for when and where the file appears. The bytes are the same at every parallelism.
//
// Lines end in "\n". Floats are written as the shortest decimal that is read as the same float,
// bytes in base64, vectors as [1 2.5 3] and sparse vectors as [0:1 7:2.5]. Times are written in
// the format of RFC 3339: in UTC with Z if their type has a time zone, otherwise without a
// zone. Text is quoted if it contains delimiters, quotes or newlines, begins or ends with a
// space, is empty, or equals Null. Text with a zero byte is an error. If CSVOptions has the
// types of the columns, ReadCSV reads the same values, with these exceptions: "\r\n" within
// text becomes "\n"; and unless Null is set, empty bytes are read as missing, and missing text
// in the only column of a file is read as empty text.
func WriteCSV(d *engine.Dataset, path string, o CSVWriteOptions) {
	const op = "WriteCSV"
	b := builderOf(op, d)
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	err := o.check()
	if err == nil && usable(d) && d.Schema().Len() == 0 {
		err = errors.New("the dataset has no columns")
	}
	if err == nil && usable(d) {
		err = o.checkNull(arrowrows.Arrow(d.Schema()))
	}
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return
	}
	f := FileFormat{
		Op:        op,
		Extension: "csv",
		Rows:      func(w io.Writer) RowWriter { return recordWriter{textfile.NewWriter(w, o.form())} },
	}
	if o.Delimiter != ',' {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "delimiter", Value: fmt.Sprintf("%q", o.Delimiter)})
	}
	if o.Null != "" {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "null", Value: fmt.Sprintf("%q", o.Null)})
	}
	if o.NoHeader {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "header", Value: "false"})
	} else if usable(d) {
		head := o.form().Header(arrowrows.Arrow(d.Schema()))
		f.Head = func(w io.Writer) error {
			_, err := w.Write(head)
			return err
		}
	}
	WriteFiles(d, path, o.PerShard, f)
}

func (o CSVWriteOptions) check() error {
	if c := o.Delimiter; c == '"' || c == '\n' || c == '\r' || c >= 0x80 {
		return fmt.Errorf("%q cannot be the delimiter", c)
	}
	if strings.ContainsAny(o.Null, "\"\r\n"+string(rune(o.Delimiter))) || strings.Trim(o.Null, " \t") != o.Null {
		return fmt.Errorf("the spelling %q of a missing value would have to be quoted, and then it would be text", o.Null)
	}
	return nil
}

// checkNull returns an error if Null is also the spelling of a value of a nullable column that
// is not text. An empty Null is allowed, as only empty bytes have this spelling.
func (o CSVWriteOptions) checkNull(schema *arrow.Schema) error {
	if o.Null == "" {
		return nil
	}
	values, err := batch.NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return err
	}
	defer values.Release()
	for i, f := range schema.Fields() {
		if !f.Nullable || f.Type.ID() == arrow.STRING || batch.ParseInto(values.Field(i), []byte(o.Null)) != nil {
			continue
		}
		return fmt.Errorf("the spelling %q of a missing value is also a value of column %q, which is %s and may have missing values: "+
			"choose one that is no value, or the empty one", o.Null, f.Name, batch.TypeName(f.Type))
	}
	return nil
}

func (o CSVWriteOptions) form() textfile.Form {
	return textfile.Form{Delimiter: o.Delimiter, Null: o.Null}
}
