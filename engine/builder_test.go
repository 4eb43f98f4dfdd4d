package engine

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// keep returns the Spec of a valid operator on d. Tests change it so that it is invalid.
func keep(d *Dataset) Spec {
	return Spec{
		Op: "Keep", Schema: arrowrows.Schema(numberSchema), Inputs: []Port{{From: d}},
		Operator: func() Operator { return transformer{square} },
	}
}

func TestMisusesNameTheUsersLine(t *testing.T) {
	vector := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.FixedSizeListOfNonNullable(2, arrow.PrimitiveTypes.Float64)}}, nil)
	place := func(Batch, int, int64, int, []int32) error { return nil }
	for _, test := range []struct {
		name  string
		spoil func(b *Builder, s *Spec)
		want  string
	}{
		{"no kind", func(_ *Builder, s *Spec) { s.Op = "" }, `operator: the kind of operator is not named`},
		{"nothing to run", func(_ *Builder, s *Spec) { s.Operator = nil }, `Keep: want either a source or an operator`},
		{"two things to run", func(_ *Builder, s *Spec) { s.Source = func() Source { return numberSource{} } }, `Keep: want either a source or an operator`},
		{"no input", func(_ *Builder, s *Spec) { s.Inputs = nil }, `Keep: want at least one input`},
		{"source with input", func(_ *Builder, s *Spec) {
			s.Operator, s.Source = nil, func() Source { return numberSource{} }
		}, `Keep: a source has no inputs`},
		{"source without schema", func(_ *Builder, s *Spec) {
			*s = Spec{Op: "Keep", Source: func() Source { return numberSource{} }}
		}, `Keep: a source needs a schema`},
		{"sink with rows", func(_ *Builder, s *Spec) { s.Sink = &collected{} }, `Keep: a sink is an operator that emits no rows`},
		{"nil dataset", func(_ *Builder, s *Spec) { s.Inputs[0].From = nil }, `Keep: the dataset is nil`},
		{"nil dataset among several", func(_ *Builder, s *Spec) { s.Inputs = append(s.Inputs, Port{}) }, `Keep: input 2: the dataset is nil`},
		{"dataset of another builder", func(b *Builder, s *Spec) {
			s.Inputs[0].From = numbers(newBuilder("other", b.config, resolving()), 1)
		}, `Keep: the dataset belongs to another job or to an earlier build of this one; a job function must not keep datasets between calls`},
		{"missing key", func(_ *Builder, s *Spec) {
			s.Inputs[0].Partitioner, s.Inputs[0].Keys = Hash, []string{"N"}
		}, `Keep: no column "N"; did you mean "n"? (columns: n int64)`},
		{"key of a wrong type", func(b *Builder, s *Spec) {
			from := b.Add(Spec{Op: "Vectors", Schema: arrowrows.Schema(vector), Source: func() Source { return numberSource{} }})
			s.Inputs[0] = Port{From: from, Partitioner: Hash, Keys: []string{"v"}}
		}, `Keep: column "v" of type vector[2] cannot be a key: only numbers, text, bytes and times can`},
		{"hash without keys", func(_ *Builder, s *Spec) { s.Inputs[0].Partitioner = Hash }, `Keep: hash and range partitioning need key columns`},
		{"keys without hash", func(_ *Builder, s *Spec) { s.Inputs[0].Keys = []string{"n"} }, `Keep: only hash and range partitioning take key columns`},
		{"custom without function", func(_ *Builder, s *Spec) { s.Inputs[0].Partitioner = Custom }, `Keep: custom and range partitioning need a function that places rows`},
		{"function without partitioning", func(_ *Builder, s *Spec) { s.Inputs[0].Partition = place }, `Keep: a function that places rows needs hash, range or custom partitioning`},
		{"broadcast data", func(_ *Builder, s *Spec) { s.Inputs[0].Partitioner = Broadcast }, `Keep: broadcast rows would be processed by every subtask: make it a side input`},
		{"side input by hash", func(_ *Builder, s *Spec) {
			s.Inputs[0].Side, s.Inputs[0].Partitioner = true, Hash
		}, `Keep: a side input is broadcast and takes no other partitioner`},
		{"two columns of a name", func(_ *Builder, s *Spec) {
			s.Schema = arrowrows.Schema(arrow.NewSchema([]arrow.Field{numberSchema.Field(0), numberSchema.Field(0)}, nil))
		}, `Keep: two columns are named "n"`},
		{"column without a name", func(_ *Builder, s *Spec) {
			s.Schema = arrowrows.Schema(arrow.NewSchema([]arrow.Field{{Type: arrow.PrimitiveTypes.Int64}}, nil))
		}, `Keep: a column has no name`},
		{"type that cannot be processed", func(_ *Builder, s *Spec) {
			s.Schema = arrowrows.Schema(arrow.NewSchema([]arrow.Field{{Name: "d", Type: &arrow.Decimal128Type{Precision: 5}}}, nil))
		}, `Keep: column "d": type decimal(5, 0) is not supported; write the column as float64`},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := ""
			got := buildFails(t, func(b *Builder) error {
				spec := keep(numbers(b, 3))
				test.spoil(b, &spec)
				site = here(1)
				d := b.Add(spec)
				require.True(t, d.Poisoned())
				// Operators on a poisoned dataset report nothing more.
				Collect(transform(d, "", square), "x")
				b.Add(Spec{Op: "Group", Inputs: []Port{{From: d, Partitioner: Hash, Keys: []string{"n"}}}})
				b.Add(Spec{Op: "Join", Inputs: []Port{{}, {From: d}}})
				require.Same(t, d, d.Named("label"))
				return nil
			})
			require.Equal(t, "job: "+site+": "+test.want, got)
		})
	}
}

