package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
)

// deepestSchema is the largest depth of nested groups in a schema, including the root.
const deepestSchema = 100

// readFooter returns the metadata of a file of size bytes. It checks the schema before the
// library decodes it, because the library allocates as much memory and recurses as deep as the
// schema claims.
func readFooter(r io.ReaderAt, size int64) (*metadata.FileMetaData, error) {
	var tail [8]byte // the footer's size, and the file's magic
	if size < int64(len(tail)) {
		return nil, fmt.Errorf("it is no Parquet file: it has %d bytes", size)
	}
	if n, err := r.ReadAt(tail[:], size-int64(len(tail))); n < len(tail) {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PAR1":
	case "PARE":
		return nil, errors.New("its footer is encrypted, which is not supported")
	default:
		return nil, errors.New("it is no Parquet file, or it is cut off: it does not end in PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(len(tail)) {
		return nil, fmt.Errorf("its footer says that it has %d bytes, of a file of %d", n, size)
	}
	footer := make([]byte, n)
	if got, err := r.ReadAt(footer, size-int64(len(tail))-n); int64(got) < n {
		return nil, err
	}
	if err := checkSchema(footer, func(string, []byte) {}); err != nil {
		return nil, err
	}
	meta, err := decodeFooter(footer)
	if err == errWrongType {
		err = wrongType(footer)
	}
	return meta, err
}

var errWrongType = errors.New("its schema has a type that is damaged")

func decodeFooter(footer []byte) (meta *metadata.FileMetaData, err error) {
	defer func() {
		if v := recover(); v != nil { // the library panics if it cannot read the schema
			err = errWrongType
		}
	}()
	if meta, err = metadata.NewFileMetaData(footer, nil); err != nil {
		return nil, fmt.Errorf("its footer is damaged: %w", err)
	}
	return meta, nil
}

// wrongType returns the error for a footer whose decoding gives errWrongType. The error names
// the first column for which a footer with only this column also gives errWrongType.
func wrongType(footer []byte) error {
	const before, after = "\x15\x02\x19\x2c\x48\x00\x15\x02\x00", "\x16\x00\x19\x0c\x00" // a footer whose schema is a root with one child
	err := errWrongType
	_ = checkSchema(footer, func(column string, element []byte) {
		if _, failed := decodeFooter([]byte(before + string(element) + after)); err == errWrongType && failed == errWrongType {
			err = fmt.Errorf("column %q: its schema has a logical type that its physical type cannot have, such as text of a fixed number of bytes", column)
		}
	})
	return err
}

// columnChunk returns the footer's metadata of a column in a row group. group and column are
// their indices.
func columnChunk(meta *metadata.FileMetaData, group, column int) (*metadata.ColumnChunkMetaData, error) {
	columns := meta.RowGroups[group].Columns
	switch n := meta.Schema.NumColumns(); {
	case len(columns) != n:
		return nil, fmt.Errorf("row group %d: the footer describes %d columns, where the schema has %d", group, len(columns), n)
	case columns[column].CryptoMetadata != nil:
		return nil, fmt.Errorf("row group %d: it is encrypted, which is not supported", group)
	case columns[column].MetaData == nil:
		return nil, fmt.Errorf("row group %d: the footer does not describe it", group)
	}
	return meta.RowGroup(group).ColumnChunk(column)
}

// schemaElement has the fields of a node of the schema. A missing number is the constant unset.
// A schema is a list of its nodes, in which each node precedes its children.
type schemaElement struct {
	name                 string
	repetition, children int64
}

const unset = math.MinInt64

// checkSchema returns an error if the schema of a footer is not a tree, is too deep, or does
// not say of every node whether it is required, optional or repeated. It calls leaf for each
// element without children, with the name of the element's column and the bytes of the element.
func checkSchema(footer []byte, leaf func(column string, element []byte)) error {
	const schemaField = 2
	c := compact{data: footer}
	var wrong error
	schemas := 0
	c.fields(0, func(id int64, kind byte) bool {
		if id != schemaField || kind != thriftList {
			return false
		}
		schemas++
		n, element := c.list()
		if element != thriftStruct {
			c.bad = true
			return true
		}
		wrong = c.tree(n, leaf)
		c.bad = c.bad || wrong != nil
		return true
	})
	switch {
	case wrong != nil:
		return wrong
	case c.bad || schemas != 1:
		return errors.New("its footer is damaged")
	}
	return nil
}

// tree reads and checks the n elements of a schema. See checkSchema for leaf.
func (c *compact) tree(n uint64, leaf func(column string, element []byte)) error {
	left := []int64{1} // for each group that contains the next element, the number of its children not yet read
	column := ""
	for i := uint64(0); i < n; i++ {
		from := c.data
		e := c.schemaElement()
		for len(left) > 0 && left[len(left)-1] == 0 {
			left = left[:len(left)-1]
		}
		switch r := e.repetition; {
		case c.bad:
			return errors.New("its schema is damaged")
		case len(left) == 0:
			return fmt.Errorf("its schema has %d elements, of which %d are not part of a column", n, n-i)
		case i > 0 && r == unset:
			return fmt.Errorf("its schema does not say whether %q is required, optional or repeated", e.name)
		case i > 0 && (r < 0 || r > int64(pq.Repetitions.Repeated)):
			return fmt.Errorf("its schema has %d for the repetition of %q, which is 0, 1 or 2", r, e.name)
		case e.children != unset && (e.children < 0 || uint64(e.children) >= n-i):
			return fmt.Errorf("its schema says that %q has %d children, and has %d more elements", e.name, e.children, n-i-1)
		}
		left[len(left)-1]--
		if len(left) == 2 { // the element is a child of the root
			column = e.name
		}
		if e.children > 0 {
			left = append(left, e.children)
		} else {
			leaf(column, from[:len(from)-len(c.data)])
		}
		if len(left)-1 > deepestSchema {
			return fmt.Errorf("its schema has more than %d groups in one another, down to %q", deepestSchema, e.name)
		}
	}
	for _, missing := range left {
		if missing > 0 {
			return fmt.Errorf("its schema ends early, after %d elements", n)
		}
	}
	return nil
}

func (c *compact) schemaElement() schemaElement {
	e, named := schemaElement{repetition: unset, children: unset}, false
	c.fields(0, func(id int64, kind byte) bool {
		switch {
		case id == 3:
			return c.numberInto(&e.repetition, kind)
		case id == 4 && kind == thriftBinary:
			e.name, named = string(c.take(c.uvarint())), true
			return true
		case id == 5:
			return c.numberInto(&e.children, kind)
		}
		return false
	})
	c.bad = c.bad || !named
	return e
}
