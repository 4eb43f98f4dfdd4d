package jobmanager

import (
	"bytes"
	"cmp"
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

// A worklog stores the end of the standard output and standard error of one worker of a job, up
// to a bound. It is a sequence of files. The last file grows up to half the bound, and earlier
// files are kept as far as they fit into the other half. A position is a number of bytes from
// the start of the worker's output. Positions also count bytes that could not be stored, so
// that a reader knows how many bytes it has missed. The name of a file ends in the position of
// its first byte:
//
//	log-3-0000000000002097152
//
// A worklog is safe for concurrent use.
type worklog struct {
	root   *os.Root
	prefix string // prefix of the names of the log's files, such as "jobs/ID/log-3-"
	half   int64

	mu   sync.Mutex
	file *os.File // the file of the last extent, to which text is appended; nil if none is open
	kept []extent // in order; bytes between two extents or after the last extent are lost
	end  int64    // position after the last byte that the worker wrote
}

// extent is the range [base, end) of positions in one file.
type extent struct{ base, end int64 }

// maxExtents bounds the number of files of a log. Without a bound, a disk that is full
// repeatedly would cause many short files.
const maxExtents = 16

// newWorklog makes the log of a new worker.
func newWorklog(root *os.Root, prefix string, bound int64) *worklog {
	return &worklog{root: root, prefix: prefix, half: max(bound/2, 1)}
}

// openWorklog opens the log of a worker that has ended.
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
		l.kept = append(l.kept, extent{base, base + info.Size()})
		l.end = max(l.end, base+info.Size())
	}
	slices.SortFunc(l.kept, func(a, b extent) int { return cmp.Compare(a.base, b.base) })
	return l, nil
}

func logPrefix(dir string, worker int) string {
	return dir + "/log-" + strconv.Itoa(worker) + "-"
}

func (l *worklog) name(base int64) string { return fmt.Sprintf("%s%019d", l.prefix, base) }

// write appends text to the log. After bytes that could not be stored, it begins a new file;
// from the file's name, readers compute how many bytes are missing.
func (l *worklog) write(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.removed(); err != nil {
		return l.lose(text, err)
	}
	for len(text) > 0 {
		if l.file == nil {
			if err := l.turn(); err != nil {
				return l.lose(text, err)
			}
		}
		last := &l.kept[len(l.kept)-1]
		piece := text
		if room := l.half - (last.end - last.base); int64(len(piece)) > room {
			piece = text[:room]
			// A file ends at the end of a line, unless the line is longer than a file.
			if i := bytes.LastIndexByte(piece, '\n'); i >= 0 || last.end > last.base {
				piece = piece[:i+1]
			}
		}
		n, err := l.file.WriteAt(piece, last.end-last.base)
		last.end += int64(n)
		l.end, text = l.end+int64(n), text[n:]
		if err == nil && len(text) > 0 {
			err = l.turn()
		}
		if err != nil {
			return l.lose(text, err)
		}
	}
	return nil
}

// lose skips the positions of text, which cannot be stored because of err, and returns the
// error. The caller holds mu.
func (l *worklog) lose(text []byte, err error) error {
	l.end += int64(len(text))
	return fmt.Errorf("keep the worker's log: %w", errors.Join(err, l.shut()))
}

// shut closes the last file. The caller holds mu.
func (l *worklog) shut() (err error) {
	if l.file != nil {
		err = l.file.Close()
	}
	l.file = nil
	return err
}

// removed closes the last file if another program has deleted it, because bytes that are
// appended to a deleted file would be lost. The caller holds mu.
func (l *worklog) removed() error {
	if l.file == nil {
		return nil
	}
	last := len(l.kept) - 1
	if _, err := l.root.Stat(l.name(l.kept[last].base)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l.kept = l.kept[:last]
	return l.shut()
}

// turn begins a new file. The caller holds mu.
func (l *worklog) turn() error {
	f, err := l.root.OpenFile(l.name(l.end), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = l.shut()
	l.file = f
	if n := len(l.kept); n == 0 || l.kept[n-1].base != l.end {
		l.kept = append(l.kept, extent{l.end, l.end})
	}
	before := int64(0)
	for _, x := range l.kept {
		before += x.end - x.base
	}
	for ; len(l.kept) > maxExtents || before > l.half && len(l.kept) > 1; l.kept = l.kept[1:] {
		before -= l.kept[0].end - l.kept[0].base
		if e := l.root.Remove(l.name(l.kept[0].base)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// close closes the log for writing. It can still be read. If the last lines are lost, close
// tries to create an empty file, whose name shows later readers that lines are missing.
func (l *worklog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if n := len(l.kept); l.end > 0 && (n == 0 || l.kept[n-1].end < l.end) && l.half > 0 {
		err = l.turn()
	}
	return errors.Join(err, l.shut())
}

// read returns the text at position from: at most logPiece bytes, complete lines if possible,
// and no text at the end of the log. next is the position after the text, and dropped is how
// many bytes between from and the text are lost.
func (l *worklog) read(from int64) (text []byte, next, dropped int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.kept {
		if from >= x.end {
			continue
		}
		if from < x.base {
			dropped, from = dropped+x.base-from, x.base
		}
		text, err := l.readFile(x, from)
		if err != nil {
			return nil, from, dropped, fmt.Errorf("read the worker's log: %w", err)
		}
		if len(text) > 0 {
			return text, from + int64(len(text)), dropped, nil
		}
		dropped, from = dropped+x.end-from, x.end // the file was truncated or deleted
	}
	if from < l.end {
		dropped, from = dropped+l.end-from, l.end
	}
	return nil, from, dropped, nil
}

// readFile reads a piece of one file. It returns nothing if the file does not exist.
func (l *worklog) readFile(x extent, from int64) ([]byte, error) {
	file, err := l.root.Open(l.name(x.base))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := make([]byte, min(x.end-from, logPiece))
	n, err := file.ReadAt(text, from-x.base)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text = text[:n]
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		text = text[:i+1]
	}
	return text, nil
}

// logPiece is the number of bytes of a log that are read at a time.
const logPiece = 64 << 10
