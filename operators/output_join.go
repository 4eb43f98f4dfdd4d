package operators

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// join puts the parts of all shards together to one file, as they were written, and
// returns what that is.
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

// joinText appends the text of one shard after another. Each part is removed when
// it has been copied, so that the output needs the space of one part twice only,
// unless the parts are kept.
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

// writerOnly keeps io.CopyBuffer from having the system copy: every byte is to be looked
// at on its way.
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
		// No length in it is believed before all of it has been verified.
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
		_ = w.Close() // for the memory it holds
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

// readPart reads the rows of a part, and fails where its bytes are not those that were
// written, which were another time when they were verified.
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

// eachPart opens the parts of the shards that have rows, in order, and removes
// them when they have been used, unless they are kept so that a commit that was cut off
// can begin again.
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
