package operators

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// LibSVMOptions describes the format of LibSVM lines. The zero value is the format of LIBSVM:
// indices count from 1.
type LibSVMOptions struct {
	// ZeroBased means that indices count from 0.
	ZeroBased bool
	// Size is the number of components of a row. If it is 0, it is determined from the largest
	// index in the data; for this, the data are read once while the job is built.
	Size int
	// OnError determines what to do with lines that cannot be read.
	OnError OnError
	// FS, if set, is the file system that holds the files, such as one embedded in
	// the program.
	FS fs.FS `json:"-"`
}

// ReadLibSVM reads lines of sparse rows: "label index:value …", with an optional query id
// ("qid:3") after the label, and comments after '#'. The columns are label (float64), qid
// (int64) if the first line has a query id, and features (sparse[size], indices from 0). Files
// are found, divided into shards and checked as by ReadCSV.
func ReadLibSVM(b *engine.Builder, path string, o LibSVMOptions) *engine.Dataset {
	const op = "ReadLibSVM"
	needBuilder(op, b)
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	in, err := ResolveInput(b, o.FS, path)
	if err != nil {
		return fail(err)
	}
	var layout textfile.LibSVMLayout
	name := fmt.Sprintf("size of %s, zero-based %t, size %d, on error %v", in.id, o.ZeroBased, o.Size, o.OnError)
	err = factOf(b, name, &layout, func() (any, error) {
		cfg := textfile.Config{Shards: b.Shards(), OnError: textfile.OnError(o.OnError), FS: o.FS}
		return textfile.ScanLibSVM(context.Background(), in.files, textfile.LibSVMOptions{ZeroBased: o.ZeroBased, Size: o.Size}, cfg)
	})
	if err != nil {
		return fail(err)
	}
	schema, err := layout.Schema()
	if err != nil {
		return fail(err)
	}
	attrs := append(in.attrs(path), engine.Attr{Key: "zero-based", Value: strconv.FormatBool(o.ZeroBased)})
	if o.OnError != Fail {
		attrs = append(attrs, engine.Attr{Key: "on error", Value: o.OnError.String()})
	}
	return addText(b, op, in, attrs, schema, textfile.Config{OnError: textfile.OnError(o.OnError)},
		func(ctx context.Context, cfg textfile.Config) (textReader, error) {
			return textfile.OpenLibSVM(ctx, in.files, layout, cfg)
		})
}

// VectorSize returns the number of components in the type of a dense or sparse vector column.
// It returns 0 if the type has no size, and for other columns.
func VectorSize(d *engine.Dataset, column string) int {
	if !usable(d) {
		return 0
	}
	i, err := batch.FindColumn(arrowrows.Arrow(d.Schema()), column)
	if err != nil {
		return 0
	}
	return batch.VectorDim(arrowrows.Arrow(d.Schema()).Field(i).Type)
}
