//go:build unix

package engine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/wire"
)

// misbehavingArgs are the arguments of misbehavingJob.
type misbehavingArgs struct{ Do string }

// misbehavingJob is a job whose user code does things that a worker must survive.
var misbehavingJob = Define("rude", func(b *Builder, a misbehavingArgs) error {
	Collect(transform(numbers(b, 4), "rude", func(c *Context, n int64) (int64, error) {
		if n != 2 {
			return n, nil
		}
		switch a.Do {
		case "panic":
			panic("ouch")
		case "panic elsewhere":
			go panic("ouch")
			<-c.Done()
		case "exit":
			os.Exit(7)
		case "write":
			fmt.Println("\xff\x00 garbage")
			fmt.Fprintln(os.Stderr, "to the log")
		case "run":
			out, err := proctest.CommandContext(c, "sh", "-c", `[ -z "$SUPERSTEP_WORKER" ] && ! (: >&4) && ! (: <&3)`).CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("%w: %s", err, out)
			}
		case "wait":
			<-c.Done()
		}
		return n, nil
	}), "numbers")
	return nil
})

// The workers that the tests below start run this executable. It therefore calls WorkerMain
// before the tests begin, as a program does at the start of main.
func init() {
	if os.Getenv(wire.WorkerEnv) != "" {
		WorkerMain(squares, misbehavingJob)
	}
}

// process is a worker in a separate process.
type process struct {
	cmd            *proctest.Cmd
	to             *wire.Writer[wire.ToWorker]
	from           *wire.Reader[wire.FromWorker]
	stdin          *os.File
	stdout, stderr bytes.Buffer
}

func startProcess(t *testing.T) *process {
	t.Helper()
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	p := &process{cmd: proctest.CommandContext(t.Context(), os.Args[0]), stdin: in}
	p.cmd.Env = append(os.Environ(), wire.WorkerEnv+"="+strconv.Itoa(wire.Version))
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	require.NoError(t, p.cmd.Start())
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() { in.Close(); out.Close() })
	p.to, p.from = wire.NewWriter[wire.ToWorker](in), wire.NewReader[wire.FromWorker](out)
	return p
}

// say sends messages. It ignores errors, because the worker may have ended.
func (p *process) say(words ...wire.ToWorker) {
	for _, m := range words {
		_ = p.to.Write(&m)
	}
}

// start deploys a job and lets the worker run it.
func (p *process) start(t *testing.T, deploy wire.ToWorker) {
	t.Helper()
	p.say(deploy)
	ready := p.next()
	require.NotNil(t, ready)
	require.NotNil(t, ready.Ready, ready.Failed)
	p.say(prepareWord)
	require.NotNil(t, p.next().Prepared)
	p.say(startWord)
}

// next returns the worker's next message other than heartbeats and progress, or nil after the
// last message.
func (p *process) next() *wire.FromWorker {
	for {
		m, err := p.from.Next()
		if err != nil {
			return nil
		}
		if m.Beat == nil && m.Progress == nil {
			return m
		}
	}
}

// end waits for the process and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	for p.next() != nil {
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func TestWorkerProcess(t *testing.T) {
	deploy := func(do string) wire.ToWorker {
		return deployment(specOf(t, misbehavingJob, misbehavingArgs{do}, 1), 0, 1)
	}
	for _, test := range []struct {
		do   string
		code int
		last string // part of the failure's message; "" if the worker succeeds or dies
		err  string // part of the worker's standard error
	}{
		{do: "nothing"},
		{do: "write", err: "to the log\n"},
		{do: "run"},
		{do: "panic", code: exitFailed, last: "panic: ouch"},
		{do: "panic elsewhere", code: 2, err: "panic: ouch"},
		{do: "exit", code: 7},
	} {
		t.Run(test.do, func(t *testing.T) {
			p := startProcess(t)
			p.start(t, deploy(test.do))
			var last *wire.FromWorker
			rows := 0
			for m := p.next(); m != nil; m = p.next() {
				last = m
				if m.Collected != nil {
					rows++
				}
				if m.Finished != nil {
					p.say(wire.ToWorker{Commit: &wire.Commit{Outcomes: [][]byte{m.Finished.Outcome}}}, exitWord)
				}
			}
			require.Equal(t, test.code, p.end(t), p.stderr.String())
			require.Contains(t, p.stderr.String(), test.err)
			switch {
			case test.code == 0:
				require.NotNil(t, last.Committed)
				require.Equal(t, 4, rows)
			case test.last != "":
				require.Contains(t, last.Failed.Message, test.last)
			}
			if test.do == "write" {
				require.Equal(t, "\xff\x00 garbage\n", p.stdout.String())
			}
		})
	}
}

// TestWorkerProcessLeftAlone requires that a worker ends if its task manager dies.
func TestWorkerProcessLeftAlone(t *testing.T) {
	p := startProcess(t)
	p.start(t, deployment(specOf(t, misbehavingJob, misbehavingArgs{"wait"}, 1), 0, 1))
	p.stdin.Close()
	require.Equal(t, exitFailed, p.end(t))
	require.Contains(t, p.stderr.String(), "the pipe to the task manager has ended: the worker exits\n")
}

// TestWorkerProcessWithoutTaskManager requires that a user who sets the environment variable by
// hand gets an explanation.
func TestWorkerProcessWithoutTaskManager(t *testing.T) {
	for _, files := range [][]*os.File{nil, {os.Stdin, os.Stdin}} {
		cmd := proctest.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), wire.WorkerEnv+"="+strconv.Itoa(wire.Version))
		cmd.ExtraFiles = files
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
		require.True(t, strings.HasPrefix(string(out), "the environment says by SUPERSTEP_WORKER that this process is a worker, but no task manager started it ("), string(out))
		require.True(t, strings.HasSuffix(string(out), "): unset the variable\n"), string(out))
	}
}
