package shared

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// number is a type whose values are compared although it is not predeclared.
type number float64

type embedded struct{ Inside int }

// thing has a field of each form that is compared, and of each that is not.
type thing struct {
	embedded
	Float   float64
	Float32 float32
	Int     int8
	Uint    uint16
	Complex complex128
	Bool    bool
	Text    string
	Floats  []float64
	Numbers []number
	Rows    [][]float64
	Fixed   [2]string
	Counts  map[string]int
	At      map[[2]int]float64
	ByPlace map[*int]int
	Next    *thing
	Any     any
	When    time.Time
	Left    int `msgpack:"-"`
	Func    func()
	Chan    chan int
	hidden  int
}

func full() *thing {
	return &thing{
		embedded: embedded{1}, Float: 0.1, Float32: 0.5, Int: -3, Uint: 4, Complex: 1i, Bool: true, Text: "text",
		Floats: []float64{1, math.NaN()}, Numbers: []number{1, 2}, Rows: [][]float64{{1}, {2, 3}}, Fixed: [2]string{"a", "b"},
		Counts: map[string]int{"a": 1, "b": 2}, At: map[[2]int]float64{{1, 2}: 3}, ByPlace: map[*int]int{new(int): 1}, Next: &thing{Text: "next"},
		Any: []int{1}, Left: 1, Func: func() {}, Chan: make(chan int), hidden: 1, When: time.Unix(1, 0),
	}
}

// TestFirstLoss requires that a difference anywhere in plain data is found and located, and that what is
// not plain data is not compared.
func TestFirstLoss(t *testing.T) {
	require.Nil(t, firstLoss(full(), full()))
	for want, change := range map[string]func(v *thing){
		".embedded.Inside has 2 in place of 1":                           func(v *thing) { v.Inside = 2 },
		".Float has 0.10000000149011612 in place of 0.1":                 func(v *thing) { v.Float = float64(float32(v.Float)) },
		".Float32 has 0 in place of 0.5":                                 func(v *thing) { v.Float32 = 0 },
		".Int has 3 in place of -3":                                      func(v *thing) { v.Int = 3 },
		".Uint has 5 in place of 4":                                      func(v *thing) { v.Uint = 5 },
		".Complex has (0+0i) in place of (0+1i)":                         func(v *thing) { v.Complex = 0 },
		".Bool has false in place of true":                               func(v *thing) { v.Bool = false },
		`.Text has "" in place of "text"`:                                func(v *thing) { v.Text = "" },
		".Floats has length 1 in place of length 2":                      func(v *thing) { v.Floats = v.Floats[:1] },
		".Floats[0] has -1 in place of 1":                                func(v *thing) { v.Floats[0] = -1 },
		".Floats[1] has 0 in place of NaN":                               func(v *thing) { v.Floats[1] = 0 },
		".Numbers[1] has 3 in place of 2":                                func(v *thing) { v.Numbers[1] = 3 },
		".Rows[1][1] has -0 in place of 3":                               func(v *thing) { v.Rows[1][1] = math.Copysign(0, -1) },
		`.Fixed[1] has "c" in place of "b"`:                              func(v *thing) { v.Fixed[1] = "c" },
		`.Counts["b"] has 3 in place of 2`:                               func(v *thing) { v.Counts["b"] = 3 },
		".Counts has length 1 in place of length 2":                      func(v *thing) { delete(v.Counts, "a") },
		`.Counts["a"] has none in place of an entry`:                     func(v *thing) { delete(v.Counts, "a"); v.Counts["c"] = 1 },
		".At[[1 2]] has 4 in place of 3":                                 func(v *thing) { v.At[[2]int{1, 2}] = 4 },
		".ByPlace has length 0 in place of length 1":                     func(v *thing) { clear(v.ByPlace) },
		".Next has nil in place of a value":                              func(v *thing) { v.Next = nil },
		`.Next.Text has "" in place of "next"`:                           func(v *thing) { v.Next.Text = "" },
		".Next.Next has a value in place of nil":                         func(v *thing) { v.Next.Next = v },
		".Any has one of type []int64 in place of a value of type []int": func(v *thing) { v.Any = []int64{1} },
		".Any[0] has 2 in place of 1":                                    func(v *thing) { v.Any = []int{2} },
		".Any has nil in place of a value":                               func(v *thing) { v.Any = nil },
	} {
		v := full()
		change(v)
		l := firstLoss(full(), v)
		require.NotNil(t, l, want)
		require.Equal(t, want, l.String())
	}
	v := full()
	v.Left, v.Func, v.Chan, v.hidden, v.When = 0, nil, nil, 0, time.Time{}
	require.Nil(t, firstLoss(full(), v), "what is not plain data must not be compared")
	require.Nil(t, firstLoss(&thing{}, &thing{Floats: []float64{}, Rows: [][]float64{}, Counts: map[string]int{}}), "nil must equal empty")
	require.Nil(t, firstLoss(map[float64]int{math.NaN(): 1}, map[float64]int{math.NaN(): 1}))
	require.Equal(t, "it has -0 in place of 0", firstLoss(0, math.Copysign(0, -1)).String())
}

// TestFirstLossOfCycles requires that the comparison ends for objects that point back to themselves.
func TestFirstLossOfCycles(t *testing.T) {
	cycle := func(text string) *thing {
		list := make([]any, 2)
		v := &thing{Next: &thing{Text: text, Any: list}}
		list[0], list[1] = map[string]any{"list": list}, v
		v.Next.Next = v
		return v
	}
	require.Nil(t, firstLoss(cycle("a"), cycle("a")))
	require.Equal(t, `.Next.Text has "b" in place of "a"`, firstLoss(cycle("a"), cycle("b")).String())
}

// BenchmarkFirstLoss compares a large slice of numbers, which must take no longer than to read its memory.
func BenchmarkFirstLoss(b *testing.B) {
	before, after := make([]float64, 1<<20), make([]float64, 1<<20)
	b.SetBytes(16 << 20)
	for b.Loop() {
		if firstLoss(before, after) != nil {
			b.Fatal("a difference")
		}
	}
}