func TestMisusesComeTogether(t *testing.T) {
	var sites []string
	ended := errors.New("no such model")
	_, err := BuildGraph(Define("several", func(b *Builder, _ struct{}) error {
		d := numbers(b, 3)
		sites = append(sites, here(1))
		Collect(d, "x")
		Collect(d, "x")
		Collect(d, "")
		sites = append(sites, here(-2), here(-1), here(1))
		b.Errorf("Map: column %q has\ntwo lines", "a")
		return ended
	}), struct{}{})
	var build *BuildError
	require.ErrorAs(t, err, &build)
	require.Equal(t, "several", build.Job)
	require.ErrorIs(t, err, ended)
	require.Equal(t, `job "several": 4 errors:
  `+sites[1]+`: Collect: the name "x" is taken by the result collected at `+sites[0]+`
  `+sites[2]+`: Collect: the result needs a name
  `+sites[3]+`: Map: column "a" has
  two lines
  no such model`, err.Error())
}

func TestManyMisusesAreCounted(t *testing.T) {
	got := buildFails(t, func(b *Builder) error {
		for i := range 25 {
			b.Errorf("mistake %d", i)
		}
		return nil
	})
	require.Contains(t, got, "job: 25 errors:")
	require.Contains(t, got, "mistake 19\n  and 5 more")
	require.NotContains(t, got, "mistake 20")
}

func TestCollectOfNil(t *testing.T) {
	site := ""
	got := buildFails(t, func(b *Builder) error {
		site = here(1)
		Collect(nil, "rows")
		return nil
	})
	require.Equal(t, "job: "+site+`: Collect "rows": the dataset is nil`, got)
}

