package operators

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// arrowIndex holds the positions of the record batches of an Arrow IPC file. Both formats,
// stream and file, are a sequence of messages that begins with the schema. The file format also
// has a magic number at both ends, and a footer with the positions of the messages, but not
// with their numbers of rows. So the headers of the messages are read one after another, and
// the bodies are skipped. Files have no checksums, and a damaged length of 0 looks like the end
// mark. Therefore each header must fit the schema and the message's body, the footer must list
// the same messages, and nothing may follow the last message.
type arrowIndex struct {
	declared     *arrow.Schema
	begin        []int64    // offset of each batch with rows
	spans        [][2]int64 // byte ranges of adjacent batches with rows; other messages are between the ranges
	first        []int64    // index of the first row of each batch
	rows         int64
	dictionaries map[int64][]arrowDictionary // dictionary id -> its messages in the order of the file
	ids          []int64                     // column number -> id of its dictionary; undefined if the column has none
	known        map[int64]bool              // ids of all dictionaries that columns refer to

	found [2][]batch.FileBlock // positions of all dictionary messages, and of all record batches
}

// arrowDictionary is a message with values of a dictionary.
type arrowDictionary struct {
	at, end int64 // byte range of the message
	before  int   // number of batches with rows before the message
	whole   int   // index of the earlier message whose values are the first of this dictionary; the index of this message if it replaces earlier values
}

// inForce returns which messages have the values of the dictionary id that a batch refers to:
// the messages with indices first to last-1 in dictionaries[id].
func (x *arrowIndex) inForce(id int64, batch int) (first, last int) {
	all := x.dictionaries[id]
	last = sort.Search(len(all), func(i int) bool { return all[i].before > batch })
	if last == 0 {
		return 0, 0
	}
	return all[last-1].whole, last
}

const arrowMagic = "ARROW1"

// arrowTail is the number of bytes after a footer: the footer's length, and the magic number.
const arrowTail = 4 + int64(len(arrowMagic))

// These are kinds of messages, numbered as in the union MessageHeader of the Arrow format.
const (
	messageSchema      = 1
	messageDictionary  = 2
	messageRecordBatch = 3
)

// indexArrow reads the headers of the messages of a file and returns their index.
func indexArrow(r io.ReaderAt, size int64) (*arrowIndex, error) {
	from, to, err := arrowBounds(r, size)
	if err != nil {
		return nil, err
	}
	x := &arrowIndex{}
	var head []byte
	at := from
	// Some writers of the file format omit the end mark, as the footer makes it redundant.
	for at < to || to == size {
		var m arrowMessage
		m, head, err = readMessage(r, at, to, head)
		if err == io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
			if err := nothingBehind(r, m.end, to); err != nil {
				return nil, err
			}
			break
		}
		if err == nil {
			err = x.add(r, at, m, head)
		}
		if err != nil {
			return nil, fmt.Errorf("message at byte %d: %w", at, err)
		}
		at = m.end
	}
	if x.declared == nil {
		return nil, errors.New("it has no schema")
	}
	if to < size {
		if err := x.agree(r, to, size); err != nil {
			return nil, fmt.Errorf("footer at byte %d: %w", to, err)
		}
	}
	return x, nil
}

// add adds the message at an offset to the index.
func (x *arrowIndex) add(r io.ReaderAt, at int64, m arrowMessage, head []byte) error {
	if x.declared == nil && m.kind != messageSchema {
		return errors.New("the data do not begin with a schema")
	}
	var fields []arrow.Field
	if x.declared != nil {
		fields = x.declared.Fields()
	}
	if err := batch.CheckHead(head, fields); err != nil {
		return err
	}
	where := batch.FileBlock{Offset: at, Head: m.body - at, Body: m.end - m.body}
	switch {
	case m.kind == messageSchema && x.declared != nil:
		return errors.New("it is another schema, and no record batch")
	case m.kind == messageSchema:
		x.ids, x.known = m.ids, m.known
		var err error
		x.declared, err = batch.ReadSchema(io.NewSectionReader(r, at, m.end-at))
		return err
	case m.kind == messageDictionary:
		x.found[0] = append(x.found[0], where)
		return x.addDictionary(at, m)
	case m.rows < 0 || m.rows > math.MaxInt32:
		return fmt.Errorf("it claims %d rows, where a batch holds at most %d", m.rows, math.MaxInt32)
	}
	x.found[1] = append(x.found[1], where)
	if m.rows == 0 {
		return nil
	}
	x.begin, x.first = append(x.begin, at), append(x.first, x.rows)
	x.rows += m.rows
	if n := len(x.spans); n > 0 && x.spans[n-1][1] == at {
		x.spans[n-1][1] = m.end
	} else {
		x.spans = append(x.spans, [2]int64{at, m.end})
	}
	return nil
}

// addDictionary adds a message with values of a dictionary to the index.
func (x *arrowIndex) addDictionary(at int64, m arrowMessage) error {
	if !x.known[m.id] {
		return fmt.Errorf("it is a dictionary of the id %d, which no column has", m.id)
	}
	all := x.dictionaries[m.id]
	d := arrowDictionary{at: at, end: m.end, before: len(x.begin), whole: len(all)}
	if m.delta {
		if len(all) == 0 {
			return fmt.Errorf("it adds to the dictionary of the id %d, which is not there", m.id)
		}
		d.whole = all[len(all)-1].whole
	}
	if x.dictionaries == nil {
		x.dictionaries = map[int64][]arrowDictionary{}
	}
	x.dictionaries[m.id] = append(all, d)
	return nil
}

