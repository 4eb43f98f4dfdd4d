package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// readChunk is the usual number of bytes read at a time.
const readChunk = 256 << 10

// scanner passes the bytes of a stream to a tokenizer. It keeps the bytes of the records since
// the last cut, so that the cells of these records are valid until the next cut.
type scanner struct {
	tok *tokenizer
	src io.Reader

	buf  []byte
	base int // buf[base:] is the batch to which cells refer
	pos  int // index of the next byte for the tokenizer
	fill int // end of the valid bytes
	eof  bool

	// origin is the offset in the file of buf[0].
	origin int64
	// expect is the number of bytes that will probably be needed. For a short range it is less
	// than readChunk, so that not too much is read.
	expect int64
}

// reset sets the stream. origin is the offset in the file of the first byte of src.
func (s *scanner) reset(src io.Reader, origin, expect int64) {
	*s = scanner{tok: s.tok, buf: s.buf, src: src, origin: origin, expect: expect}
	s.tok.cells = s.tok.cells[:0]
}

// idle is called before the scanner is put into a pool. It releases the stream, and the buffer
// if an unusual record has made it large.
func (s *scanner) idle() {
	s.src = nil
	if len(s.buf) > 4*batchBytes {
		s.buf = nil
	}
}

// offset returns the offset of the next record in the file.
func (s *scanner) offset() int64 { return s.origin + int64(s.pos) }

// batch returns the bytes to which the offsets of cells refer.
func (s *scanner) batch() []byte { return s.buf[s.base:s.fill] }

// held returns the number of bytes of the records since the last cut.
func (s *scanner) held() int { return s.pos - s.base }

// since returns the bytes from index from of the batch to the end of the last record.
func (s *scanner) since(from int) []byte { return s.buf[s.base+from : s.pos] }

// cut ends the batch: the next record begins a new batch.
func (s *scanner) cut() {
	s.base = s.pos
	s.tok.cells = s.tok.cells[:0]
}

// place returns the offset in the file of the byte with index rel of the batch.
func (s *scanner) place(rel int) int64 { return s.origin + int64(s.base+rel) }

// next reads the next record, empty line or comment.
func (s *scanner) next() (outcome, error) {
	for {
		if s.pos == s.fill {
			if s.eof {
				return foundEnd, nil
			}
			if err := s.read(); err != nil {
				return foundEnd, err
			}
			continue
		}
		end, what := s.tok.next(s.buf[s.base:s.fill], s.pos-s.base, s.eof)
		if what != needMore {
			s.pos = s.base + end
			return what, nil
		}
		if err := s.read(); err != nil {
			return foundEnd, err
		}
	}
}

// read appends bytes of the stream to the buffer. It moves the batch to the beginning of the
// buffer first, and doubles the buffer if it is full.
func (s *scanner) read() error {
	if s.base > 0 {
		copy(s.buf, s.buf[s.base:s.fill])
		s.origin += int64(s.base)
		s.pos, s.fill, s.base = s.pos-s.base, s.fill-s.base, 0
	}
	want := int(max(4<<10, min(readChunk, s.expect)))
	if free := len(s.buf) - s.fill; free < want {
		grown := make([]byte, max(2*len(s.buf), s.fill+want))
		copy(grown, s.buf[:s.fill])
		s.buf = grown
	}
	n, err := io.ReadFull(s.src, s.buf[s.fill:s.fill+want])
	s.fill += n
	s.expect -= int64(n)
	if s.expect <= 0 {
		s.expect = readChunk
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		s.eof = true
		return nil
	}
	return err
}

// lineOf returns the number of the line that contains the byte at an offset, counting from 1.
// It reads the file from the beginning, which is acceptable because only error messages need
// line numbers.
func (p *part) lineOf(offset int64) (line int64, err error) {
	h, err := p.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = also(err, h.close()) }()
	buf := make([]byte, scanChunk)
	line = 1
	for at := int64(0); at < offset; {
		b := buf[:min(int64(len(buf)), offset-at)]
		if _, err := h.ReadAt(b, at); err != nil {
			return 0, p.readError(err)
		}
		line += int64(bytes.Count(b, []byte{'\n'}))
		at += int64(len(b))
	}
	return line, nil
}

// errorAt returns an error that begins with file and line.
func (p *part) errorAt(offset int64, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	line, lerr := p.lineOf(offset)
	if lerr != nil {
		return errors.Join(fmt.Errorf("%s, at byte %d: %w", p.path, offset, err), lerr)
	}
	return fmt.Errorf("%s:%d: %w", p.path, line, err)
}
