package shared

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// counter has an unexported field, and methods that encode it.
type counter struct{ n int }

func (c *counter) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeInt(int64(c.n)) }
func (c *counter) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	c.n, err = d.DecodeInt()
	return err
}

type losesDeep struct {
	All map[string][]*struct{ In [2]losesOne }
}

type losesOne struct {
	Kept int
	lost int
}

type losesNothing struct {
	_ int
	//lint:ignore U1000 msgpack reads the tag
	_msgpack struct{} `msgpack:",as_array"`
	Own      counter
	When     time.Time
	Big      *big.Int
	Cache    losesOne `msgpack:"-"`
	cache    int      `msgpack:"-"`
	Next     *losesNothing
	Any      any
}

// TestUnexportedFields requires that a key is unusable if its codec would lose unexported fields of its
// type, and that its error names the first one.
func TestUnexportedFields(t *testing.T) {
	for want, err := range map[string]error{
		`replicated key "k" (shared.losesOne): shared.Msgpack does not store the field lost of shared.losesOne, as it is unexported: export it`:   Replicated("k", Msgpack[losesOne]()).Err(),
		`per-shard key "k" (*shared.losesDeep): shared.Msgpack does not store the field lost of shared.losesOne, as it is unexported: export it`:  PerShard("k", Msgpack[*losesDeep]()).Err(),
		`replicated key "k" (map[shared.losesOne]int): shared.Msgpack does not store the field lost of shared.losesOne, as it is unexported: exp`: Replicated("k", Msgpack[map[losesOne]int]()).Err(),
	} {
		require.ErrorContains(t, err, want)
	}
	_, s := open(t, 1)
	require.ErrorIs(t, accessError(t, func() { Replicated("k", Msgpack[losesOne]()).Put(s.Subtask(0), losesOne{}) }), ErrKey)
	require.NoError(t, Replicated("k", Msgpack[losesNothing]()).Err())
	require.NoError(t, PerShard("k", Msgpack[*losesNothing]()).Err())
	require.NoError(t, Scratch[losesOne]("k").Err())
}

// TestLossesThatEncodeTheSame requires that an object is refused if its codec loses something that the
// bytes of the restored object do not show, because the codec loses the same again.
func TestLossesThatEncodeTheSame(t *testing.T) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	Replicated("narrow", Codec[[]float64](narrow{})).Put(o, []float64{0.5, 0.1})
	PerShard("empty", Codec[map[string]int](forgetful{})).Put(o, 3, map[string]int{"a": 1})
	Replicated("typeless", Msgpack[any]()).Put(o, any([]float64{1}))
	Replicated("fine", Msgpack[losesNothing]()).Put(o, losesNothing{Own: counter{3}, When: time.Unix(1, 0), Cache: losesOne{1, 2}, cache: 4, Big: big.NewInt(5), Next: &losesNothing{}})
	want := map[string]string{
		"narrow":   `the replicated object "narrow" cannot be restored: its codec restores another object: [1] has 0.10000000149011612 in place of 0.1`,
		"empty":    `the per-shard object "empty" of shard 3 cannot be restored: its codec restores another object: it has length 0 in place of length 1`,
		"typeless": `the replicated object "typeless" cannot be restored: its codec restores another object: it has one of type []interface {} in place of a value of type []float64`,
	}
	for _, e := range encoded(t, o) {
		if err := o.CheckCodecs([]Encoded{e}); want[e.Name] == "" {
			require.NoError(t, err, e.Name)
		} else {
			require.EqualError(t, err, want[e.Name])
		}
	}
}

// narrow stores float64s as float32s.
type narrow struct{}

func (narrow) Append(dst []byte, v []float64) ([]byte, error) {
	w := make([]float32, len(v))
	for i := range v {
		w[i] = float32(v[i])
	}
	return Float32s().Append(dst, w)
}

func (narrow) Decode(src []byte) ([]float64, error) {
	w, err := Float32s().Decode(src)
	v := make([]float64, len(w))
	for i := range w {
		v[i] = float64(w[i])
	}
	return v, err
}

// forgetful stores nothing.
type forgetful struct{}

func (forgetful) Append(dst []byte, v map[string]int) ([]byte, error) { return dst, nil }
func (forgetful) Decode([]byte) (map[string]int, error)               { return nil, nil }

type savedInner struct{ Weight, Rate float64 }

type savedState struct {
	Step  int
	Inner []map[string]savedInner
}

func restoreAs[T any](t *testing.T, data []byte) (v T, err *AccessError) {
	_, s := open(t, 1)
	o := s.Subtask(0)
	require.NoError(t, o.Restore([]Encoded{{"state", KindPerShard, 3, bytes.Clone(data)}}))
	key := PerShard("state", Msgpack[T]())
	defer func() {
		if p := recover(); p != nil {
			err = p.(*AccessError)
		}
	}()
	return key.Get(o, 3), nil
}

// TestFieldsThatHaveChanged requires that an object is not restored if its type has lost, renamed or got
// fields since it was saved, and that the error names them, unless tags say what becomes of them.
func TestFieldsThatHaveChanged(t *testing.T) {
	type inner struct{ Weight, Rate float64 }
	type renamedInner struct{ Weight, Speed float64 }
	type lessInner struct{ Weight float64 }
	type moreInner struct{ Weight, Rate, Decay, Momentum float64 }
	data, err := Msgpack[savedState]().Append(nil, savedState{2, []map[string]savedInner{nil, {"a": {1, 0.5}, "b": {2, 0.25}}}})
	require.NoError(t, err)

	same, failed := restoreAs[struct {
		Inner []map[string]inner
		Step  int64
	}](t, data)
	require.Nil(t, failed, "the order and widths of fields may change")
	require.Equal(t, inner{2, 0.25}, same.Inner[1]["b"])

	_, failed = restoreAs[struct {
		Step  int
		Inner []map[string]renamedInner
	}](t, data)
	require.ErrorIs(t, failed, ErrRestored)
	require.ErrorContains(t, failed, `unknown field "Rate"`)
	require.ErrorContains(t, failed, `per-shard key "state"`)

	_, failed = restoreAs[struct {
		Step  int
		Inner []map[string]lessInner
	}](t, data)
	require.ErrorContains(t, failed, `unknown field "Rate"`)

	_, failed = restoreAs[struct {
		Step  int
		Inner []map[string]moreInner
	}](t, data)
	require.ErrorIs(t, failed, ErrRestored)
	require.ErrorContains(t, failed, `there is no field "Decay" and no field "Momentum"`)

	tagged, failed := restoreAs[struct {
		Superstep int `msgpack:"Superstep,alias:Step"`
		Inner     []map[string]inner
		Added     []int `msgpack:",omitempty"`
	}](t, data)
	require.Nil(t, failed)
	require.Equal(t, 2, tagged.Superstep)
}