// arrowBounds returns the byte range of the messages of a file.
func arrowBounds(r io.ReaderAt, size int64) (from, to int64, err error) {
	if size == 0 {
		return 0, 0, errors.New("it is empty")
	}
	head := make([]byte, min(8, size))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	if !bytes.HasPrefix(head, []byte(arrowMagic)) {
		if size < 8 || binary.LittleEndian.Uint32(head) != 0xffffffff && binary.LittleEndian.Uint32(head) > 1<<24 {
			return 0, 0, errors.New("it is neither an Arrow file nor an Arrow stream")
		}
		return 0, size, nil
	}
	const tail = arrowTail
	if size < 8+tail {
		return 0, 0, errors.New("the Arrow file is truncated")
	}
	foot := make([]byte, tail)
	if _, err := r.ReadAt(foot, size-tail); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	footer := int64(binary.LittleEndian.Uint32(foot))
	if string(foot[4:]) != arrowMagic || footer == 0 || footer > size-8-tail {
		return 0, 0, fmt.Errorf("the Arrow file is truncated: it has no footer before byte %d", size-tail)
	}
	return 8, size - tail - footer, nil
}

// arrowMessage holds the fields of a message's header that the index needs.
type arrowMessage struct {
	kind  byte
	rows  int64
	body  int64          // offset of the message's body
	end   int64          // offset after the message's body
	ids   []int64        // of a schema message: column number -> id of its dictionary, or 0
	known map[int64]bool // of a schema message: ids of all dictionaries, including dictionaries of nested fields
	id    int64          // of a message with dictionary values: the dictionary's id
	delta bool           // of a message with dictionary values: they are appended to earlier values
}

// readMessage reads the header of the message at offset at; the messages end at offset to. It
// returns the encoded header too, in the memory of head if that is large enough. At the end
// mark it returns io.EOF and a message with only the field end.
func readMessage(r io.ReaderAt, at, to int64, head []byte) (m arrowMessage, _ []byte, err error) {
	var word [8]byte
	if to-at < 4 {
		return m, head, errors.New("it is cut off; the data have no end mark")
	}
	if _, err := r.ReadAt(word[:min(8, to-at)], at); err != nil {
		return m, head, batch.Unexpected(err)
	}
	length := int64(binary.LittleEndian.Uint32(word[:]))
	at += 4
	if length == 0xffffffff {
		length = int64(binary.LittleEndian.Uint32(word[4:]))
		at += 4
	}
	if length == 0 {
		m.end = at
		return m, head, io.EOF
	}
	if length > to-at {
		return m, head, fmt.Errorf("its header of %d bytes is cut off", length)
	}
	if int64(cap(head)) < length {
		head = make([]byte, length)
	}
	head = head[:length]
	if _, err := r.ReadAt(head, at); err != nil {
		return m, head, batch.Unexpected(err)
	}
	f := flatBuffer{b: head}
	root := f.u32(0)
	header := f.follow(f.field(root, 2))
	m.kind = f.u8(f.field(root, 1))
	body := f.i64(f.field(root, 3))
	switch m.kind {
	case messageSchema:
		m.ids, m.known = f.dictionaryIDs(header)
	case messageDictionary:
		m.id, m.delta = f.i64(f.field(header, 0)), f.u8(f.field(header, 2)) != 0
	case messageRecordBatch:
		m.rows = f.i64(f.field(header, 0))
	}
	at += length
	if f.bad || body < 0 || body > to-at {
		return m, head, fmt.Errorf("its header is damaged, or its body of %d bytes is cut off", body)
	}
	m.body, m.end = at, at+body
	return m, head, nil
}

// valuesMessage changes the header of a dictionary's message in place into the header of the
// record batch that holds its values. head is the header without its length prefix.
func valuesMessage(head []byte) error {
	f := flatBuffer{b: head}
	root := f.u32(0)
	kind, header := f.field(root, 1), f.field(root, 2)
	values := f.follow(f.field(f.follow(header), 1))
	if f.bad || kind == 0 || header == 0 || values <= header {
		return errors.New("its header is damaged")
	}
	f.at(kind, 1)[0] = messageRecordBatch
	binary.LittleEndian.PutUint32(f.at(header, 4), uint32(values-header))
	return nil
}

// flatBuffer reads fields of tables in the FlatBuffers encoding. It checks all positions, which
// are offsets in the buffer. Position 0 means an absent field, whose value is 0.
type flatBuffer struct {
	b   []byte
	bad bool
}

func (f *flatBuffer) at(pos, n int64) []byte {
	if pos < 0 || pos > int64(len(f.b))-n {
		f.bad = true
		return make([]byte, 8)
	}
	return f.b[pos : pos+n]
}

func (f *flatBuffer) u32(pos int64) int64 { return int64(binary.LittleEndian.Uint32(f.at(pos, 4))) }

func (f *flatBuffer) u16(pos int64) int64 { return int64(binary.LittleEndian.Uint16(f.at(pos, 2))) }

func (f *flatBuffer) u8(pos int64) byte {
	if pos == 0 {
		return 0
	}
	return f.at(pos, 1)[0]
}

func (f *flatBuffer) i64(pos int64) int64 {
	if pos == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.at(pos, 8)))
}

// field returns the position of the field of a table that has the given slot.
func (f *flatBuffer) field(table, slot int64) int64 {
	if table == 0 {
		return 0
	}
	vtable := table - int64(int32(f.u32(table)))
	if 4+2*slot >= f.u16(vtable) {
		return 0
	}
	if offset := f.u16(vtable + 4 + 2*slot); offset != 0 {
		return table + offset
	}
	return 0
}

// follow returns the position of the table that a field refers to.
func (f *flatBuffer) follow(pos int64) int64 {
	if pos == 0 {
		return 0
	}
	return pos + f.u32(pos)
}
