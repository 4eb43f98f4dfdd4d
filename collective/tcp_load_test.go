package collective

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// loadVariable is the environment variable that makes the test binary run as a process of
// TestNobodyIsLostUnderLoad. Its value is JSON of type loaded.
const loadVariable = "COLLECTIVE_TEST_LOAD"

// loaded is the configuration of a process of TestNobodyIsLostUnderLoad.
type loaded struct {
	Rank, Size int // if Size is 0, the process only uses CPU time
	Store      string
}

// TestLoadedProcess is the body of a process of TestNobodyIsLostUnderLoad. Without loadVariable
// it does nothing. The process runs AllReduces until its standard input is closed, and prints
// how many it has run. Meanwhile, other goroutines use as much CPU time as they get.
func TestLoadedProcess(t *testing.T) {
	text := os.Getenv(loadVariable)
	if text == "" {
		return
	}
	var l loaded
	require.NoError(t, json.Unmarshal([]byte(text), &l))
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, os.Stdin)
		stop.Store(true)
	}()
	burned := make(chan bool)
	for range 2 {
		go func() {
			for !stop.Load() { // a loop without function calls
				for x := 1.0; x < 1e6; x++ {
					_ = x * x
				}
			}
			burned <- true
		}()
	}
	if l.Size > 0 {
		fmt.Fprintf(os.Stderr, "steps %d\n", reduceUntil(t, l, &stop))
	}
	<-ended
	<-burned
	<-burned
}

// reduceUntil joins the group and reduces until stop is set in the process of rank 0.
func reduceUntil(t *testing.T, l loaded, stop *atomic.Bool) (steps int) {
	ctx := context.Background()
	g, err := NewTCPGroup(ctx, l.Rank, TCPConfig{Store: FileStore(l.Store), Size: l.Size, Group: "load", JoinTimeout: 2 * time.Minute})
	require.NoError(t, err)
	in, out := make([]float64, 512), make([]float64, 512)
	for more := true; more; steps++ {
		for i := range in {
			in[i] = float64(l.Rank)
		}
		require.NoError(t, AllReduce(g.Rank(l.Rank), &Reduction[float64]{Name: "load", Op: Sum[float64](), Whole: in, Out: out}))
		require.Equal(t, float64(l.Size*(l.Size-1)/2), out[511])
		more, err = g.Rank(l.Rank).BroadcastBool(ctx, 0, !stop.Load())
		require.NoError(t, err)
	}
	require.NoError(t, g.Close())
	return steps
}

// TestNobodyIsLostUnderLoad requires that no process is taken for dead if the machine has too
// few processors. It runs a group of loadProcesses processes for loadTime, and at the same time
// loadHogs processes that only use CPU time.
func TestNobodyIsLostUnderLoad(t *testing.T) {
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	type process struct {
		cmd *proctest.Cmd
		in  io.Closer
		out bytes.Buffer
	}
	var all []*process
	start := func(l loaded) {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		p := &process{cmd: proctest.Command(binary, "-test.run=^TestLoadedProcess$", "-test.timeout=0")}
		p.cmd.Env = append(os.Environ(), loadVariable+"="+string(text))
		p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
		p.in, err = p.cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, p.cmd.Start())
		all = append(all, p)
		t.Cleanup(func() { p.in.Close(); p.cmd.Process.Kill(); p.cmd.Wait() })
	}
	for r := range loadProcesses {
		start(loaded{Rank: r, Size: loadProcesses, Store: dir})
	}
	for range loadHogs {
		start(loaded{})
	}
	<-time.After(loadTime)
	for _, p := range all {
		p.in.Close()
	}
	for i, p := range all {
		require.NoError(t, p.cmd.Wait(), "process %d: %s", i, &p.out)
		if i < loadProcesses {
			require.Regexp(t, `steps \d+`, p.out.String())
		}
	}
	t.Logf("%s", all[0].out.String())
}
