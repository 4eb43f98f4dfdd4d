package taskmanager

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// drain takes and returns all waiting output.
func drain(o *output) string {
	var all []byte
	for lines := o.take(); lines != nil; lines = o.take() {
		all = append(all, lines...)
	}
	return string(all)
}

func TestOutputLines(t *testing.T) {
	o := newOutput()
	o.readFrom(iotest.OneByteReader(strings.NewReader("one\n\ntwo\r\n\x1b[31mred\xff\nno end")))
	require.True(t, o.waits())
	require.Equal(t, "one\n\ntwo\r\n\x1b[31mred\xff\nno end\n", drain(o))
	require.False(t, o.waits())
	require.Equal(t, []string{"one", "", "two", "�[31mred�", "no end"}, o.lastLines())
	require.Nil(t, o.crashed())
}

// TestOutputOfAPipe requires that what a process has written is stored when the pipe is empty, and that
// nothing is lost or changed on the way.
func TestOutputOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	o := newOutput()
	read := make(chan struct{})
	go func() {
		defer close(read)
		o.readPipe(r)
	}()
	for i := range 2000 {
		_, err := fmt.Fprintln(w, "line", i)
		require.NoError(t, err)
		for !o.empty(r) {
			runtime.Gosched()
		}
		last := o.lastLines()
		require.Equal(t, fmt.Sprint("line ", i), last[len(last)-1])
	}
	_, err = w.WriteString("no end")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	<-read
	require.NoError(t, r.Close())
	text := drain(o)
	require.Equal(t, 2001, strings.Count(text, "\n"))
	require.True(t, strings.HasSuffix(text, "line 1999\nno end\n"))
}

func TestOutputKeepsTheLastLines(t *testing.T) {
	o := newOutput()
	for i := range 123 {
		o.write(fmt.Appendln(nil, i))
	}
	last := o.lastLines()
	require.Len(t, last, tailLines)
	require.Equal(t, "73", last[0])
	require.Equal(t, "122", last[tailLines-1])
}

func TestOutputCutsLines(t *testing.T) {
	o := newOutput()
	o.write(bytes.Repeat([]byte("x"), maxLine+100))
	o.write([]byte("yyy\nnext\n"))
	require.Equal(t, strings.Repeat("x", maxLine)+" … (103 bytes more)\nnext\n", drain(o))
	require.Len(t, o.lastLines()[0], maxTail)
	require.LessOrEqual(t, cap(o.line), 2*maxLine)
}

// TestOutputAtRandom writes lines in pieces of any size and takes them at random times. Every
// line must be returned in order, or be counted as dropped in the note that takes its position.
func TestOutputAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutput()
		var got strings.Builder
		written := 0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 60).Draw(t, "lines") {
				line := fmt.Appendf(nil, "%d %s\n", written, strings.Repeat("x", rapid.IntRange(0, 9000).Draw(t, "size")))
				cut := rapid.IntRange(0, len(line)).Draw(t, "cut")
				o.write(line[:cut])
				o.write(line[cut:])
				written++
			}
			for range rapid.IntRange(0, 3).Draw(t, "takes") {
				lines := o.take()
				if len(lines) > maxChunk {
					t.Fatalf("take returned %d bytes, more than maxChunk", len(lines))
				}
				got.Write(lines)
			}
			if len(o.pending) > maxPending {
				t.Fatalf("%d bytes are pending, more than maxPending", len(o.pending))
			}
		}
		got.WriteString(drain(o))
		next := 0
		for line := range strings.Lines(got.String()) {
			var n, bytes int
			if _, err := fmt.Sscanf(line, "(%d lines, %d bytes, left out here", &n, &bytes); err == nil {
				next += n
				continue
			}
			if _, err := fmt.Sscanf(line, "%d ", &n); err != nil || n != next {
				t.Fatalf("got line %.20q, want line number %d", line, next)
			}
			next++
		}
		if next != written {
			t.Fatalf("%d lines were returned or counted, but %d were written", next, written)
		}
	})
}

