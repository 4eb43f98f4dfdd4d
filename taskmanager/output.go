package taskmanager

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// Bounds on the kept part of a worker's output.
const (
	maxLine    = 16 << 10  // bytes of a line that are passed on; the rest is cut
	maxTail    = 1 << 10   // bytes of each of the last lines
	tailLines  = 50        // last lines that are kept
	crashLines = 40        // lines that are kept from the beginning of a crash on
	maxPending = 256 << 10 // bytes that wait to be passed on
	maxChunk   = 64 << 10  // bytes that are passed on at once, about
)

// output collects what a worker writes to its standard output and error, line by line. It
// always reads everything, so that output never makes a worker wait; lines that are not fetched
// in time are dropped and counted.
type output struct {
	mu      sync.Mutex
	line    []byte // the line that has not ended
	cut     int    // bytes left out of it
	pending []byte // whole lines for the job manager
	lost    counted
	tail    []string // the last lines, oldest at next
	next    int
	crash   []string // lines from the last "panic: " or "fatal error: " on
	more    chan struct{}
}

// counted is the amount of dropped output.
type counted struct {
	lines, bytes int64
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

// readFrom takes everything from r until it ends or fails, and ends the last line.
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

// write takes a piece of output.
func (o *output) write(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// endLine stores the line that has ended.
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

// remember keeps a line among the last ones, and among those of a crash.
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

// take returns lines to pass on, nil if there are none. After the waiting lines, one more line
// says how much was dropped behind them.
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

// crashed returns the program's output from its crash on, nil if it did not crash.
func (o *output) crashed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.crash...)
}

// crashes reports whether the Go runtime begins the report of a crash with this line.
func crashes(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// printable returns text for a terminal: valid UTF-8 without anything that moves the
// cursor.
func printable(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, string(line))
}
