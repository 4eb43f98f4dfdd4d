package textfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/disk"
)

// text is an ordered list of plain files that are read as if they were one file. Compressed
// files have been unpacked to spools.
type text struct {
	parts  []part
	disk   disk.FS // disk with the spools
	spools []spool
	held   []fs.File // open files of a file system given in Config; each is opened once
}

// spool is a file with the plain bytes of unpacked archives, one after the other.
type spool struct {
	*disk.Spool
	file disk.File
}

// part is one file of a text.
type part struct {
	// path is the path of the input file.
	path string
	// spool has the plain bytes, from offset base on. It is nil if the input file itself has
	// the plain bytes and can be opened by path.
	spool io.ReaderAt
	base  int64
	// size is the number of plain bytes or, before the file is unpacked, the size of the file.
	size int64
	// mtime is the modification time of the file when the text was opened.
	mtime int64
	// body is the offset of the first byte after the byte order mark, skipped lines and header.
	body int64
}

// handle gives random access to the plain bytes of a part.
type handle struct {
	io.ReaderAt
	close func() error
}

// open opens the part and checks that the file has not changed.
func (p *part) open() (handle, error) {
	if p.spool != nil {
		return handle{io.NewSectionReader(p.spool, p.base, p.size), func() error { return nil }}, nil
	}
	f, err := os.Open(p.path)
	if err != nil {
		return handle{}, fmt.Errorf("cannot read input: %w", err)
	}
	if err := p.check(tree{}, f); err != nil {
		return handle{}, also(err, f.Close())
	}
	return handle{f, func() error { return also(p.check(tree{}, f), f.Close()) }}, nil
}

// check returns an error if the open file f has changed since the text was opened. It is called
// before and after reading.
func (p *part) check(d tree, f fs.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read input: %w", err)
	}
	if info.Size() != p.size || d.modTime(info) != p.mtime {
		return changed(p.path, p.size, p.mtime, info.Size(), d.modTime(info))
	}
	return nil
}

// section reads a part from an offset to its end. If the file ends earlier, it has changed, and
// Read returns an error other than io.EOF.
type section struct {
	part *part
	from handle
	at   int64
}

// Read implements io.Reader.
func (s *section) Read(b []byte) (int, error) {
	if s.at == s.part.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), s.part.size-s.at)]
	n, err := s.from.ReadAt(b, s.at)
	s.at += int64(n)
	if n == len(b) || err == nil {
		return n, nil
	}
	return n, s.part.readError(err)
}

// form has the properties of a text that determine its plain bytes and where bodies begin.
type form struct {
	encoding Encoding
	skip     int // lines to skip at the beginning of each file
}

