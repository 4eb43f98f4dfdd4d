package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
)

// Files of Arrow messages have no checksums. Damage can be detected only where the metadata of
// messages, their bodies and the footer contradict each other, so all of these are compared.

// padding is larger than the padding that writers append, for alignment, to the metadata of a
// message and to the last buffer of a body. It is smaller than every message, so that a length
// that includes the next message is detected.
const padding = 64

// CheckHead checks the metadata of a message, which is a schema, a dictionary or a record batch
// with the given columns. Tables and vectors must be within the metadata, and buffers within
// the body. Neither the metadata nor the body may have unused bytes at the end. A record batch
// must have as many rows as each of its columns.
func CheckHead(meta []byte, fields []arrow.Field) error {
	f := newFlat(meta)
	msg := f.table(int64(f.u32(0)))
	bodyLen, header, kind := f.scalar64(msg, 3), f.child(msg, 2), f.scalar8(msg, 1)
	f.keyValues(msg, 4)
	if header.pos == 0 || bodyLen < 0 {
		f.bad = true
	}
	if bad := f.err(); bad != nil {
		return bad
	}
	var err error
	switch {
	case kind == headerSchema:
		f.schema(header)
	case kind == headerDictionary:
		err = f.dictionary(header, bodyLen)
	case kind == headerRecordBatch:
		if err = f.recordBatch(header, bodyLen, shapeOf(fields)); err == nil {
			err = f.rows(header, fields)
		}
	default:
		return fmt.Errorf("its kind is %d, neither schema nor dictionary nor record batch", kind)
	}
	switch bad := f.err(); {
	case bad != nil:
		return bad
	case err != nil:
		return err
	case int64(len(meta))-f.end >= padding:
		return fmt.Errorf("its metadata of %d bytes end at %d", len(meta), f.end)
	case bodyLen-f.buffers >= padding:
		return fmt.Errorf("its body of %d bytes ends at %d", bodyLen, f.buffers)
	}
	return nil
}

// rows checks that the columns of a record batch have the number of rows of the batch.
func (f *flat) rows(batch flatTable, fields []arrow.Field) error {
	rows, node := f.scalar64(batch, 0), int64(0)
	for _, field := range fields {
		if n := f.i64(f.nodes + 16*node); n != rows && !f.bad {
			return fmt.Errorf("it has %d rows, and its column %s %d", rows, quote(field.Name), n)
		}
		node += shapeOfType(field.Type).nodes
	}
	return nil
}

// dictionary checks the metadata of a dictionary. Its values are one column of any type.
func (f *flat) dictionary(t flatTable, bodyLen int64) error {
	values := f.child(t, 1)
	if _, n := f.vector(values, 1, 16); n == 0 {
		f.bad = true
		return nil
	}
	if err := f.body(values, bodyLen); err != nil {
		return err
	}
	if n, rows := f.i64(f.nodes), f.scalar64(values, 0); n != rows && !f.bad {
		return fmt.Errorf("it has %d values, and its column %d", rows, n)
	}
	return nil
}

// Footer is the footer of a file in the Arrow IPC file format.
type Footer struct {
	// Schema is the metadata of a schema message, made from the schema in the footer.
	Schema []byte
	// Dictionaries and Batches are the positions of the dictionary and record batch messages.
	Dictionaries, Batches []FileBlock
}

// FileBlock is the position of a message in a file.
type FileBlock struct {
	Offset int64
	Head   int64 // number of bytes of the metadata, including the length before the metadata
	Body   int64 // number of bytes of the body
}

// ReadFooter returns the footer encoded in b. It returns an error if the encoding is damaged.
func ReadFooter(b []byte) (Footer, error) {
	f := newFlat(b)
	foot := f.table(int64(f.u32(0)))
	schema := f.child(foot, 1)
	footer := Footer{Dictionaries: f.blocks(foot, 2), Batches: f.blocks(foot, 3)}
	if schema.pos == 0 {
		f.bad = true
	}
	if bad := f.err(); bad != nil {
		return Footer{}, bad
	}
	footer.Schema = schemaHead(b, schema.pos)
	return footer, nil
}

func (f *flat) blocks(t flatTable, slot int) []FileBlock {
	const size = 24
	start, n := f.vector(t, slot, size)
	blocks := make([]FileBlock, 0, n)
	for at := start; at < start+n*size; at += size {
		blocks = append(blocks, FileBlock{Offset: f.i64(at), Head: int64(f.u32(at + 8)), Body: f.i64(at + 16)})
	}
	return blocks
}

// schemaHead returns b with a Message table before it, which refers to the schema table at
// position schema in b.
func schemaHead(b []byte, schema int64) []byte {
	const vtable, table, own = 4, 16, 32
	const header, version, kind, size = 4, 8, 10, 12
	made := make([]byte, own, own+len(b))
	word := binary.LittleEndian
	word.PutUint32(made, table)
	for i, entry := range []uint16{10, size, version, kind, header} {
		word.PutUint16(made[vtable+2*i:], entry)
	}
	word.PutUint32(made[table:], table-vtable)
	word.PutUint32(made[table+header:], uint32(own+schema-table-header))
	word.PutUint16(made[table+version:], 4) // metadata version V5
	made[table+kind] = headerSchema
	return append(made, b...)
}
