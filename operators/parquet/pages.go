package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// These are encodings of values, as in the Parquet format.
const (
	plain            = 0
	plainDictionary  = 2
	rle              = 3
	bitPacked        = 4
	deltaBinary      = 5
	deltaLengthBytes = 6
	deltaBytes       = 7
	rleDictionary    = 8
	byteStreamSplit  = 9
)

// decoder reads the values of pages.
type decoder interface {
	// dictionary replaces the dictionary of the previous row group by the n values in data,
	// which have the encoding PLAIN. Indices in later pages refer to these values.
	dictionary(n int, data []byte) error
	// open begins to read a page with n values that are not null. data must not change until
	// the next page is opened.
	open(encoding int64, n int, data []byte) error
	// most returns the largest number of bytes that n values can take in the given encoding.
	most(encoding int64, n int64) int64
}

// leaf reads the pages of a leaf of the schema, from the row group with the index group to the
// last row group. It checks the header of a page against the page's bytes before it uses the
// page. Arrow's readers do not check headers: for damaged pages they return zeros, values of
// earlier pages or nulls, loop endlessly, or allocate as much memory as a page claims.
type leaf struct {
	file   io.ReaderAt
	size   int64
	meta   *metadata.FileMetaData
	column *schema.Column
	index  int
	group  int // index of the row group to open next
	values decoder

	codec      compress.Compression
	at, end    int64  // file offsets [at, end) of the unread bytes of the column in the row group
	buffer     []byte // bytes that have been read
	rest       []byte // unused bytes at the end of buffer
	ahead      int64  // number of values of the remaining pages of the row group
	begin      int64  // number of rows that begin in the remaining pages of the row group
	page       int    // index of the current page in the row group
	dictionary bool   // a dictionary of the row group has been read
	unpacked   []byte // buffer for decompressed pages

	here              int // number of values of the current page that have not been read, including nulls
	repeated, defined runs
}

// next proceeds to the next page with values, unless the current page still has unread values.
// more is false at the end of the last row group.
func (l *leaf) next() (more bool, err error) {
	for l.here == 0 {
		if l.ahead <= 0 || l.left() == 0 {
			if l.ahead > 0 {
				return false, fmt.Errorf("row group %d: its pages end %d values early", l.group-1, l.ahead)
			}
			if l.group == len(l.meta.RowGroups) {
				return false, nil
			}
			if err := l.open(); err != nil {
				return false, fmt.Errorf("row group %d: %w", l.group, err)
			}
			l.group++
			continue
		}
		l.page++
		if err := l.read(); err != nil {
			return false, l.inPage(err)
		}
	}
	return true, nil
}

// ended reports whether all values of the row group have been read.
func (l *leaf) ended() bool { return l.here == 0 && l.ahead == 0 }

// inPage adds to err the row group and page in which it occurred.
func (l *leaf) inPage(err error) error {
	return fmt.Errorf("row group %d, page %d: %w", l.group-1, l.page, err)
}

// open proceeds to the pages of the next row group.
func (l *leaf) open() error {
	group := l.meta.RowGroup(l.group)
	chunk, err := columnChunk(l.meta, l.group, l.index)
	if err != nil {
		return err
	}
	// A row has one value. In a column of lists it has one or more values.
	if rows := group.NumRows(); chunk.NumValues() < rows || l.column.MaxRepetitionLevel() == 0 && chunk.NumValues() != rows {
		return fmt.Errorf("it has %d rows and, it says, %d values", rows, chunk.NumValues())
	}
	start, size := chunk.DataPageOffset(), chunk.TotalCompressedSize()
	if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
		start = min(start, chunk.DictionaryPageOffset())
	}
	if start < 0 || size < 0 || size > l.size || start > l.size-size {
		return fmt.Errorf("it says it has %d bytes from byte %d on, of a file of %d bytes", size, start, l.size)
	}
	if l.meta.WriterVersion().LessThan(metadata.Parquet816FixedVersion) {
		// Until version 1.2.8, parquet-mr did not count the header of the dictionary page, of
		// at most 100 bytes.
		size += min(100, l.size-start-size)
	}
	l.at, l.end, l.rest = start, start+size, nil
	if l.codec != chunk.Compression() {
		l.unpacked = nil // l.unpacked is a part of l.buffer if the previous row group was not compressed
	}
	l.codec, l.ahead, l.page, l.dictionary = chunk.Compression(), chunk.NumValues(), -1, false
	l.begin = group.NumRows()
	return l.values.dictionary(0, nil)
}