func TestJobThatCannotBeRun(t *testing.T) {
	run := func(j *Job[struct{}]) error {
		_, err := Run(t.Context(), j, struct{}{})
		return err
	}
	require.EqualError(t, run(nil), "no job: engine.Define makes one")
	require.EqualError(t, run(Anonymous(nil)), "job has no function")
	require.EqualError(t, run(Define[struct{}]("x", nil)), `job "x" has no function`)
	nothing := func(*Builder, struct{}) error { return nil }
	require.EqualError(t, run(Define(" x", nothing)), `job " x": the name begins or ends with a space`)
	require.EqualError(t, run(Define("x\n\"", nothing)), `job "x\n\"": the name holds the character '\n'`)
	require.EqualError(t, run(Define("x", nothing)), `job "x": the job adds no operators, so there is nothing to run`)
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	for want, opt := range map[string]Option{
		"--shards is 100: want a power of two between 1 and 1048576":                                                                                       Shards(100),
		"--parallelism is -1: want at least 1, or 0 for one per processor":                                                                                 Parallelism(-1),
		"--parallelism is 129, but there are only 128 shards and a subtask needs one of its own: lower it to 128, or raise --shards to 256":                Parallelism(129),
		"--batch-rows is 0: want at least 1":                                                                                                               BatchRows(0),
		"--memory is -5 bytes: want at least 1, or 0 for a share of what there is":                                                                         MemoryBudget(-5),
		"--if-exists is Existing(7): want fail or replace":                                                                                                 IfExists(Existing(7)),
		"CheckResume after superstep 0: they count from 1":                                                                                                 CheckResume(0, 1),
		"CheckResume at parallelism 0: want 1 to 128, the number of shards":                                                                                CheckResume(1, 0),
		"CheckResume at parallelism 129: want 1 to 128, the number of shards":                                                                              CheckResume(1, 129),
		"CheckResume is for jobs that run in this process as a whole: leave out Workers and Cluster":                                                       func(c *config) { Workers(2)(c); CheckResume(1, 2)(c) },
		"--checkpoint-every is -1s: want a positive time or number of supersteps":                                                                          CheckpointEvery(-time.Second),
		"--checkpoint-every is -1 supersteps: want at least 1":                                                                                             CheckpointSupersteps(-1),
		"--checkpoint-every is both 1s and 2 supersteps: want one of them":                                                                                 func(c *config) { CheckpointEvery(time.Second)(c); CheckpointSupersteps(2)(c) },
		"--checkpoint-every is auto, and also a time or a number of supersteps: want one of them":                                                          func(c *config) { CheckpointAuto(time.Hour)(c); CheckpointSupersteps(2)(c) },
		"--mtbf is 0s: want a positive time":                                                                                                               CheckpointAuto(0),
		"--checkpoint-fail-after is -1s: want a positive time":                                                                                             CheckpointFailAfter(-time.Second),
		"--resume needs --checkpoint-dir, the directory with the checkpoints of the run to continue":                                                       Resume(true),
		"--checkpoint require: no state is saved that a queue could continue from: give --checkpoint-dir, or run on a cluster with --copies of at least 1": RequireCheckpoints(true),
		"--priority is for jobs on a cluster: say which with --cluster host:port":                                                                          Priority(0),
		"--priority is 6: want -5 to 5, where higher ones get slots first":                                                                                 Priority(6),
		"--checkpoint-every and --checkpoint-fail-after need --checkpoint-dir":                                                                             CheckpointFailAfter(time.Second),
		"--checkpoint-dir is gs://bucket/x: want a directory or s3://BUCKET/PREFIX":                                                                        CheckpointDir("gs://bucket/x"),
	} {
		_, err := Run(t.Context(), squares, squaresArgs{N: 3}, opt)
		require.EqualError(t, err, want)
	}
}

func TestPanicWhileBuilding(t *testing.T) {
	cause := errors.New("the cause")
	_, err := BuildGraph(Anonymous(func(b *Builder) error {
		b.Errorf("Map: first")
		panicking(cause)
		return nil
	}), struct{}{})
	var p *PanicError
	require.ErrorAs(t, err, &p)
	require.ErrorIs(t, err, cause)
	require.Contains(t, err.Error(), "Map: first")
	require.Contains(t, err.Error(), "the job function: panic: the cause\n")
	require.Contains(t, p.Frames[0], "engine.panicking (")
	require.Contains(t, p.Frames[0], "builder_test.go:")
	require.Contains(t, p.Frames[1], "engine.TestPanicWhileBuilding")
}

func panicking(v any) { panic(v) }

func TestBuildsThatDiffer(t *testing.T) {
	calls := 0
	clock := func() string { calls++; return time.Unix(int64(calls), 0).UTC().Format(time.TimeOnly) }
	_, err := Run(t.Context(), Define("stamped", func(b *Builder, _ struct{}) error {
		numbers(b, 3).Named("at " + clock())
		return nil
	}), struct{}{})
	var diff *DifferenceError
	require.ErrorAs(t, err, &diff)
	require.Contains(t, diff.Diff, "at 00:00:01")
	require.Contains(t, diff.Diff, "at 00:00:02")
	require.Contains(t, err.Error(), `job "stamped" builds differently each time`)
	for _, cause := range []string{"clock", "random", "map", "environment"} {
		require.Contains(t, err.Error(), cause)
	}
}

func TestFunctionsAreCompared(t *testing.T) {
	calls := 0
	other := func(_ *Context, n int64) (int64, error) { return -n, nil }
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		f := square
		if calls++; calls == 2 {
			f = other
		}
		transform(numbers(b, 3), "", f)
		return nil
	}), struct{}{})
	var diff *DifferenceError
	require.ErrorAs(t, err, &diff)
	require.Contains(t, diff.Diff, "engine.square kit_test.go:")
	require.Contains(t, diff.Diff, "engine.TestFunctionsAreCompared.func1 builder_test.go:")
}

