package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// exitGrace is the time after a failure of rank 0 in which the other ranks may end by
// themselves. They are notified of the failure through the group, and the errors that they
// print may be more specific than the error of rank 0.
const exitGrace = 5 * time.Second

// rankProcesses has the processes of ranks 1, 2, …, which rank 0 started.
type rankProcesses struct {
	ctx    context.Context // done when one of the processes fails
	cancel context.CancelCauseFunc
	stderr *errorFilter
	alive  sync.WaitGroup
}

func newRankProcesses(ctx context.Context, errOut io.Writer) *rankProcesses {
	f := &rankProcesses{stderr: &errorFilter{out: errOut}}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	return f
}

// start starts the process of a rank. The ranks find each other through files in the directory
// dir.
func (f *rankProcesses) start(rank int, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(f.ctx, self, os.Args[1:]...)
	child.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(rank), storeVariable+"="+dir)
	said, err := child.StderrPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting rank %d: %w", rank, err)
	}
	f.alive.Go(func() {
		f.stderr.copy(said)
		if err := child.Wait(); err != nil {
			f.cancel(fmt.Errorf("rank %d: %w", rank, err))
		}
	})
	return nil
}

// end waits until all processes have ended. err is the error of rank 0; if it is not nil, end
// kills the processes that have not ended after exitGrace.
func (f *rankProcesses) end(err error) {
	if err != nil {
		stop := time.AfterFunc(exitGrace, func() { f.cancel(err) })
		defer stop.Stop()
	}
	f.alive.Wait()
	f.cancel(nil)
}

// errorFilter copies the standard error of all ranks, line by line, to out. If the group fails,
// all ranks print the same error, on a line that begins with errorPrefix; errorFilter writes
// such a line only once.
type errorFilter struct {
	mu   sync.Mutex
	out  io.Writer
	seen map[string]bool
}

const errorPrefix = "superstep: "

func (o *errorFilter) copy(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadString('\n')
		o.mu.Lock()
		if text != "" && !o.seen[text] {
			fmt.Fprint(o.out, text)
		}
		if strings.HasPrefix(text, errorPrefix) {
			if o.seen == nil {
				o.seen = map[string]bool{}
			}
			o.seen[text] = true
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// has reports whether a rank has printed err.
func (o *errorFilter) has(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[errorPrefix+err.Error()+"\n"]
}