// openText verifies the files. It unpacks compressed files, and converts files that are not
// UTF-8, into spools, which are files without a name. The caller must close the text.
func openText(ctx context.Context, files []File, f form, cfg Config) (_ *text, err error) {
	d := tree{cfg.FS}
	if len(files) == 0 {
		return nil, errors.New("no input files")
	}
	t := &text{parts: make([]part, len(files)), disk: cfg.Disk}
	defer func() {
		if err != nil {
			err = also(err, t.close())
		}
	}()
	var packed []int
	for i, file := range files {
		mtime, err := d.verify(file)
		if err != nil {
			return nil, err
		}
		t.parts[i] = part{path: file.Path, size: file.Size, mtime: mtime}
		c, err := compressionOf(d, file.Path)
		if err != nil {
			return nil, err
		}
		if c != plain || f.encoding != UTF8 {
			packed = append(packed, i)
		} else if d.fsys != nil {
			if err := t.hold(d, &t.parts[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := t.unpack(ctx, packed, d, f.encoding, cfg.SpoolDir, max(1, cfg.Workers)); err != nil {
		return nil, err
	}
	for i := range t.parts {
		if err := t.parts[i].skipMark(); err != nil {
			return nil, err
		}
		if err := t.parts[i].skipLines(ctx, f.skip); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// hold opens a file of a file system for random access. If the file does not support random
// access, hold reads it into memory.
func (t *text) hold(d tree, p *part) error {
	f, err := d.open(p.path)
	if err != nil {
		return fmt.Errorf("cannot read input: %w", err)
	}
	t.held = append(t.held, f)
	if at, ok := f.(io.ReaderAt); ok {
		p.spool = at
		return nil
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("cannot read input %s: %w", p.path, err)
	}
	if n := int64(len(content)); n != p.size {
		return fmt.Errorf("input %s %w: it had %d bytes, and %d were read", p.path, ErrChanged, p.size, n)
	}
	p.spool = bytes.NewReader(content)
	return nil
}

// unpack writes the plain bytes of the parts with the numbers in packed to spools, one spool
// per worker.
func (t *text) unpack(ctx context.Context, packed []int, d tree, e Encoding, dir string, workers int) error {
	workers = min(workers, len(packed))
	for range workers {
		f, err := createSpool(t.disk, dir)
		if err != nil {
			return err
		}
		t.spools = append(t.spools, spool{disk.NewSpool(f), f})
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			var base int64
			for k := w; k < len(packed); k += workers {
				p := &t.parts[packed[k]]
				n, err := p.unpack(ctx, d, e, t.spools[w])
				if err != nil {
					return err
				}
				p.spool, p.base, p.size = t.spools[w], base, n
				base += n
			}
			if err := t.spools[w].Seal(); err != nil {
				return fmt.Errorf("cannot unpack to the spool: %w", err)
			}
			return nil
		})
	}
	return g.Wait()
}

// createSpool creates a file for unpacking and unlinks it at once, so that no file remains,
// however the process ends. If an open file cannot be unlinked, close removes it.
func createSpool(on disk.FS, dir string) (disk.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	f, err := on.CreateTemp(dir, "superstep-text-*.spool")
	if err != nil {
		return nil, fmt.Errorf("cannot create a spool for compressed input: %w", err)
	}
	// If this fails, close removes the file.
	_ = on.Remove(f.Name())
	return f, nil
}

// skipMark moves the body past a UTF-8 byte order mark, if there is one.
func (p *part) skipMark() error {
	h, err := p.open()
	if err != nil {
		return err
	}
	var head [3]byte
	n, err := io.ReadFull(&section{part: p, from: h}, head[:min(int64(len(head)), p.size)])
	if err != nil {
		return also(p.readError(err), h.close())
	}
	if hasMark(head[:n]) {
		p.body = int64(n)
	}
	return h.close()
}

// skipLines moves the body past n lines, or to the end of the file if it has fewer lines.
func (p *part) skipLines(ctx context.Context, n int) (err error) {
	if n == 0 {
		return nil
	}
	h, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = also(err, h.close()) }()
	buf := make([]byte, 4<<10)
	for at := p.body; at < p.size; at += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), p.size-at)]
		if _, err := h.ReadAt(buf, at); err != nil {
			return p.readError(err)
		}
		for i, c := range buf {
			if c == '\n' {
				if n--; n == 0 {
					p.body = at + int64(i) + 1
					return nil
				}
			}
		}
	}
	p.body = p.size
	return nil
}

func hasMark(b []byte) bool { return bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) }

// also joins err and closing. If one of them is nil, it returns the other error unchanged;
// errors.Join would wrap it.
func also(err, closing error) error {
	switch {
	case closing == nil:
		return err
	case err == nil:
		return closing
	}
	return errors.Join(err, closing)
}

// close closes the spools and files. It must be called only once.
func (t *text) close() error {
	var errs []error
	for _, s := range t.spools {
		errs = append(errs, s.file.Close())
		if err := disk.RemoveIfThere(t.disk, s.file.Name()); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove spool: %w", err))
		}
	}
	for _, f := range t.held {
		errs = append(errs, f.Close())
	}
	t.spools, t.held = nil, nil
	return errors.Join(errs...)
}