func TestSecondBuildThatFails(t *testing.T) {
	calls := 0
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		numbers(b, 3)
		if calls++; calls == 2 {
			return os.ErrNotExist
		}
		return nil
	}), struct{}{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, err.Error(), "a second time from the same arguments")
	require.Contains(t, err.Error(), "the clock")
}

func TestFactsAreResolvedOnceAndReplayed(t *testing.T) {
	resolved, builds := 0, 0
	var seen []string
	graph, err := BuildGraph(Anonymous(func(b *Builder) error {
		builds++
		for _, name := range []string{"files", "schema", "files"} {
			value, err := b.Fact(name, func() (string, error) {
				resolved++
				return name + " at " + time.Unix(int64(resolved), 0).UTC().Format(time.TimeOnly), nil
			})
			require.NoError(t, err)
			seen = append(seen, value)
		}
		numbers(b, 3)
		return nil
	}), struct{}{})
	require.NoError(t, err)
	require.Equal(t, 2, builds)
	require.Equal(t, 2, resolved, "resolve must be called once per name, and not in the second build")
	once := []string{"files at 00:00:01", "schema at 00:00:02", "files at 00:00:01"}
	require.Equal(t, append(once, once...), seen)
	require.Equal(t, []plan.Fact{{Name: "files", Value: once[0]}, {Name: "schema", Value: once[1]}}, graph.Facts)
}

func TestFactThatFails(t *testing.T) {
	got := buildFails(t, func(b *Builder) error {
		if _, err := b.Fact("files", func() (string, error) { return "", os.ErrNotExist }); err != nil {
			b.Errorf("Read: %w", err)
		}
		return nil
	})
	require.Contains(t, got, "Read: file does not exist")
}

func TestFactAskedForInOneBuildOnly(t *testing.T) {
	calls := 0
	_, err := BuildGraph(Anonymous(func(b *Builder) error {
		numbers(b, 3)
		if calls++; calls == 2 {
			_, err := b.Fact("late", func() (string, error) { return "", nil })
			return err
		}
		return nil
	}), struct{}{})
	require.ErrorContains(t, err, `fact "late" was not asked for when the job was first built`)
}

func TestBuilderAfterItsFunctionReturned(t *testing.T) {
	var kept *Builder
	var d *Dataset
	_, err := BuildGraph(Anonymous(func(b *Builder) error {
		kept, d = b, numbers(b, 3)
		return nil
	}), struct{}{})
	require.NoError(t, err)
	nodes := len(kept.graph.Nodes)
	for _, late := range []func(){
		func() { numbers(kept, 3) },
		func() { transform(d, "", square) },
		func() { kept.AddQueue(QueueSpec{}) },
		func() { Collect(d, "x") },
		func() { kept.Errorf("late") },
	} {
		func() {
			defer func() {
				misuse, ok := recover().(Misuse)
				require.True(t, ok)
				require.Contains(t, misuse.Site, "_test.go:")
				require.ErrorContains(t, misuse, "is called when the job has been built")
			}()
			late()
		}()
	}
	d.Named("late")
	require.Len(t, kept.graph.Nodes, nodes)
	require.Empty(t, kept.misuses)
	require.Empty(t, kept.graph.Nodes[d.Node()].Name)
}

