package operators

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// partFile describes the size and checksum with which a staged file was written. The file is
// that of a shard, or the whole output if the output is a single file.
type partFile struct {
	Shard int    `msgpack:"shard"` // number of the shard; wholeOutput for the whole output
	Size  int64  `msgpack:"size"`
	Sum   uint32 `msgpack:"crc32c"`
	// Name is the file's name in an output directory. It is set when the output is complete.
	Name string `msgpack:"name,omitempty"`
}

const wholeOutput = -1

// summed reads from r or writes to w. It counts the bytes and computes their CRC-32C.
type summed struct {
	r    io.Reader // either r or w is set
	w    io.Writer
	size int64
	sum  uint32
}

func (s *summed) count(b []byte) {
	s.size += int64(len(b))
	s.sum = checksum.CRC32C(s.sum, b)
}

func (s *summed) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.count(b[:n])
	return n, err
}

func (s *summed) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.count(b[:n])
	return n, err
}

// read returns a reader of the file that check can verify afterwards.
func (p partFile) read(file *os.File) *summed {
	return &summed{r: io.LimitReader(file, p.Size+1)} // one byte more than expected, so that a longer file is detected
}

// check reads the rest of the file and returns an error if the bytes differ from those that
// were written.
func (p partFile) check(path string, in *summed, buf []byte) error {
	if _, err := io.CopyBuffer(writerOnly{io.Discard}, in, buf); err != nil {
		return err
	}
	switch {
	case in.size < p.Size:
		return p.damaged(path, fmt.Sprintf("it ends after %d bytes of %d", in.size, p.Size))
	case in.size > p.Size:
		return p.damaged(path, fmt.Sprintf("it has more than the %d bytes that were written", p.Size))
	case in.sum != p.Sum:
		return p.damaged(path, fmt.Sprintf("the CRC-32C of its %d bytes is %08x, and was %08x when they were written", p.Size, in.sum, p.Sum))
	}
	return nil
}

// damageError says that a file or directory differs from what was written.
type damageError struct {
	what string // short text that says what is wrong
	text string
}

func (e *damageError) Error() string { return e.text }

// damaged returns a damageError that says what is wrong with the file.
func (p partFile) damaged(path, what string) error {
	whose, in := fmt.Sprintf("shard %d, written aside to %s,", p.Shard, path), filepath.Base(path)+": "
	if p.Shard == wholeOutput {
		whose, in = fmt.Sprintf("the output, put together in %s,", path), ""
	}
	return &damageError{
		what: in + what,
		text: fmt.Sprintf("%s is damaged: %s; nothing has become visible: look for what wrote to that file or for a failing disk, and run the job again", whose, what),
	}
}

// open opens the file at path. If the file does not exist, it returns a damageError.
func (p partFile) open(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = p.damaged(path, "it is gone")
	}
	return file, err
}

// verify reads the file at path and returns an error if its bytes differ from the bytes that
// were written.
func (p partFile) verify(path string, buf []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return p.damaged(path, "it is no regular file")
	}
	file, err := p.open(path)
	if err != nil {
		return err
	}
	return errors.Join(p.check(path, p.read(file), buf), file.Close())
}

// verify returns an error unless exactly the complete output is at path. It is called
// immediately before the output is moved, as the output may have changed since it was
// completed.
func (p *placement) verify(path string) error {
	buf := make([]byte, 256<<10)
	if !p.PerShard {
		if len(p.Files) != 1 {
			return fmt.Errorf("%s does not say what %s is to be", filepath.Join(p.stage, sealFile), p.from())
		}
		return p.Files[0].verify(path, buf)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.damaged(path, "it is gone")
	case err != nil:
		return err
	case !info.IsDir():
		return p.damaged(path, "it is no directory")
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(p.Files))
	for _, f := range p.Files {
		known[f.Name] = true
	}
	for _, e := range entries {
		if !known[e.Name()] {
			return &damageError{
				what: e.Name() + " is not of this job",
				text: fmt.Sprintf("%s is not of this job, and would become part of the output: something else wrote to that directory; nothing has become visible: run the job again",
					filepath.Join(path, e.Name())),
			}
		}
	}
	for _, f := range p.Files {
		if err := f.verify(filepath.Join(path, f.Name), buf); err != nil {
			return err
		}
	}
	return nil
}

// damaged returns a damageError that says what is wrong with an output directory.
func (p *placement) damaged(path, what string) error {
	return &damageError{
		what: what,
		text: fmt.Sprintf("%s, which was complete, is damaged: %s; nothing has become visible: look for what changed it, and run the job again", path, what),
	}
}
