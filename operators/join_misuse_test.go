package operators

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// manyTypes is a row with a column of each type that keys can have, and a column of a type that
// keys cannot have.
type manyTypes struct {
	I8  int8
	I64 int64
	U8  uint8
	U32 uint32
	U64 uint64
	F32 float32
	F64 float64
	T   string
	Raw []byte
	B   bool
	V   []float64
}

// TestKeysThatAreCompared joins by columns of each pair of types, and requires that the join is
// accepted exactly for the pairs in allowed.
func TestKeysThatAreCompared(t *testing.T) {
	allowed := map[string]string{
		"i8": "i8 i64 u8 u32", "i64": "i8 i64 u8 u32", "u8": "i8 i64 u8 u32 u64", "u32": "i8 i64 u8 u32 u64", "u64": "u8 u32 u64",
		"f32": "f32 f64", "f64": "f32 f64", "t": "t", "raw": "raw", "b": "b",
	}
	row := []manyTypes{{I8: 1, I64: 1, U8: 1, U32: 1, U64: 1, F32: 1, F64: 1, T: "1", Raw: []byte("1"), B: true, V: []float64{1}}}
	columns := []string{"i8", "i64", "u8", "u32", "u64", "f32", "f64", "t", "raw", "b"}
	semi := func(left, right string) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return SemiJoin(Select(FromSlice(b, row), left, "v"), FromSlice(b, row), On().Equal(left, right))
		}
	}
	for _, left := range columns {
		for _, right := range columns {
			if slices.Contains(strings.Fields(allowed[left]), right) {
				require.Len(t, outcome(t, semi(left, right), engine.Shards(testShards)), 2, "%s, %s", left, right)
			} else {
				requireMisuse(t, semi(left, right), "SemiJoin: the key \""+left+"\" is ", "\""+right+"\" is ", "WithColumn")
			}
		}
	}
}

func TestJoinMisuse(t *testing.T) {
	source := func(b *engine.Builder) *engine.Dataset { return FromSlice(b, flowers(3)) }
	pair := func(l, r *flower) flower { return *l }
	for _, c := range []struct {
		build func(d *engine.Dataset) *engine.Dataset
		words []string
	}{
		{func(d *engine.Dataset) *engine.Dataset { return Join(d, d, On(), Inner, pair) }, []string{"Join: no key is given"}},
		{func(d *engine.Dataset) *engine.Dataset { return Join(d, d, On("nam"), Inner, pair) }, nil},
		{func(d *engine.Dataset) *engine.Dataset { return SemiJoin(d, d, On().Equal("id", "nam")) },
			[]string{"SemiJoin: the right dataset", `did you mean "name"`}},
		{func(d *engine.Dataset) *engine.Dataset { return AntiJoin(d, d, On().Equal("nam", "id")) },
			[]string{"AntiJoin: the left dataset", `did you mean "name"`}},
		{func(d *engine.Dataset) *engine.Dataset { return AntiJoin(d, d, On().Equal("id", "size")) }, []string{"vector[2]"}},
		{func(d *engine.Dataset) *engine.Dataset { return SemiJoin(d, d, On().Equal("id", "name")) }, []string{`"id" is int64 on the left`, `"name" is utf8`}},
		{func(d *engine.Dataset) *engine.Dataset {
			return SemiJoin(d, d, On().Equal("id", "id").Equal("id", "id"))
		}, nil},
		{func(d *engine.Dataset) *engine.Dataset { return Join(d, d, On("id"), JoinKind(7), pair) }, []string{"JoinKind(7) is no kind of join"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return Join[flower, flower, flower](d, d, On("id"), Full, nil)
		}, []string{"Join: the function is nil"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return JoinErr(d, d, On("id"), Left, func(*flower, *struct{ Absent int }) (flower, error) { return flower{}, nil })
		}, []string{"JoinErr", `no column "absent"`}},
		{func(d *engine.Dataset) *engine.Dataset {
			return Join(d, d, On("id"), Left, func(*flower, *flower) chan int { return nil })
		}, []string{"Join", "chan int"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return CoGroup[flower, flower, flower](d, d, On("id"), nil)
		}, []string{"CoGroup: the function is nil"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return CoGroup(d, d, On("id", "name").Equal("name", "id"), func(*Group[flower], *Group[flower], func(flower)) error { return nil })
		}, nil},
		{func(d *engine.Dataset) *engine.Dataset { return Distinct(d) }, []string{"Distinct", "vector[2]"}},
		{func(d *engine.Dataset) *engine.Dataset { return Distinct(d, "id", "id") }, []string{`"id" is named twice`}},
		{func(d *engine.Dataset) *engine.Dataset { return Distinct(d, "nam") }, []string{`did you mean "name"`}},
		{func(d *engine.Dataset) *engine.Dataset {
			return MapLookup(d, d, nil, func(f flower, _ *Lookup[string, flower]) (flower, error) { return f, nil })
		}, []string{"MapLookup: the function that computes keys is nil"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return MapLookup(d, d, func(f flower) *int64 { return nil }, func(f flower, _ *Lookup[*int64, flower]) (flower, error) { return f, nil })
		}, []string{"keys of type *int64 cannot be looked up"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return FlatMapLookup[flower, string, flower, flower](d, d, func(f flower) string { return f.Name }, nil)
		}, []string{"FlatMapLookup: the function is nil"}},
	} {
		if c.words != nil {
			requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return c.build(source(b)) }, c.words...)
		} else { // the types of both sides are wrong, so both must be reported
			require.ErrorContains(t, runError(t, func(b *engine.Builder) *engine.Dataset { return c.build(source(b)) }), "2 errors")
		}
		requirePoisonSpreads(t, c.build)
		if err := runError(t, func(*engine.Builder) *engine.Dataset { return c.build(nil) }); err != nil {
			require.ErrorContains(t, err, "dataset is nil")
		}
	}
}

// TestOneSideIsNil requires an error that names the side that is nil.
func TestOneSideIsNil(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return SemiJoin(FromSlice(b, flowers(1)), nil, On("id"))
	}, "SemiJoin: the right dataset is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return SemiJoin(nil, FromSlice(b, flowers(1)), On("id"))
	}, "SemiJoin: the left dataset is nil")
}