// TestWithin requires that misuses, failures and panics name the part of the job to which they
// belong, and that those outside any part name none.
func TestWithin(t *testing.T) {
	long := strings.Repeat("ü", longestPart) + "\xff"
	var inner, outer, after *Dataset
	graph, err := BuildGraph(Anonymous(func(b *Builder) error {
		b.Within("run 1", func() {
			b.Within("stage 2 (mean)", func() { inner = numbers(b, 1) })
			outer = numbers(b, 1)
			require.Panics(t, func() { b.Within("lost", func() { panic("here") }) })
			b.Within("bad \xff text", func() { after = numbers(b, 1) })
		})
		numbers(b, 1)
		b.Within(long, func() { numbers(b, 1) })
		return nil
	}), struct{}{})
	require.NoError(t, err)
	require.Equal(t, "run 1, stage 2 (mean)", graph.Nodes[inner.Node()].Within)
	require.Equal(t, "run 1", graph.Nodes[outer.Node()].Within)
	require.Equal(t, "run 1, bad \uFFFD text", graph.Nodes[after.Node()].Within)
	require.Empty(t, graph.Nodes[3].Within)
	require.Equal(t, strings.Repeat("ü", longestPart/2)+"…", graph.Nodes[4].Within)

	text := buildFails(t, func(b *Builder) error {
		b.Within("stage 0", func() { b.Add(Spec{Op: "Keep"}) })
		b.Errorf("Other: wrong")
		return nil
	})
	require.Contains(t, text, ": stage 0: Keep: ")
	require.Contains(t, text, ": Other: wrong")

	_, err = Run(t.Context(), Anonymous(func(b *Builder) error {
		b.Within("stage 0", func() {
			Collect(transform(numbers(b, 4), "", func(*Context, int64) (int64, error) { panic("too many") }), "n")
		})
		return nil
	}), struct{}{}, Shards(4), Parallelism(2), checkedAllocator(t))
	require.ErrorContains(t, err, ": stage 0: operator Transform")
	require.ErrorContains(t, err, "too many")
	var failed *task.TaskError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "stage 0", failed.Within)
}

func TestWhatBuilderTells(t *testing.T) {
	_, err := BuildGraph(Anonymous(func(b *Builder) error {
		require.Equal(t, 16, b.Shards())
		require.Equal(t, uint64(9), b.Seed())
		require.Equal(t, Replace, b.IfExists())
		require.True(t, b.CheckBroadcasts())
		require.NotNil(t, b.Allocator())
		d := numbers(b, 1)
		require.Same(t, b, d.Builder())
		require.Equal(t, NodeID(0), d.Node())
		require.True(t, d.Schema().Equal(arrowrows.Schema(numberSchema)))
		return nil
	}), struct{}{}, Local(), Shards(16), Seed(9), IfExists(Replace), CheckBroadcasts(true), nil)
	require.NoError(t, err)
}

func TestRefusedWithoutAReason(t *testing.T) {
	refuse := func(b *Builder) *Dataset {
		d := b.Poisoned("Scale")
		require.True(t, d.Poisoned())
		require.Equal(t, NodeID(-1), d.Node())
		require.Empty(t, arrowrows.Arrow(d.Schema()).Fields())
		Collect(transform(d, "", square), "x")
		return d
	}
	require.Equal(t, "job: Scale returned Builder.Poisoned without an error: it must call Builder.Errorf first", buildFails(t, func(b *Builder) error {
		numbers(b, 1) // the job is valid without the refused part
		refuse(b)
		return nil
	}))
	got := buildFails(t, func(b *Builder) error {
		refuse(b)
		b.Errorf("Scale: too large") // Errorf may also be called after Poisoned
		return nil
	})
	require.Contains(t, got, "Scale: too large")
	require.NotContains(t, got, "no reason")
}

func TestNodesOfTheGraph(t *testing.T) {
	site := ""
	place := func(Batch, int, int64, int, []int32) error { return nil }
	graph, err := BuildGraph(Anonymous(func(b *Builder) error {
		d, side := numbers(b, 3), numbers(b, 4)
		site = here(1)
		b.Add(Spec{
			Op: "Join", Name: "both", Single: true, Order: ShardTree, Schema: arrowrows.Schema(numberSchema),
			Attrs: []Attr{{Key: "how", Value: "left"}},
			Inputs: []Port{
				{From: d, Partitioner: Hash, Keys: []string{"n"}},
				{From: side, Side: true},
				{From: d, Partitioner: Custom, Partition: place, Func: square},
			},
			Func: square, Funcs: []any{nil, numberSource{}},
			Operator: func() Operator { return transformer{square} },
		})
		return nil
	}), struct{}{})
	require.NoError(t, err)
	squareID := funcIdentity(square)
	require.Equal(t, plan.Node{
		ID: 2, Op: "Join", Name: "both", Site: site, Single: true, Order: plan.ShardTree,
		Attrs:  []plan.Attr{{Key: "how", Value: "left"}},
		Schema: []plan.Column{{Name: "n", Type: "int64"}},
		Inputs: []plan.Input{
			{From: 0, Partitioner: plan.Hash, Keys: []string{"n"}},
			{From: 1, Partitioner: plan.Broadcast, Role: plan.Side},
			{From: 0, Partitioner: plan.Custom, Func: squareID},
		},
		Func: squareID + ", " + modulePath + "/engine.numberSource",
	}, graph.Nodes[2])
}
