package operators

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/superstep-ml/superstep/internal/batch"
)

// summed passes bytes on and sums them up: how many they are, and their CRC-32C.
type summed struct {
	r    io.Reader // one of the two
	w    io.Writer
	size int64
	sum  uint32
}

func (s *summed) count(b []byte) {
	s.size += int64(len(b))
	s.sum = crc32.Update(s.sum, castagnoli, b)
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

// join puts the parts of all shards together to one file, as they were written.
func (o *fileOutput) join(path string, parts []partFile) (err error) {
	file, err := o.disk.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if o.mode != 0 {
		if err := file.Chmod(o.mode); err != nil {
			return err
		}
	}
	if o.format.Rows != nil {
		err = o.joinText(file, parts)
	} else {
		err = o.joinRows(file, parts)
	}
	if err != nil {
		return err
	}
	if err := o.disk.Sync(file); err != nil {
		return err
	}
	done := file
	file = nil
	return done.Close()
}

// joinText appends the text of one shard after another. Each part is removed when
// it has been copied, so that the output needs the space of one part twice only,
// unless the parts are kept.
func (o *fileOutput) joinText(file *os.File, parts []partFile) error {
	if o.format.Head != nil {
		if err := o.format.Head(file); err != nil {
			return err
		}
	}
	buf := make([]byte, 256<<10)
	return o.eachPart(parts, func(part *os.File, p partFile) error {
		return o.readWhole(part, p, writerOnly{file}, buf)
	})
}

// writerOnly keeps io.CopyBuffer from having the system copy: every byte is to be looked
// at on its way.
type writerOnly struct{ io.Writer }

// joinRows reads the rows of one shard after another and writes them as one file.
func (o *fileOutput) joinRows(file *os.File, parts []partFile) error {
	buf := bufio.NewWriterSize(file, 1<<20)
	w, err := o.format.File(buf, o.schema, o.mem)
	if err != nil {
		return err
	}
	chunks := chunker{mem: o.mem, rows: fileChunkRows, size: fileChunkBytes, emit: w.Write}
	defer chunks.release()
	space := make([]byte, 256<<10)
	err = o.eachPart(parts, func(part *os.File, p partFile) error {
		// No length in it is believed before all of it has been verified.
		if err := o.readWhole(part, p, io.Discard, space); err != nil {
			return err
		}
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return o.readPart(part, &chunks)
	})
	if err == nil {
		err = chunks.flush()
	}
	if err != nil {
		buf.Reset(io.Discard)
		_ = w.Close() // for the memory it holds
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

func (o *fileOutput) readPart(part *os.File, chunks *chunker) error {
	r, err := batch.NewStreamReader(part, o.mem)
	if err != nil {
		return err
	}
	defer r.Release()
	for {
		rows, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = chunks.push(rows)
		rows.Release()
		if err != nil {
			return err
		}
	}
}

// readWhole hands on the bytes of a part and fails where they are not those that were
// written.
func (o *fileOutput) readWhole(part *os.File, p partFile, to io.Writer, buf []byte) error {
	in := &summed{r: io.LimitReader(part, p.Size+1)} // so that one too many shows
	if _, err := io.CopyBuffer(writerOnly{to}, in, buf); err != nil {
		return err
	}
	switch {
	case in.size < p.Size:
		return o.damaged(part.Name(), p, fmt.Sprintf("it ends after %d bytes of %d", in.size, p.Size))
	case in.size > p.Size:
		return o.damaged(part.Name(), p, fmt.Sprintf("it has more than the %d bytes that were written", p.Size))
	case in.sum != p.Sum:
		return o.damaged(part.Name(), p, fmt.Sprintf("the CRC-32C of its %d bytes is %08x, and was %08x when they were written", p.Size, in.sum, p.Sum))
	}
	return nil
}

// damaged says what is wrong with the file of a shard.
func (o *fileOutput) damaged(path string, p partFile, what string) error {
	return fmt.Errorf("shard %d, written aside to %s, is damaged: %s; nothing has become visible: look for what wrote to that file or for a failing disk, and run the job again",
		p.Shard, path, what)
}

// eachPart opens the parts of the shards that have rows, in order, and removes
// them when they have been used, unless they are kept so that a commit that was cut off
// can begin again.
func (o *fileOutput) eachPart(parts []partFile, use func(part *os.File, p partFile) error) error {
	for _, p := range parts {
		part, err := os.Open(o.shardPath(p.Shard))
		if errors.Is(err, fs.ErrNotExist) {
			err = o.damaged(o.shardPath(p.Shard), p, "it is gone")
		}
		if err != nil {
			return err
		}
		err = errors.Join(use(part, p), part.Close())
		if err == nil && !o.how.Recorded {
			err = o.disk.Remove(part.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyAll verifies a directory that is to become the output: it has the files of all
// shards, as they were written, and nothing else.
func (o *fileOutput) verifyAll(parts []partFile) error {
	entries, err := os.ReadDir(o.parts)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(parts))
	for _, p := range parts {
		known[filepath.Base(o.shardPath(p.Shard))] = true
	}
	for _, e := range entries {
		if !known[e.Name()] {
			return fmt.Errorf("%s is not of this job, and would become part of the output: something else wrote to that directory; nothing has become visible: run the job again",
				filepath.Join(o.parts, e.Name()))
		}
	}
	buf := make([]byte, 256<<10)
	for _, p := range parts {
		path := o.shardPath(p.Shard)
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return o.damaged(path, p, "it is no regular file")
		}
		part, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = o.damaged(path, p, "it is gone")
		}
		if err != nil {
			return err
		}
		if err := errors.Join(o.readWhole(part, p, io.Discard, buf), part.Close()); err != nil {
			return err
		}
	}
	return o.disk.SyncDir(o.parts)
}
