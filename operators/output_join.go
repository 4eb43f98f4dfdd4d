package operators

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// join assembles the parts of all shards into one file at path, and returns a description of
// the file.
func (o *fileOutput) join(path string, parts []partFile) (whole partFile, err error) {
	file, err := o.disk.Create(path)
	if err != nil {
		return whole, err
	}
	defer func() {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if o.mode != 0 {
		if err := file.Chmod(o.mode); err != nil {
			return whole, err
		}
	}
	to := &summed{w: file}
	if o.format.Rows != nil {
		err = o.joinText(to, parts)
	} else {
		err = o.joinRows(to, parts)
	}
	if err != nil {
		return whole, err
	}
	if err := o.disk.Sync(file); err != nil {
		return whole, err
	}
	done := file
	file = nil
	return partFile{Shard: wholeOutput, Size: to.size, Sum: to.sum}, done.Close()
}

// joinText appends the text of one shard after another. Unless the parts are kept, each part is
// removed when it has been copied, so that at most one part is on disk twice.
func (o *fileOutput) joinText(to io.Writer, parts []partFile) error {
	if o.format.Head != nil {
		if err := o.format.Head(to); err != nil {
			return err
		}
	}
	buf := make([]byte, 256<<10)
	return o.eachPart(parts, func(part *os.File, p partFile) error {
		in := p.read(part)
		if _, err := io.CopyBuffer(writerOnly{to}, in, buf); err != nil {
			return err
		}
		return p.check(part.Name(), in, buf)
	})
}

// writerOnly hides all methods of a writer except Write, so that io.CopyBuffer does not let the
// operating system copy the data: every byte must pass through summed.
type writerOnly struct{ io.Writer }

// joinRows reads the rows of one shard after another and writes them as one file.
func (o *fileOutput) joinRows(to io.Writer, parts []partFile) error {
	buf := bufio.NewWriterSize(to, 1<<20)
	w, err := o.format.File(buf, arrowrows.Schema(o.schema), o.mem)
	if err != nil {
		return err
	}
	chunks := chunker{mem: o.mem, rows: fileChunkRows, size: fileChunkBytes, emit: writeTo(w)}
	defer chunks.release()
	space := make([]byte, 256<<10)
	err = o.eachPart(parts, func(part *os.File, p partFile) error {
		// The whole part is verified before any length that is stored in it is used.
		if err := p.check(part.Name(), p.read(part), space); err != nil {
			return err
		}
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return o.readPart(part, p, &chunks, space)
	})
	if err == nil {
		err = chunks.flush()
	}
	if err != nil {
		buf.Reset(io.Discard)
		_ = w.Close() // releases the memory of the writer
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

// readPart reads the rows of a part. It returns an error if the bytes differ from the bytes
// that were written: they may have changed since the part was verified.
func (o *fileOutput) readPart(part *os.File, p partFile, chunks *chunker, buf []byte) error {
	in := p.read(part)
	r, err := batch.NewStreamReader(in, o.mem)
	if err != nil {
		return err
	}
	defer r.Release()
	for {
		rows, err := r.Read()
		if errors.Is(err, io.EOF) {
			return p.check(part.Name(), in, buf)
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

// eachPart opens the parts in the order of shards, calls use for each and then removes it. It
// does not remove parts if an interrupted commit may have to begin again.
func (o *fileOutput) eachPart(parts []partFile, use func(part *os.File, p partFile) error) error {
	for _, p := range parts {
		part, err := p.open(o.shardPath(p.Shard))
		if err != nil {
			return err
		}
		err = errors.Join(use(part, p), part.Close())
		if err == nil && !o.how.Recorded {
			err = removeIfThere(o.disk, part.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
