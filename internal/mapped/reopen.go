package mapped

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/disk"
)

// Reopened maps the files that another process has left in a directory. Each file is mapped once, and its
// name is removed when its last region is released. No other process may use the files. A Reopened is used
// by one goroutine.
type Reopened struct {
	on    disk.FS
	dir   string
	files map[string]*mapping
}

// NewReopened returns a Reopened of a directory.
func NewReopened(on disk.FS, dir string) *Reopened {
	return &Reopened{on: on, dir: dir, files: make(map[string]*mapping)}
}

// Rows maps the rows that a layout describes. It checks that they lie within their files, and their
// checksums. That lengths, offsets and types fit each other is for the caller to check, before it reads the
// rows. memory is the number of bytes of the rows that are in memory.
func (o *Reopened) Rows(schema *arrow.Schema, l Layout) (rows arrow.Record, region *Region, inMemory int64, err error) {
	if l.Rows < 0 || len(l.Columns) != schema.NumFields() {
		return nil, nil, 0, fmt.Errorf("%d columns of %d rows, where there are to be %d columns", len(l.Columns), l.Rows, schema.NumFields())
	}
	r := newRegion(nil, 0)
	defer func() {
		if err != nil && rows != nil {
			rows.Release()
		}
		r.release()
	}()
	for i := range l.Parts {
		p, err := o.part(&l.Parts[i])
		if err != nil {
			return nil, nil, 0, err
		}
		r.parts = append(r.parts, p)
	}
	if err := r.Verify(); err != nil {
		return nil, nil, 0, err
	}
	b := &rebuilder{region: r}
	columns := make([]arrow.Array, 0, len(l.Columns))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i := range l.Columns {
		if l.Columns[i].Rows != l.Rows {
			return nil, nil, 0, fmt.Errorf("column %d has %d of %d rows", i, l.Columns[i].Rows, l.Rows)
		}
		d, err := b.data(schema.Field(i).Type, &l.Columns[i], 0)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("column %d: %w", i, err)
		}
		c, err := arrayOf(d)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("column %d: %w", i, err)
		}
		columns = append(columns, c)
	}
	return array.NewRecord(schema, columns, l.Rows), r, b.inMemory, nil
}

// part returns a part of a file, which it maps if that was not done yet.
func (o *Reopened) part(l *LayoutPart) (part, error) {
	m := o.files[l.File]
	if m == nil {
		if l.File == "" || filepath.Base(l.File) != l.File {
			return part{}, fmt.Errorf("the name of a file is %q", l.File)
		}
		var err error
		if m, err = mapOld(o.on, filepath.Join(o.dir, l.File), l.Size); err != nil {
			return part{}, err
		}
		live.Add(m.data)
		o.files[l.File] = m
		m.users.Store(1) // that of o, until Close
	}
	size := int64(len(m.data))
	if l.Size != size || l.At < 0 || l.At%alignment != 0 || l.Length < 0 || l.At > size || l.Length > size-l.At {
		return part{}, fmt.Errorf("%d bytes from byte %d of the file %s, which has %d", l.Length, l.At, m.name, size)
	}
	m.users.Add(1)
	end := l.At + l.Length
	return part{of: m, data: m.data[l.At:end:end], n: int(l.Length), sum: l.Sum}, nil
}

// Close makes the files free their memory and remove their names with their last regions.
func (o *Reopened) Close() {
	for _, m := range o.files {
		m.release()
	}
	clear(o.files)
}

// rebuilder makes arrays from their layouts.
type rebuilder struct {
	region   *Region
	inMemory int64
}

const maxDepth = 8 // of arrays in arrays

// data returns the data of an array, owned by the caller.
func (b *rebuilder) data(t arrow.DataType, l *LayoutArray, depth int) (arrow.ArrayData, error) {
	fields := []arrow.Field(nil)
	if nested, ok := t.(arrow.NestedType); ok {
		fields = nested.Fields()
	}
	if depth > maxDepth || len(l.Children) != len(fields) || l.Rows < 0 || l.Rows > maxLength || l.Nulls < 0 || l.Nulls > l.Rows {
		return nil, fmt.Errorf("%d values, of which %d are null, with %d arrays in it, for type %v", l.Rows, l.Nulls, len(l.Children), t)
	}
	buffers := make([]*memory.Buffer, 0, len(l.Buffers))
	children := make([]arrow.ArrayData, 0, len(fields))
	defer func() {
		for _, buffer := range buffers {
			if buffer != nil {
				buffer.Release()
			}
		}
		for _, child := range children {
			child.Release()
		}
	}()
	for i := range l.Buffers {
		buffer, err := b.buffer(&l.Buffers[i])
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, buffer)
	}
	for i := range fields {
		child, err := b.data(fields[i].Type, &l.Children[i], depth+1)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return array.NewData(t, int(l.Rows), buffers, children, int(l.Nulls), 0), nil
}

const maxLength = 1 << 40 // of an array, so that sizes in bytes do not overflow

// buffer returns a buffer, owned by the caller.
func (b *rebuilder) buffer(l *LayoutBuffer) (*memory.Buffer, error) {
	switch {
	case l.None:
		return nil, nil
	case l.Part == 0:
		b.inMemory += int64(len(l.Bytes))
		return memory.NewBufferBytes(l.Bytes), nil
	case l.Part < 0 || l.Part > len(b.region.parts):
		return nil, fmt.Errorf("a buffer in part %d of %d", l.Part, len(b.region.parts))
	}
	p := &b.region.parts[l.Part-1]
	if size := int64(len(p.data)); l.At < 0 || l.At%alignment != 0 || l.Length < 1 || l.At > size || l.Length > size-l.At {
		return nil, fmt.Errorf("a buffer of %d bytes from byte %d of a part of %d", l.Length, l.At, size)
	}
	b.region.held.Add(1)
	return memory.NewBufferWithAllocator(p.data[l.At:l.At+l.Length:l.At+l.Length], allocator{b.region}), nil
}

// arrayOf returns an array, owned by the caller, of data that it owns. Arrow panics if the number of buffers
// does not fit the type.
func arrayOf(d arrow.ArrayData) (a arrow.Array, err error) {
	defer d.Release()
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errors.New("its buffers do not fit its type"), fmt.Errorf("%v", p))
		}
	}()
	return array.MakeFromData(d), nil
}
