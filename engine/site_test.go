package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackageOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"main.main":                   "main",
		"main.main.func1":             "main",
		"example.com/x/y.(*T).Method": "example.com/x/y",
		"example.com/x/y.Map[...]":    "example.com/x/y",
		"example.com/x/y.Map[go.shape.struct { example.com/z.A int }].func1": "example.com/x/y",
		"gopkg.in/yaml%2ev3.Unmarshal":                                       "gopkg.in/yaml%2ev3",
		"runtime.goexit":                                                     "runtime",
		"odd":                                                                "odd",
	} {
		require.Equal(t, want, packageOf(symbol), symbol)
	}
}

func TestUserFrames(t *testing.T) {
	ours := "github.com/superstep-ml/superstep"
	require.Equal(t, ours, modulePath)
	for _, test := range []struct {
		function, file string
		user           bool
	}{
		{"main.main", "/src/main.go", true},
		{"example.com/x.Build", "/src/x.go", true},
		{ours + "/examples/kmeans.build", "/src/main.go", true},
		{ours + "/tests.TestX", "/src/x.go", true},
		{ours + "/engine.(*Builder).Add", "/src/builder.go", false},
		{ours + "/engine.TestX", "/src/x_test.go", true},
		{ours + "/operators.Map[...]", "/src/map.go", false},
		{ours + "/operators/parquet.Read", "/src/read.go", false},
		{ours + "/algorithms/kmeans.Train", "/src/train.go", false},
		{ours + "/comqueue.New", "/src/queue.go", false},
		{ours + "/collective.X", "/src/x.go", false},
		{ours + "/shared.X", "/src/x.go", false},
		{ours + "/internal/batch.X", "/src/x.go", false},
		{ours + "-contrib/operators.Map", "/src/map.go", true},
		{"runtime.gopanic", "/go/panic.go", false},
		{"reflect.Value.Call", "/go/value.go", false},
		{"", "", false},
	} {
		require.Equal(t, test.user, isUserFrame(test.function, test.file), test.function)
	}
}

type callable struct{ factor int64 }

func (c *callable) apply(_ *Context, n int64) (int64, error) { return c.factor * n, nil }

func generic[T any](v T) func() T { return func() T { return v } }

type box[T any] struct{ V T }

func TestFunctionIdentity(t *testing.T) {
	pkg := modulePath + "/engine"
	require.Empty(t, funcIdentity(nil))
	require.Empty(t, funcIdentity((func())(nil)))

	require.Regexp(t, "^"+pkg+`\.square kit_test\.go:\d+$`, funcIdentity(square))

	at := here(1)
	closure := func() {}
	require.Equal(t, pkg+".TestFunctionIdentity.func1 "+at, funcIdentity(closure))

	bound := (&callable{2}).apply
	require.Equal(t, pkg+".(*callable).apply", funcIdentity(bound), "the identity of a method value must have no line, as the compiler generates its wrapper")
	require.Regexp(t, "^"+pkg+`\.\(\*callable\)\.apply site_test\.go:\d+$`, funcIdentity((*callable).apply))

	require.Equal(t, "*"+pkg+".callable", funcIdentity(&callable{2}))
	require.Equal(t, pkg+".box", funcIdentity(box[map[string]int]{}))
	require.Equal(t, "int", funcIdentity(3))

	// The symbol of a closure depends on what the compiler inlines, which is the same wherever
	// the same executable runs.
	inner := funcIdentity(generic(1))
	require.Regexp(t, `generic\.func\d+ site_test\.go:\d+$`, inner)
	require.NotContains(t, inner, "[")
	require.NotContains(t, funcIdentity(generic[string]), "[")

	require.Equal(t, funcIdentity(square)+", *"+pkg+".callable", funcIdentities(nil, square, nil, &callable{}))
}

func TestPlainSymbol(t *testing.T) {
	require.Equal(t, "x.Map.func1", plainSymbol("x.Map[go.shape.[]int,go.shape.map[string]int].func1"))
	require.Equal(t, "x.T.M", plainSymbol("x.T.M-fm"))
}

func TestSiteOnADeepStack(t *testing.T) {
	var deep func(n int) string
	deep = func(n int) string {
		if n == 0 {
			return strings.Repeat("x", 0) + userSite()
		}
		return deep(n - 1)
	}
	require.Regexp(t, `^site_test\.go:\d+$`, deep(300))
}
