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

// Encodings of pages.
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
	// dictionary takes the n values that indices of later pages refer to. They replace those of
	// the previous row group.
	dictionary(n int, data []byte) error
	// open takes n values of a page. The data do not change until the next page.
	open(encoding int64, n int, data []byte) error
	// most returns how many bytes n values take at most.
	most(encoding int64, n int64) int64
}

// leaf reads the pages of a leaf of the schema, through all row groups from one on. It checks
// the headers of pages against their bytes before it uses them. Arrow's readers do not: for
// damaged pages they return zeros, stale values and nulls, search for values endlessly, and
// allocate whatever a page claims.
type leaf struct {
	file   io.ReaderAt
	size   int64
	meta   *metadata.FileMetaData
	column *schema.Column
	index  int
	group  int // the row group to open next
	values decoder

	codec      compress.Compression
	at, end    int64  // bytes of the row group in the file that have not been read
	buffer     []byte // bytes read
	rest       []byte // the part of buffer that has not been used
	ahead      int64  // values of the remaining pages
	begin      int64  // rows of lists that begin in the remaining pages
	page       int    // number of the current page
	dictionary bool   // the row group has one
	unpacked   []byte // buffer for unpacked pages

	here              int // values of the current page that have not been read, including nulls
	repeated, defined runs
}

// next moves to a page with unread values. more is false at the end of the last row group.
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

// inPage adds to an error the page in which it occurred.
func (l *leaf) inPage(err error) error {
	return fmt.Errorf("row group %d, page %d: %w", l.group-1, l.page, err)
}

// open moves to the pages of a row group.
func (l *leaf) open() error {
	group := l.meta.RowGroup(l.group)
	chunk, err := columnChunk(l.meta, l.group, l.index)
	if err != nil {
		return err
	}
	// A row of lists has at least one.
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
		// parquet-mr forgot the head of the dictionary, of 100 bytes at most, until version 1.2.8.
		size += min(100, l.size-start-size)
	}
	l.at, l.end, l.rest = start, start+size, nil
	if l.codec != chunk.Compression() {
		l.unpacked = nil // it refers to the last row group if that was not packed
	}
	l.codec, l.ahead, l.page, l.dictionary = chunk.Compression(), chunk.NumValues(), -1, false
	l.begin = group.NumRows()
	return l.values.dictionary(0, nil)
}

// left returns the number of bytes of the row group that have not been used.
func (l *leaf) left() int64 { return int64(len(l.rest)) + l.end - l.at }

// have reads at least the next n bytes of the row group, or all that are left. It reads ahead, so
// that small pages take few calls. It overwrites what l.rest was before.
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

// head reads the header of a page, however long it is.
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

// read reads a page. A page of data becomes the current one.
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
	return nil // index pages and the like are skipped
}

func (l *leaf) readDictionary(h head, body []byte) error {
	if l.dictionary {
		return errors.New("a second dictionary")
	}
	l.dictionary = true
	if h.encoding != plain && h.encoding != plainDictionary {
		return fmt.Errorf("the encoding %d of a dictionary is not supported", h.encoding)
	}
	h.encoding = plain // by either name
	data, err := l.unpack(nil, body, h, h.size, 0)
	if err != nil {
		return err
	}
	if l.codec == compress.Codecs.Uncompressed {
		data = bytes.Clone(data) // which stays when pages come to lie where it was
	}
	return l.values.dictionary(int(h.values), data)
}

// unpack returns the size bytes that a page, or its part after the levels, was packed from. They are
// its values and as many levels for each.
func (l *leaf) unpack(into, body []byte, h head, size int64, levels int64) ([]byte, error) {
	const spare = 64 << 10 // bytes that nothing is in, which do no harm
	most := l.values.most(h.encoding, h.values) + levels*mostOfRuns(h.values)
	if l.codec != compress.Codecs.Uncompressed && size > most+spare {
		return nil, fmt.Errorf("a page with %d values says that it becomes %d bytes, and these values take %d at most", h.values, size, most)
	}
	return unpackPage(l.codec, into, body, size)
}

// readData reads a page of version 1, which is compressed as a whole.
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

// turn makes a page of data the current one. It checks that the page has as many levels as it
// claims, and none above the highest.
func (l *leaf) turn(h head, data []byte) error {
	n := int(h.values)
	begun, err := countLevels(l.repeated, n, l.column.MaxRepetitionLevel())
	if err != nil {
		return err
	}
	held, err := countLevels(l.defined, n, l.column.MaxDefinitionLevel()) // that are not null
	if err != nil {
		return err
	}
	if l.column.MaxRepetitionLevel() == 1 { // the highest level is that of what goes on in a row
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

// countLevels returns how many of the n levels of a page are the highest there can be.
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
	case encoding == bitPacked: // from the highest bit of each byte on, as old programs did
		return runs{}, nil, errors.New("the encoding BIT_PACKED of the levels of a page is not supported: write the file again with a current program")
	}
	return runs{}, nil, fmt.Errorf("the encoding %d of the levels of a page is not supported", encoding)
}
