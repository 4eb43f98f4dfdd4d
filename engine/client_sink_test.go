package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/wire"
)

// textSink writes numbers as lines, ordered by shard, to a file that must not exist.
type textSink struct {
	path  string
	lines []string // the lines of each shard
	begun bool
}

func (s *textSink) Begin() error {
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("output " + s.path + " exists")
	}
	s.begun = true
	return nil
}

func (s *textSink) Commit() error {
	return os.WriteFile(s.path, []byte(strings.Join(s.lines, "")), 0o600)
}

func (s *textSink) Abort() error { s.begun = false; return nil }

type textOperator struct {
	swallower
	sink *textSink
}

func (o textOperator) Process(_ *Context, _, shard int, in Batch, _ Output) error {
	rows := arrowrows.Record(in)
	if !o.sink.begun {
		return errors.New("the sink has not begun")
	}
	for _, v := range rows.Column(0).(*array.Int64).Int64Values() {
		o.sink.lines[shard] += strconv.FormatInt(v, 10) + "\n"
	}
	return nil
}

// writes is a job whose client writes the squares of 0..3. If Input is set, the job depends on
// the size of that file, which may be a file that only the workers have.
var writes = Define("writes", func(b *Builder, a writesArgs) error {
	if a.Input != "" {
		_, err := b.Fact("size of "+a.Input, func() (string, error) {
			info, err := os.Stat(a.Input)
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(info.Size(), 10), nil
		})
		if err != nil {
			b.Errorf("Read: %w", err)
			return nil
		}
	}
	d := transform(numbers(b, 4), "square", square)
	sink := &textSink{path: a.Output, lines: make([]string, b.Shards())}
	b.Add(Spec{
		Op: "WriteText", Attrs: []Attr{{Key: "path", Value: ClientPath + a.Output}}, Inputs: []Port{{From: d}},
		Operator: func() Operator { return textOperator{sink: sink} }, Sink: sink, AtClient: true,
	})
	return nil
})

type writesArgs struct{ Input, Output string }

func TestBringBack(t *testing.T) {
	offerAll(t, writes)
	out := filepath.Join(t.TempDir(), "out")
	result, err := Run(t.Context(), writes, writesArgs{Output: out}, Shards(8), checkedAllocator(t))
	require.NoError(t, err)
	require.Empty(t, result.Names())
	result.Release()
	want := read(t, out)
	require.Equal(t, "0\n1\n4\n9\n", want)

	f := newFakeCluster(t, ranSquares)
	f.report = func(p *plan.Plan) ([][]byte, error) {
		return outcomesOf(p, writes, writesArgs{Output: filepath.Join(t.TempDir(), "x")})
	}
	_, err = Run(t.Context(), writes, writesArgs{Output: out}, f.options()...)
	require.EqualError(t, err, `job "writes": WriteText: output `+out+" exists")
	require.Empty(t, f.specs, "the client must notice an existing output before it sends anything")

	require.NoError(t, os.Remove(out))
	nowhere := filepath.Join(out, "checkpoints") // the client need not be able to use the store of the workers
	result, err = Run(t.Context(), writes, writesArgs{Output: out}, append(f.options(), CheckpointDir(nowhere))...)
	require.NoError(t, err)
	require.Equal(t, want, read(t, out))
	require.Empty(t, result.Names())
	result.Release()
}

// lateSink is a JointSink whose Place fails.
type lateSink struct{ JointSink }

func (lateSink) Begin() error              { return nil }
func (lateSink) Written() ([]byte, error)  { return nil, nil }
func (lateSink) Aside() string             { return "aside" }
func (lateSink) Complete(Completion) error { return nil }
func (lateSink) Place() error              { return errors.New("no place") }
func (lateSink) TakeBack() error           { return nil }
func (lateSink) Abort() error              { return nil }

