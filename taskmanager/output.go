package taskmanager

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
)

// Bounds on the parts of a worker's output that are kept.
const (
	maxLine    = 16 << 10  // largest number of bytes of a line that are passed on; the rest of the line is dropped
	maxTail    = 1 << 10   // largest number of bytes that are kept of each of the last lines
	tailLines  = 50        // number of last lines that are kept
	crashLines = 40        // largest number of lines that are kept of a crash report
	maxPending = 256 << 10 // largest number of bytes of lines that wait to be passed on
	maxChunk   = 64 << 10  // largest number of bytes that are passed on in one piece
)

// output collects what a worker writes to its standard output and error, line by line. It
// always reads everything, so that output never makes a worker wait. If too many lines wait to
// be taken, further lines are dropped and counted.
type output struct {
	mu      sync.Mutex
	line    []byte // the part of the current line that is kept
	cut     int    // number of bytes of the current line that were dropped
	pending []byte // whole lines for the job manager
	lost    counted
	tail    []string // ring buffer of the last lines; once it is full, the oldest line is at index next
	next    int
	crash   []string // first lines of the last crash report; see crashes
	more    chan struct{}
}

// counted is the amount of dropped output.
type counted struct {
	lines, bytes int64
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

// readFrom reads r until EOF or an error and stores its lines, including a last line without a
// line feed.
func (o *output) readFrom(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		o.write(buf[:n])
		if err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			if len(o.line) > 0 || o.cut > 0 {
				o.endLine()
			}
			return
		}
	}
}

// readPipe does the same as readFrom for a pipe, and takes what it reads out of the pipe and stores it at
// once, under mu.
func (o *output) readPipe(f *os.File) { o.readFrom(pipeReader{o, f, make([]byte, 32<<10)}) }

// pipeReader stores in out what it reads. So its Read never returns bytes.
type pipeReader struct {
	out  *output
	pipe *os.File
	buf  []byte
}

func (r pipeReader) Read([]byte) (int, error) {
	return 0, readReady(r.pipe, r.buf, &r.out.mu, r.out.store)
}

// empty reports whether all that was written to a pipe so far, which is read by readPipe, is stored.
func (o *output) empty(f *os.File) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !readable(f)
}

// write stores a piece of output, which may begin or end within a line.
func (o *output) write(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.store(text)
}

// store does the work of write. mu is held.
func (o *output) store(text []byte) {
	for len(text) > 0 {
		piece, rest, ended := bytes.Cut(text, []byte("\n"))
		fits := min(len(piece), maxLine-len(o.line))
		o.line = append(o.line, piece[:fits]...)
		o.cut += len(piece) - fits
		if ended {
			o.endLine()
		}
		text = rest
	}
}

// endLine stores the current line, which is complete.
func (o *output) endLine() {
	size := len(o.line) + o.cut + 1
	if o.cut > 0 {
		o.line = fmt.Appendf(o.line, " … (%d bytes more)", o.cut)
	}
	o.remember(printable(o.line[:min(len(o.line), maxTail)]))
	if len(o.pending)+len(o.line)+1 > maxPending || o.lost.lines > 0 {
		o.lost.lines++
		o.lost.bytes += int64(size)
	} else {
		o.pending = append(append(o.pending, o.line...), '\n')
	}
	o.line, o.cut = o.line[:0], 0
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// remember stores a line as one of the last lines. If the line belongs to a crash report, it
// also stores the line in crash.
func (o *output) remember(line string) {
	if len(o.tail) < tailLines {
		o.tail = append(o.tail, line)
	} else {
		o.tail[o.next] = line
		o.next = (o.next + 1) % tailLines
	}
	switch {
	case crashes(line):
		o.crash = []string{line}
	case len(o.crash) > 0 && len(o.crash) < crashLines:
		o.crash = append(o.crash, line)
	}
}

// take removes and returns lines to be passed on, or nil if there are no such lines. If lines
// were dropped after the waiting lines, then once the waiting lines are taken, take returns a
// line that says how much was dropped.
func (o *output) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pending) == 0 {
		if o.lost.lines == 0 {
			return nil
		}
		note := fmt.Appendf(nil, "(%d lines, %d bytes, left out here: they came faster than they could be passed on)\n", o.lost.lines, o.lost.bytes)
		o.lost = counted{}
		return note
	}
	size := len(o.pending)
	if size > maxChunk {
		size = maxChunk
		if end := bytes.LastIndexByte(o.pending[:size], '\n'); end >= 0 {
			size = end + 1
		}
	}
	chunk := bytes.Clone(o.pending[:size])
	o.pending = append(o.pending[:0], o.pending[size:]...)
	return chunk
}

// forget forgets the last lines and the last crash report, but not the lines that wait to be passed on.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail, o.next, o.crash = nil, 0, nil
}

// waits reports whether there is something to take.
func (o *output) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending) > 0 || o.lost.lines > 0
}

// lastLines returns the last lines, oldest first.
func (o *output) lastLines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append(append([]string(nil), o.tail[o.next:]...), o.tail[:o.next]...)
}

// crashed returns the first lines of the last crash report in the output, or nil if there is
// none.
func (o *output) crashed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.crash...)
}

// crashes reports whether line begins a crash report of the Go runtime.
func crashes(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// printable returns line as text that is safe to print on a terminal: valid UTF-8 without
// control characters other than tabs.
func printable(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, string(line))
}
