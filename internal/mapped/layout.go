package mapped

import (
	"fmt"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/memrange"
)

// Layout says where the rows of a region are in its files, so that Reopen in another process can map them.
// It has what is in memory, such as offsets, itself.
type Layout struct {
	Rows    int64         `msgpack:"rows"`
	Parts   []LayoutPart  `msgpack:"parts"`
	Columns []LayoutArray `msgpack:"columns"`
}

// LayoutPart is a part of a region: Length bytes from byte At of a file of Size bytes, with their CRC-32C.
type LayoutPart struct {
	File   string `msgpack:"file"` // name within the directory
	Size   int64  `msgpack:"size"`
	At     int64  `msgpack:"at"`
	Length int64  `msgpack:"length"`
	Sum    uint32 `msgpack:"sum"`
}

// LayoutArray is an array: a column, or values of a list.
type LayoutArray struct {
	Rows     int64          `msgpack:"rows"`
	Nulls    int64          `msgpack:"nulls"`
	Buffers  []LayoutBuffer `msgpack:"buffers"`
	Children []LayoutArray  `msgpack:"children,omitempty"`
}

// LayoutBuffer is a buffer: Length bytes from byte At of a part, whose index is Part-1; Bytes, if Part is 0;
// or no buffer, if None is true.
type LayoutBuffer struct {
	None   bool   `msgpack:"none,omitempty"`
	Part   int    `msgpack:"part,omitempty"`
	At     int64  `msgpack:"at,omitempty"`
	Length int64  `msgpack:"length,omitempty"`
	Bytes  []byte `msgpack:"bytes,omitempty"`
}

// Layout returns the layout of rows of Hold, which are borrowed. The region must be of a Files of NewNamed.
// The result refers to memory of the rows.
func (r *Region) Layout(rows arrow.Record) (Layout, error) {
	l := Layout{Rows: rows.NumRows()}
	for i := range r.parts {
		p := &r.parts[i]
		if p.of.on == nil {
			return Layout{}, fmt.Errorf("the file %s has no name", p.of.name)
		}
		l.Parts = append(l.Parts, LayoutPart{
			File: filepath.Base(p.of.name), Size: int64(len(p.of.data)),
			At: int64(memrange.Address(p.data) - memrange.Address(p.of.data)), Length: int64(p.n), Sum: p.sum,
		})
	}
	for _, column := range rows.Columns() {
		a, err := r.layoutOf(column.Data())
		if err != nil {
			return Layout{}, err
		}
		l.Columns = append(l.Columns, a)
	}
	return l, nil
}

func (r *Region) layoutOf(d arrow.ArrayData) (LayoutArray, error) {
	if d.Offset() != 0 || d.DataType().ID() == arrow.DICTIONARY {
		return LayoutArray{}, fmt.Errorf("a column of type %v is a slice or has a dictionary", d.DataType())
	}
	a := LayoutArray{Rows: int64(d.Len()), Nulls: int64(d.NullN())}
	for _, b := range d.Buffers() {
		a.Buffers = append(a.Buffers, r.layoutOfBuffer(b))
	}
	for _, child := range d.Children() {
		c, err := r.layoutOf(child)
		if err != nil {
			return LayoutArray{}, err
		}
		a.Children = append(a.Children, c)
	}
	return a, nil
}

func (r *Region) layoutOfBuffer(b *memory.Buffer) LayoutBuffer {
	if b == nil {
		return LayoutBuffer{None: true}
	}
	bytes := b.Bytes()
	if len(bytes) == 0 {
		return LayoutBuffer{}
	}
	i := r.partAt(memrange.Address(bytes))
	if i < 0 {
		return LayoutBuffer{Bytes: bytes}
	}
	return LayoutBuffer{Part: i + 1, At: int64(memrange.Address(bytes) - memrange.Address(r.parts[i].data)), Length: int64(len(bytes))}
}

// OnRelease makes the region call f before its memory is freed. There is one function for a region.
func (r *Region) OnRelease(f func()) { r.released = f }
