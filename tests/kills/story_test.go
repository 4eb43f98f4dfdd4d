//go:build linux && !race

package kills

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// story is the timeline of a run: the faults, and what was observed of the job.
type story struct {
	began  time.Time
	output transcript // what the processes of the cluster wrote

	mu    sync.Mutex
	lines []string
}

func newStory() *story { return &story{began: time.Now()} }

// tell adds a line with the time since the beginning.
func (s *story) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%7.3fs  ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
}

// String returns all lines.
func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// transcript is an io.Writer that keeps what is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// String returns what was written so far.
func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// labelled is an io.Writer that begins each line with the name of a process.
type labelled struct {
	name string
	to   *transcript
	part []byte // of a line that has not ended
}

func (l *labelled) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		fmt.Fprintf(l.to, "%s: %s\n", l.name, line)
		l.part = append([]byte(nil), rest...)
	}
}