// left returns the number of the column's bytes in the row group that have not been used.
func (l *leaf) left() int64 { return int64(len(l.rest)) + l.end - l.at }

// have makes l.rest contain at least the next n bytes, or all bytes that are left in the row
// group. It reads more bytes than n, so that small pages need few calls of ReadAt. It may
// overwrite the bytes to which l.rest referred before the call.
func (l *leaf) have(n int64) error {
	const ahead = 64 << 10
	held, left := len(l.rest), l.left()
	if int64(held) >= min(n, left) {
		return nil
	}
	size := min(n+ahead, left)
	buffer := l.buffer
	if int64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	copy(buffer, l.rest)
	if got, err := l.file.ReadAt(buffer[held:], l.at); got < len(buffer)-held {
		return err
	}
	l.buffer, l.rest, l.at = buffer, buffer, l.at+size-int64(held)
	return nil
}

// head reads the header of the next page. The header may be longer than l.rest, so head reads
// more bytes until it can decode the header.
func (l *leaf) head() (head, error) {
	const longest = 16 << 20
	for n := int64(1); ; n = 2 * int64(len(l.rest)) {
		if err := l.have(n); err != nil {
			return head{}, err
		}
		h, rest, err := parseHead(l.rest)
		if err == nil {
			l.rest = rest
			return h, nil
		}
		if l.at == l.end || len(l.rest) > longest {
			return head{}, err
		}
	}
}

// read reads the next page. A data page becomes the current page.
func (l *leaf) read() error {
	h, err := l.head()
	if err != nil {
		return err
	}
	if h.packed > l.left() {
		return fmt.Errorf("a page says it has %d bytes, and %d are left", h.packed, l.left())
	}
	if err := l.have(h.packed); err != nil {
		return err
	}
	body := l.rest[:h.packed]
	l.rest = l.rest[h.packed:]
	if h.kind != pageOfDictionary && h.values > l.ahead {
		return fmt.Errorf("a page says it has %d values, and the row group has %d more", h.values, l.ahead)
	}
	switch h.kind {
	case pageOfDictionary:
		return l.readDictionary(h, body)
	case pageOfData:
		return l.readData(h, body)
	case pageOfData2:
		return l.readData2(h, body)
	}
	return nil // pages of other kinds, such as index pages, are skipped
}

func (l *leaf) readDictionary(h head, body []byte) error {
	if l.dictionary {
		return errors.New("a second dictionary")
	}
	l.dictionary = true
	if h.encoding != plain && h.encoding != plainDictionary {
		return fmt.Errorf("the encoding %d of a dictionary is not supported", h.encoding)
	}
	h.encoding = plain // plainDictionary means the same for a dictionary page
	data, err := l.unpack(nil, body, h, h.size, 0)
	if err != nil {
		return err
	}
	if l.codec == compress.Codecs.Uncompressed {
		data = bytes.Clone(data) // because later pages overwrite l.buffer
	}
	return l.values.dictionary(int(h.values), data)
}

// unpack decompresses body, which is a page or the part of a page after its levels, to size
// bytes. The decompressed bytes have the values of the page and, for each value, the given
// number of levels. unpack returns an error if size is more than these values and levels can
// take. It uses the memory of into if that suffices.
func (l *leaf) unpack(into, body []byte, h head, size int64, levels int64) ([]byte, error) {
	const spare = 64 << 10 // unused bytes that a page may have
	most := l.values.most(h.encoding, h.values) + levels*mostOfRuns(h.values)
	if l.codec != compress.Codecs.Uncompressed && size > most+spare {
		return nil, fmt.Errorf("a page with %d values says that it becomes %d bytes, and these values take %d at most", h.values, size, most)
	}
	return unpackPage(l.codec, into, body, size)
}

