package jobmanager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A worklog is what one worker of a job wrote to its standard output and error, the
// last few megabytes of it, in at most two files: one that grows up to half the bound,
// and the full one before it, which goes when the next is begun. Positions count the
// bytes from the worker's start, so that a reader knows what it has missed. The name
// of a file ends in the position of its first byte:
//
//	log-3-0000000000002097152
//
// A worklog is safe for concurrent use.
type worklog struct {
	root   *os.Root
	prefix string // of its files: "jobs/ID/log-3-"
	half   int64

	mu    sync.Mutex
	file  *os.File // the growing one; nil if none is open
	bases []int64  // where the files begin, one or two
	end   int64
}

// newWorklog makes the log of a new worker.
func newWorklog(root *os.Root, prefix string, bound int64) *worklog {
	return &worklog{root: root, prefix: prefix, half: max(bound/2, 1)}
}

// openWorklog finds the log of a worker that has ended.
func openWorklog(root *os.Root, dir string, worker int) (*worklog, error) {
	l := &worklog{root: root, prefix: logPrefix(dir, worker)}
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for logs: %w", err)
	}
	for _, e := range entries {
		tail, ok := strings.CutPrefix(dir+"/"+e.Name(), l.prefix)
		base, err := strconv.ParseInt(tail, 10, 64)
		if !ok || err != nil || base < 0 {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("look for logs: %w", err)
		}
		l.bases = append(l.bases, base)
		l.end = max(l.end, base+info.Size())
	}
	slices.Sort(l.bases)
	return l, nil
}

func logPrefix(dir string, worker int) string {
	return dir + "/log-" + strconv.Itoa(worker) + "-"
}

func (l *worklog) name(base int64) string { return fmt.Sprintf("%s%019d", l.prefix, base) }

// write adds what the worker wrote.
func (l *worklog) write(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(text) > 0 {
		if l.file == nil {
			if err := l.turn(); err != nil {
				return fmt.Errorf("keep the worker's log: %w", err)
			}
		}
		base := l.bases[len(l.bases)-1]
		piece := text
		if room := l.half - (l.end - base); int64(len(piece)) > room {
			piece = text[:room]
			// A file ends with a whole line, unless the line is longer than a file.
			if i := bytes.LastIndexByte(piece, '\n'); i >= 0 || l.end > base {
				piece = piece[:i+1]
			}
		}
		n, err := l.file.WriteAt(piece, l.end-base)
		l.end += int64(n)
		if err == nil && len(piece) < len(text) {
			err = l.turn()
		}
		if err != nil {
			return fmt.Errorf("keep the worker's log: %w", err)
		}
		text = text[len(piece):]
	}
	return nil
}

// turn begins the next file. The caller holds mu.
func (l *worklog) turn() error {
	f, err := l.root.OpenFile(l.name(l.end), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		err = l.file.Close()
	}
	l.file = f
	if n := len(l.bases); n == 0 || l.bases[n-1] != l.end {
		l.bases = append(l.bases, l.end)
	}
	if len(l.bases) > 2 {
		err = errors.Join(err, l.root.Remove(l.name(l.bases[0])))
		l.bases = l.bases[1:]
	}
	return err
}

// close closes the file. What was written can still be read.
func (l *worklog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// read returns what stands at a position: at most logPiece bytes, whole lines if it
// can, none at the end. It returns the position after them, and how many bytes before
// them were dropped since the position that was asked for.
func (l *worklog) read(from int64) (text []byte, next, dropped int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bases) == 0 || from >= l.end {
		return nil, from, 0, nil
	}
	if first := l.bases[0]; from < first {
		dropped, from = first-from, first
	}
	base, stop := l.bases[0], l.end
	if len(l.bases) > 1 {
		if from >= l.bases[1] {
			base = l.bases[1]
		} else {
			stop = l.bases[1]
		}
	}
	file, err := l.root.Open(l.name(base))
	if err != nil {
		return nil, from, dropped, fmt.Errorf("read the worker's log: %w", err)
	}
	defer file.Close()
	text = make([]byte, min(stop-from, logPiece))
	n, err := file.ReadAt(text, from-base)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, from, dropped, fmt.Errorf("read the worker's log: %w", err)
	}
	if text = text[:n]; n == 0 { // a file shorter than it was: it must not stop the reader
		return nil, l.end, dropped + stop - from, nil
	}
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		text = text[:i+1]
	}
	return text, from + int64(len(text)), dropped, nil
}

// logPiece is how much of a log is read at a time.
const logPiece = 64 << 10
