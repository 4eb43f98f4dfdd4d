package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// messages returns pointers to zero values of all types of messages, and of all types of which
// messages consist.
func messages() []any {
	return []any{
		new(Checkpoints), new(Origin), new(OriginQueue), new(Save), new(Precopy), new(PrecopyTo), new(Saved), new(Unwritten), new(SavepointRequest), new(SavepointReply), new(Parallelism), new(ScaleRequest), new(ScaleReply), new(DrainRequest), new(DrainReply),
		new(Ack), new(Beat), new(Cancel), new(CancelReply), new(CancelRequest), new(Cordon), new(CordonReply), new(CordonRequest), new(UncordonRequest), new(Avoidance), new(Checkpointed), new(Chunk), new(Collected),
		new(Commit), new(Committed), new(Kept), new(Credential), new(Delivered), new(Delivery), new(Deployment), new(Ended),
		new(Event), new(Exit), new(Failure), new(FetchRequest), new(Finished), new(FollowRequest),
		new(FailedCheckpoints), new(FromTaskManager), new(FromWorker), new(HasArtifactReply), new(HasArtifactRequest), new(Heartbeat),
		new(JobCheckpoints), new(JobInfo), new(JobSpec), new(Kill), new(Leave), new(Leaving), new(ListReply), new(ListRequest), new(LogChunk),
		new(LogsRequest), new(LostAttempt), new(Recovery), new(Restart), new(TaskManagerInfo), new(TaskManagersReply), new(TaskManagersRequest), new(Output), new(Overview),
		new(OverviewRequest), new(Placed), new(Platform), new(Prepare), new(Prepared), new(Progress),
		new(QueueProgress), new(Ready), new(Refused), new(Register), new(Registered), new(ReportedValue),
		new(Resolved), new(ResultInfo), new(ResultPiece), new(ResultRequest), new(ResultsReply), new(ResultsRequest), new(RunOptions), new(ShowRequest), new(SlotRange), new(Start), new(SubmitReply),
		new(SubmitRequest), new(ToTaskManager), new(ToWorker), new(EdgeProgress), new(Uncopied), new(UploadReply), new(VertexProgress),
		new(WorkerCommand), new(WorkerEvent), new(WorkerRef), new(WrittenCheckpoint),
	}
}

// TestMessagesAreAllTested requires that messages returns every exported struct type of the
// files that define messages.
func TestMessagesAreAllTested(t *testing.T) {
	var listed []string
	for _, m := range messages() {
		listed = append(listed, typeName(m))
	}
	var declared []string
	for _, file := range []string{"checkpoint.go", "client.go", "cordon.go", "job.go", "parallelism.go", "recovery.go", "restart.go", "taskmanager.go", "worker.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, is := spec.Type.(*ast.StructType); is && spec.Name.IsExported() {
					declared = append(declared, spec.Name.Name)
				}
			}
			return true
		})
	}
	require.ElementsMatch(t, declared, listed)
}

// fill sets v, with all nested fields, to random values. It makes slices, maps and pointers
// either nil or not empty.
func fill(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		at := time.Unix(rapid.Int64Range(-1<<36, 1<<36).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		v.Set(reflect.ValueOf(at))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "len"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Map:
		if n := rapid.IntRange(0, 3).Draw(t, "len"); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(t, key)
				fill(t, value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.Copysign(0, -1)})).Draw(t, "float"))
	default:
		t.Fatalf("fill has no case for %s: add one, and check that the type can be decoded", v.Type())
	}
}

// sameTimes changes times in v such that times of the same instant are equal.
func sameTimes(v reflect.Value) {
	if at, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(at.UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			sameTimes(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			sameTimes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			sameTimes(v.Index(i))
		}
	}
}