// readData reads a page of version 1, whose levels and values are compressed together.
func (l *leaf) readData(h head, body []byte) (err error) {
	kinds := int64(min(l.column.MaxRepetitionLevel(), 1) + min(l.column.MaxDefinitionLevel(), 1))
	if l.unpacked, err = l.unpack(l.unpacked, body, h, h.size, kinds); err != nil {
		return err
	}
	data := l.unpacked
	if l.repeated, data, err = levels(l.column.MaxRepetitionLevel(), h.repeated, int(h.values), data); err != nil {
		return err
	}
	if l.defined, data, err = levels(l.column.MaxDefinitionLevel(), h.defined, int(h.values), data); err != nil {
		return err
	}
	return l.turn(h, data)
}

// readData2 reads a page of version 2, whose levels are not compressed.
func (l *leaf) readData2(h head, body []byte) (err error) {
	end := h.repeated + h.defined
	if end > int64(len(body)) || end > h.size {
		return fewLevels(int(h.values))
	}
	l.repeated = runs{width: widthOf(l.column.MaxRepetitionLevel()), data: body[:h.repeated]}
	l.defined = runs{width: widthOf(l.column.MaxDefinitionLevel()), data: body[h.repeated:end]}
	data := body[end:]
	if !h.plain {
		if l.unpacked, err = l.unpack(l.unpacked, data, h, h.size-end, 0); err != nil {
			return err
		}
		data = l.unpacked
	}
	return l.turn(h, data)
}

// turn makes a data page the current page. It checks that the page has as many levels as it
// claims, and that no level exceeds the highest possible level.
func (l *leaf) turn(h head, data []byte) error {
	n := int(h.values)
	begun, err := countLevels(l.repeated, n, l.column.MaxRepetitionLevel())
	if err != nil {
		return err
	}
	held, err := countLevels(l.defined, n, l.column.MaxDefinitionLevel()) // number of values that are not null
	if err != nil {
		return err
	}
	if l.column.MaxRepetitionLevel() == 1 { // values with the highest level continue a row; all others begin one
		begun = n - begun
	}
	switch l.begin -= int64(begun); {
	case l.begin < 0:
		return fmt.Errorf("%d rows begin in a page, and the row group has %d more", begun, l.begin+int64(begun))
	case l.begin > 0 && int64(n) == l.ahead:
		return fmt.Errorf("the values of the row group end %d rows early", l.begin)
	}
	l.here, l.ahead = n, l.ahead-int64(n)
	if held == 0 && len(data) == 0 {
		return nil
	}
	return l.values.open(h.encoding, held, data)
}

// countLevels returns how many of the n levels of a page are equal to most, the highest
// possible level.
func countLevels(r runs, n int, most int16) (int, error) {
	if most == 0 {
		return n, nil
	}
	highest, err := r.count(n, int32(most))
	if err == errRunsEnd {
		err = fewLevels(n)
	}
	return highest, err
}

func fewLevels(n int) error {
	return fmt.Errorf("a page that says it has %d values has fewer levels", n)
}

func fewValues(n int) error {
	return fmt.Errorf("a page with %d values that are not null, it says, has fewer", n)
}

func widthOf(most int16) int { return bits.Len16(uint16(most)) }

// levels returns the n levels at the beginning of a page of version 1, and the data after them.
func levels(most int16, encoding int64, n int, data []byte) (runs, []byte, error) {
	width := widthOf(most)
	switch {
	case most == 0:
		return runs{}, data, nil
	case encoding == rle:
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return runs{}, nil, fewLevels(n)
		}
		end := 4 + int(binary.LittleEndian.Uint32(data))
		return runs{width: width, data: data[4:end]}, data[end:], nil
	case encoding == bitPacked: // a deprecated encoding that begins with the highest bit of each byte
		return runs{}, nil, errors.New("the encoding BIT_PACKED of the levels of a page is not supported: write the file again with a current program")
	}
	return runs{}, nil, fmt.Errorf("the encoding %d of the levels of a page is not supported", encoding)
}
