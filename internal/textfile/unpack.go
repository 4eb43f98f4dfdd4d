package textfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// unpack writes the plain bytes of a part to w and returns their number. It is called for parts
// that are compressed or not UTF-8. Before and after reading, it checks that the open file is
// the file that was verified.
func (p *part) unpack(ctx context.Context, d tree, e Encoding, w io.Writer) (n int64, err error) {
	f, err := d.open(p.path)
	if err != nil {
		return 0, fmt.Errorf("cannot read input: %w", err)
	}
	defer func() { err = also(err, f.Close()) }()
	if err := p.check(d, f); err != nil {
		return 0, err
	}
	r, err := newPlainReader(&stored{p, f, p.size}, p.path, e)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, rerr := r.Read(buf)
		if _, err := w.Write(buf[:k]); err != nil {
			return n, fmt.Errorf("cannot unpack %s to the spool: %w", p.path, err)
		}
		n += int64(k)
		if rerr == io.EOF {
			return n, p.check(d, f)
		}
		if rerr != nil {
			// A file that changes while it is read is usually not a valid archive.
			if changed := p.check(d, f); changed != nil {
				return n, changed
			}
			return n, rerr
		}
	}
}

// stored reads a file up to the size in its part. If the file ends earlier, it has changed,
// even if it still is a valid archive.
type stored struct {
	part *part
	from io.Reader
	left int64
}

func (s *stored) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.from.Read(b[:min(int64(len(b)), s.left)])
	if s.left -= int64(n); s.left == 0 || err == nil {
		return n, nil
	}
	return n, s.part.readError(err)
}

// compression is the compression format of a file.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstandard
)

// magic has the magic numbers of RFC 1952 §2.3.1 and RFC 8878 §3.1.1.
var magic = map[compression][]byte{
	gzipped:   {0x1f, 0x8b},
	zstandard: {0x28, 0xb5, 0x2f, 0xfd},
}

// magicSize is the number of first bytes of a file that identify its compression.
const magicSize = 4

// compressionOf returns the compression of a file.
func compressionOf(d tree, path string) (compression, error) {
	f, err := d.open(path)
	if err != nil {
		return plain, fmt.Errorf("cannot read input: %w", err)
	}
	defer f.Close()
	var head [magicSize]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return plain, fmt.Errorf("cannot read input %s: %w", path, err)
	}
	return compressionBy(head[:n], path)
}

// compressionBy returns the compression of a file by its first bytes, whatever its name is. If
// the name has the suffix of an archive, but the file is not an archive, it returns an error.
func compressionBy(head []byte, path string) (compression, error) {
	for _, c := range []compression{gzipped, zstandard} {
		if bytes.HasPrefix(head, magic[c]) {
			return c, nil
		}
	}
	begins := "it is empty"
	if len(head) > 0 {
		begins = fmt.Sprintf("it begins with % x", head)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz", ".gzip":
		return plain, fmt.Errorf("input %s is not gzip data although its name says so: %s", path, begins)
	case ".zst", ".zstd":
		return plain, fmt.Errorf("input %s is not zstd data although its name says so: %s", path, begins)
	}
	return plain, nil
}

// plainReader reads the plain bytes of a file. Its errors name the file.
type plainReader struct {
	io.Reader
	path string
	kind string
	done []func() error
}

// openPlain opens a file and returns a reader of its bytes, which are unpacked and converted to
// UTF-8.
func openPlain(d tree, e Encoding, path string) (*plainReader, error) {
	f, err := d.open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read input: %w", err)
	}
	r, err := newPlainReader(f, path, e)
	if err != nil {
		return nil, also(err, f.Close())
	}
	r.done = append([]func() error{f.Close}, r.done...)
	return r, nil
}

// newPlainReader returns a reader of the plain bytes of an open file, from its beginning. Close
// of the reader does not close the file.
func newPlainReader(file io.Reader, path string, e Encoding) (*plainReader, error) {
	from := &counted{Reader: file}
	buffered := bufio.NewReaderSize(from, 64<<10)
	r := &plainReader{Reader: buffered, path: path, kind: "file"}
	head, err := buffered.Peek(magicSize)
	if err != nil && err != io.EOF {
		return nil, r.named(err)
	}
	c, err := compressionBy(head, path)
	if err != nil {
		return nil, err
	}
	switch c {
	case gzipped:
		r.kind = "gzip archive"
		if r.Reader, err = newMembers(buffered, from); err != nil {
			return nil, r.named(err)
		}
	case zstandard:
		r.kind = "zstd archive"
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, r.named(err)
		}
		r.Reader = z
		r.done = append(r.done, func() error { z.Close(); return nil })
	}
	if e != UTF8 {
		r.Reader, r.kind = newDecoder(r.Reader, e), r.kind+" of "+string(e)
	}
	return r, nil
}

// Read reads plain bytes.
func (r *plainReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, r.named(err)
}

// named adds the name of the file to an error.
func (r *plainReader) named(err error) error {
	switch {
	case errors.Is(err, ErrChanged): // the error already names the file
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		return fmt.Errorf("input %s: %s is truncated: %w", r.path, r.kind, io.ErrUnexpectedEOF)
	case r.kind == "file":
		return fmt.Errorf("cannot read input %s: %w", r.path, err)
	}
	return fmt.Errorf("input %s: bad %s: %w", r.path, r.kind, err)
}

// Close closes the file.
func (r *plainReader) Close() error {
	var errs []error
	for i := len(r.done) - 1; i >= 0; i-- {
		errs = append(errs, r.done[i]())
	}
	return errors.Join(errs...)
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// members reads the members of a gzip archive, one after another. Package gzip could do that,
// but it reports any bytes after the last member as a truncated member.
type members struct {
	*gzip.Reader
	from *bufio.Reader
	file *counted // the reader that the field from reads
}

func newMembers(from *bufio.Reader, file *counted) (*members, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{z, from, file}, nil
}

// Read implements io.Reader. At the end of a member it continues with the next member.
func (m *members) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if err != io.EOF {
		return n, err
	}
	head, err := m.from.Peek(len(magic[gzipped]))
	switch {
	case len(head) == 0 || err != nil && err != io.EOF:
		return n, err
	case !bytes.HasPrefix(head, magic[gzipped]):
		return n, fmt.Errorf("it ends at byte %d, and what follows is no gzip data", m.file.n-int64(m.from.Buffered()))
	}
	if err := m.Reset(m.from); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	m.Multistream(false)
	return n, nil
}
