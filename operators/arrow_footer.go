package operators

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// nothingBehind verifies that the bytes [from, to) of r are only padding. from is the offset at
// which an end mark ends. Readers of streams stop at the end mark. In a file, other bytes after
// it mean that a length is damaged or that another stream follows, and rows in these bytes
// would be lost.
func nothingBehind(r io.ReaderAt, from, to int64) error {
	rest := make([]byte, min(to-from, 64))
	if _, err := r.ReadAt(rest, from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(rest) == 64 || len(bytes.Trim(rest, "\x00")) > 0 {
		return fmt.Errorf("the data end before byte %d, and %d bytes follow", from, to-from)
	}
	return nil
}

// agree returns an error if the footer, which is in the bytes [from, to) of r, does not list
// the messages that were found.
func (x *arrowIndex) agree(r io.ReaderAt, from, to int64) error {
	text := make([]byte, to-from-arrowTail)
	if _, err := r.ReadAt(text, from); err != nil {
		return batch.Unexpected(err)
	}
	foot, err := batch.ReadFooter(text)
	if err != nil {
		return err
	}
	if err := x.sameBlocks("dictionary", foot.Dictionaries, x.found[0]); err != nil {
		return err
	}
	if err := x.sameBlocks("record batch", foot.Batches, x.found[1]); err != nil {
		return err
	}
	return x.sameSchema(foot.Schema)
}

func (x *arrowIndex) sameBlocks(what string, told, found []batch.FileBlock) error {
	for i := range max(len(told), len(found)) {
		switch {
		case i == len(told):
			return fmt.Errorf("it lists %d of %d messages with a %s, and not that at byte %d", len(told), len(found), what, found[i].Offset)
		case i == len(found):
			return fmt.Errorf("it lists a %s at byte %d, and there is none", what, told[i].Offset)
		case told[i] != found[i]:
			return fmt.Errorf("it lists a %s at byte %d, of %d and %d bytes, and there is one at byte %d, of %d and %d", what,
				told[i].Offset, told[i].Head, told[i].Body, found[i].Offset, found[i].Head, found[i].Body)
		}
	}
	return nil
}

// sameSchema returns an error if the schema in the footer differs from the schema at the
// beginning of the file. head has the schema of the footer, encoded as the header of a message.
func (x *arrowIndex) sameSchema(head []byte) error {
	message := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	whole := append(message, head...)
	m, head, err := readMessage(bytes.NewReader(whole), 0, int64(len(whole)), nil)
	if err == nil {
		err = batch.CheckHead(head, nil)
	}
	if err != nil {
		return fmt.Errorf("its schema: %w", err)
	}
	schema, err := batch.ReadSchema(bytes.NewReader(whole))
	if err != nil {
		return fmt.Errorf("its schema: %w", err)
	}
	// Fields are compared without their metadata, as its order may differ.
	same := func(a, b arrow.Field) bool {
		return a.Name == b.Name && a.Nullable == b.Nullable && arrow.TypeEqual(a.Type, b.Type)
	}
	if schema.Endianness() != x.declared.Endianness() || !slices.Equal(m.ids, x.ids) || !slices.EqualFunc(schema.Fields(), x.declared.Fields(), same) {
		return errors.New("its schema is another one than that before the batches")
	}
	return nil
}

// dictionaryIDs returns the id of each column's dictionary and the ids of all dictionaries.
// schema is the position of the schema's table in the buffer.
func (f *flatBuffer) dictionaryIDs(schema int64) (ids []int64, all map[int64]bool) {
	all = map[int64]bool{}
	left := len(f.b) // bounds the number of fields, as damaged tables may refer to each other
	var walk func(fields int64, depth int) []int64
	walk = func(fields int64, depth int) (ids []int64) {
		at := f.follow(fields)
		if at == 0 {
			return nil
		}
		n := f.u32(at)
		if left -= int(n); left < 0 || depth > 32 {
			f.bad = true
			return nil
		}
		ids = make([]int64, n)
		for i := range ids {
			field := f.follow(at + 4 + 4*int64(i))
			if encoding := f.follow(f.field(field, 4)); encoding != 0 {
				ids[i] = f.i64(f.field(encoding, 0))
				all[ids[i]] = true
			}
			walk(f.field(field, 5), depth+1)
		}
		return ids
	}
	return walk(f.field(schema, 1), 0), all
}