// TestBringBackTogether requires that a sink that cannot be undone commits after Place has
// succeeded on all JointSinks, whatever the order of the sinks, and does not commit if one of
// them fails.
func TestBringBackTogether(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		d := numbers(b, 4)
		text := &textSink{path: out, lines: make([]string, b.Shards())}
		b.Add(Spec{
			Op: "WriteText", Inputs: []Port{{From: d}}, Operator: func() Operator { return textOperator{sink: text} }, Sink: text, AtClient: true,
		})
		b.Add(Spec{
			Op: "WriteLate", Inputs: []Port{{From: d}}, Operator: func() Operator { return swallower{} }, Sink: lateSink{}, AtClient: true,
		})
		return nil
	}), struct{}{})
	require.ErrorContains(t, err, "no place; none of its outputs is visible")
	require.NoFileExists(t, out)
}

func TestBringBackOfWhatTheClientCannotSee(t *testing.T) {
	offerAll(t, writes)
	dir := t.TempDir()
	args := writesArgs{Input: filepath.Join(dir, "in"), Output: filepath.Join(dir, "out")}
	require.NoError(t, os.WriteFile(args.Input, []byte("x"), 0o600))
	graph, err := BuildGraph(writes, args, Shards(8))
	require.NoError(t, err)
	require.NoError(t, os.Remove(args.Input))
	data, err := graph.JSON()
	require.NoError(t, err)

	compiled := func() *plan.Plan {
		p, err := plan.Compile(graph, 2)
		if err != nil {
			panic(err)
		}
		return p
	}
	f := newFakeCluster(t, func(p *player) { p.run(); <-p.stream.Context().Done() })
	f.build = compiled
	_, err = Run(t.Context(), writes, args, f.options()...)
	require.ErrorContains(t, err, "the job manager did not tell the facts that the job rests on: upgrade it")

	f = newFakeCluster(t, ranSquares)
	f.build, f.resolved = compiled, data
	f.report = func(p *plan.Plan) ([][]byte, error) {
		require.NoError(t, os.WriteFile(args.Input, []byte("x"), 0o600))
		defer func() { require.NoError(t, os.Remove(args.Input)) }()
		return outcomesOf(p, writes, writesArgs{Input: args.Input, Output: args.Output})
	}
	result, err := Run(t.Context(), writes, args, f.options()...)
	require.NoError(t, err)
	defer result.Release()
	require.Equal(t, "0\n1\n4\n9\n", read(t, args.Output))
	require.Equal(t, graph.Fingerprint(), result.Graph.Fingerprint())
}

// TestBringBackOfADetachedJob requires that a detached job with outputs at the client is refused
// before anything is sent. If the client cannot build the job, the worker that builds it must
// refuse the outputs.
func TestBringBackOfADetachedJob(t *testing.T) {
	offerAll(t, writes)
	dir := t.TempDir()
	f := newFakeCluster(t, ranSquares)
	_, err := Run(t.Context(), writes, writesArgs{Output: filepath.Join(dir, "out")}, f.options(Detach())...)
	require.EqualError(t, err, `--detach leaves before the job has ended, and outputs at "client:" are written by the client when it has: give them paths of the workers, or stay`)
	require.ErrorAs(t, err, new(*optionError))
	require.Empty(t, f.specs)
	require.Zero(t, f.uploaded)

	args := writesArgs{Input: filepath.Join(dir, "in"), Output: filepath.Join(dir, "out")}
	require.NoError(t, os.WriteFile(args.Input, []byte("x"), 0o600))
	encoded, err := encodeArgs(args)
	require.NoError(t, err)
	c, err := newConfig([]Option{Shards(8)})
	require.NoError(t, err)
	for _, attached := range []bool{true, false} {
		d := &wire.Deployment{Spec: wire.JobSpec{Args: encoded, Attached: attached}}
		_, err = resolveGraph(writes, d, c)
		if attached {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, detachedOutputs)
		}
	}
	require.NoFileExists(t, args.Output)
}

func TestBringBackMisuse(t *testing.T) {
	require.Contains(t, buildFails(t, func(b *Builder) error {
		d := numbers(b, 1)
		b.Add(Spec{Op: "Write", Inputs: []Port{{From: d}}, Operator: func() Operator { return swallower{} }, AtClient: true})
		return nil
	}), "Write: what runs at the client is a sink with one input")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}
