package enum_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
)

type taste int

var tastes = enum.Names[taste]{Type: "Taste", What: "taste", Names: []string{"sweet", "sour"}}

func (v taste) String() string                   { return tastes.String(v) }
func (v taste) MarshalText() ([]byte, error)     { return tastes.Text(v) }
func (v *taste) UnmarshalText(text []byte) error { return tastes.Parse(v, text) }

func TestNames(t *testing.T) {
	for v, want := range map[taste]string{0: `"sweet"`, 1: `"sour"`} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.Equal(t, want, `"`+v.String()+`"`)
		var back taste
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, v, back)
	}
	for v, want := range map[taste]string{-1: "Taste(-1)", 2: "Taste(2)"} {
		require.Equal(t, want, v.String())
		_, err := v.MarshalText()
		require.EqualError(t, err, want+" is not one of the package's constants")
	}
	v := taste(1)
	require.EqualError(t, v.UnmarshalText([]byte("Sweet")), `unknown taste "Sweet": want one of sweet, sour`)
	require.Equal(t, taste(1), v)
}

func TestCheck(t *testing.T) {
	require.Empty(t, enum.Check(taste(0), taste(1)))
	errs := enum.Check(taste(0), taste(7), taste(1), taste(-3))
	require.Len(t, errs, 2)
	require.ErrorContains(t, errs[0], "Taste(7)")
	require.ErrorContains(t, errs[1], "Taste(-3)")
}