const crash = `working
panic: an old one, recovered and printed
more work
panic: runtime error: index out of range [7] with length 3 [recovered]
	panic: again

goroutine 35 [running]:
main.explode(...)
	/src/main.go:12
main.main()
	/src/main.go:5 +0x1d

goroutine 36 [select]:
main.other()
exit status 2
`

func TestEnding(t *testing.T) {
	o := newOutput()
	o.readFrom(strings.NewReader(crash))
	message := strings.Join(strings.Split(crash, "\n")[3:11], "\n")
	for _, test := range []struct {
		e       ending
		kind    wire.FailureKind
		message string // expected message; "" if there is no failure
	}{
		{ending{exit: Exit{Code: 2}, in: core.Running, crash: o.crashed()}, wire.UserFailure, message},
		{ending{exit: Exit{Code: 2}, in: core.Leaving, crash: o.crashed()}, wire.UserFailure, message},
		{ending{exit: Exit{Code: -1, Signal: "aborted"}, in: core.Running, crash: o.crashed()}, wire.UserFailure, message},
		{ending{exit: Exit{Code: 3}, in: core.Running, crash: o.crashed()}, wire.UserFailure, "user code ended the process (os.Exit) with code 3"},
		{ending{exit: Exit{Code: 2}, in: core.Running}, wire.UserFailure, "user code ended the process (os.Exit) with code 2"},
		{ending{exit: Exit{Code: 0}, in: core.Done}, wire.UserFailure, "user code ended the process (os.Exit) with code 0"},
		{ending{exit: Exit{Code: 0}, in: core.Leaving}, 0, ""},
		{ending{exit: Exit{Code: 1}, in: core.Leaving}, 0, ""},
		{ending{exit: Exit{Code: 1}, in: core.Cancelling}, 0, ""},
		{ending{exit: Exit{Code: 7}, in: core.Leaving}, wire.UserFailure, "user code ended the process (os.Exit) with code 7"},
		{ending{exit: Exit{Code: -1, Signal: "killed"}, in: core.Running}, wire.LostFailure, "killed by signal: killed; perhaps out of memory"},
		{ending{exit: Exit{Code: -1, Signal: "killed", OutOfMemory: true}, in: core.Running}, wire.LostFailure, "killed by the kernel for lack of memory: give it more, or use fewer slots for as much data"},
		{ending{exit: Exit{Code: -1, Signal: "terminated"}, in: core.Running}, wire.LostFailure, "killed by signal: terminated"},
		{ending{exit: Exit{Code: -1, Signal: "segmentation fault"}, in: core.Running}, wire.UserFailure, "killed by signal: segmentation fault"},
		{ending{exit: Exit{Code: -1, Signal: "segmentation fault"}, in: core.Starting}, wire.MisuseFailure, "the executable was killed by signal: segmentation fault, before it sent anything as a worker: it is damaged, or " + notOurs},
		{ending{exit: Exit{Code: 0}, in: core.Starting}, wire.MisuseFailure, "the executable ended with code 0 before it sent anything as a worker: " + notOurs},
		{ending{exit: Exit{Code: 1}, in: core.Starting, own: true}, wire.ClusterFailure, "the task manager's own executable ended with code 1 instead of becoming a worker"},
	} {
		f := test.e.failure()
		if test.message == "" {
			require.Nil(t, f, "%+v", test.e)
			continue
		}
		require.NotNil(t, f, "%+v", test.e)
		require.Equal(t, test.message, f.Message)
		require.Equal(t, test.kind, f.Kind, f.Message)
	}
}

func TestFirstFramesAreBounded(t *testing.T) {
	o := newOutput()
	o.write([]byte("fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [running]:\n"))
	for i := range 100 {
		o.write(fmt.Appendf(nil, "main.f%d()\n", i))
	}
	require.Len(t, o.crashed(), crashLines)
	require.Len(t, strings.Split(firstFrames(o.crashed()), "\n"), maxFrames)
}