func TestMessagesComeBackAsTheyWent(t *testing.T) {
	for _, m := range messages() {
		typ := reflect.TypeOf(m).Elem()
		t.Run(typ.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				went, came := reflect.New(typ), reflect.New(typ)
				fill(t, went.Elem())
				data, err := Marshal(went.Interface())
				require.NoError(t, err)
				require.NoError(t, Unmarshal(data, came.Interface()))
				sameTimes(went)
				sameTimes(came)
				require.Equal(t, went.Interface(), came.Interface())
			})
		})
	}
}

func TestEmptyMessagesComeBackEmpty(t *testing.T) {
	for _, m := range messages() {
		data, err := Marshal(m)
		require.NoError(t, err)
		came := reflect.New(reflect.TypeOf(m).Elem())
		require.NoError(t, Unmarshal(data, came.Interface()))
		sameTimes(came)
		require.Equal(t, m, came.Interface())
	}
}

// TestFieldsHaveNames requires that the encoded name of a field is its Go name in snake case,
// and that it occurs only once in a message, including embedded structs.
func TestFieldsHaveNames(t *testing.T) {
	for _, m := range messages() {
		seen := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(m).Elem()) {
			name, options, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
			if f.Anonymous {
				require.Equal(t, "inline", options, "%s.%s", typeName(m), f.Name)
				continue
			}
			require.Equal(t, strings.ReplaceAll(strings.ToLower(f.Name), "_", ""), strings.ReplaceAll(name, "_", ""), "%s.%s", typeName(m), f.Name)
			require.False(t, seen[name], "%s must not have two fields %q", typeName(m), name)
			seen[name] = true
		}
	}
}

// TestFieldsOfTheFutureAreIgnored adds unknown fields of all kinds to every message, and
// requires that Unmarshal ignores them.
func TestFieldsOfTheFutureAreIgnored(t *testing.T) {
	future := map[string]any{
		"zz_nil": nil, "zz_number": -1.5, "zz_text": "x", "zz_bytes": make([]byte, 300), "zz_time": time.Unix(1, 2),
		"zz_list": []any{1, "two", map[string]any{"three": []any{3}}}, "zz_map": map[string]any{"a": map[string]any{}},
	}
	for _, m := range messages() {
		typ := reflect.TypeOf(m).Elem()
		rapid.Check(t, func(t *rapid.T) {
			went, came := reflect.New(typ), reflect.New(typ)
			fill(t, went.Elem())
			data, err := Marshal(went.Interface())
			require.NoError(t, err)
			fields := map[string]any{}
			require.NoError(t, msgpack.Unmarshal(data, &fields))
			for name, value := range future {
				fields[name] = value
			}
			data, err = msgpack.Marshal(fields)
			require.NoError(t, err)
			require.NoError(t, Unmarshal(data, came.Interface()))
			sameTimes(went)
			sameTimes(came)
			require.Equal(t, went.Interface(), came.Interface())
		})
	}
}

// TestFieldsOfThePastAreZero decodes messages without fields, which an older sender may send.
// It requires that the missing fields are zero.
func TestFieldsOfThePastAreZero(t *testing.T) {
	for _, m := range messages() {
		came := reflect.New(reflect.TypeOf(m).Elem())
		require.NoError(t, Unmarshal([]byte{0x80}, came.Interface()))
		require.Equal(t, m, came.Interface())
	}
}

// TestFailureText requires that failures have exactly these texts.
func TestFailureText(t *testing.T) {
	for want, f := range map[string]Failure{
		"it broke":      {Message: "it broke", Worker: -1, TaskManager: "tm0"},
		"it broke, too": {Message: "it broke, too", Worker: 1},
		"it broke (worker 1 on task manager tm0)":      {Message: "it broke", Worker: 1, TaskManager: "tm0"},
		"a\n- b\n+ c (worker 0 on task manager tm0)":   {Message: "a\n- b\n+ c\n", TaskManager: "tm0"},
		"the last line ends the message, not the text": {Message: "the last line ends the message, not the text\n", Worker: -1},
	} {
		require.Equal(t, want, f.Error())
	}
}
