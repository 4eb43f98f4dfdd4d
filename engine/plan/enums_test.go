package plan

import (
	"encoding"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEnums tests all values of all enumerations, and the values just below and above them.
func TestEnums(t *testing.T) {
	type enum interface {
		fmt.Stringer
		encoding.TextMarshaler
		Valid() bool
	}
	for _, c := range []struct {
		kind  enum
		last  int // the last declared constant, which is independent of the tables of names
		names string
	}{
		{Partitioner(0), int(BySubtask), "[forward rebalance hash range broadcast custom by-subtask]"},
		{Role(0), int(Feedback), "[data side control feedback]"},
		{StageKind(0), int(Communicate), "[none queue-init compute send sum recv criterion queue-close repeat-begin repeat-end communicate]"},
		{Reduction(0), int(RankTree), "[none shard-tree rank-tree]"},
		{Mode(0), int(Materialised), "[pipelined materialised]"},
	} {
		typ := reflect.TypeOf(c.kind)
		t.Run(typ.Name(), func(t *testing.T) {
			var names []string
			for v := -1; v <= c.last+1; v++ {
				e := reflect.ValueOf(v).Convert(typ).Interface().(enum)
				text, err := e.MarshalText()
				if v < 0 || v > c.last {
					require.False(t, e.Valid())
					require.Error(t, err)
					require.Contains(t, e.String(), fmt.Sprintf("(%d)", v))
					continue
				}
				require.True(t, e.Valid())
				require.NoError(t, err)
				require.Equal(t, e.String(), string(text))
				names = append(names, e.String())
				back := reflect.New(typ)
				require.NoError(t, back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text))
				require.Equal(t, e, back.Elem().Interface())
			}
			require.Equal(t, c.names, fmt.Sprint(names))
			for _, bad := range []string{"", "Forward", "0", "forward "} {
				back := reflect.New(typ)
				require.Error(t, back.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(bad)))
				require.True(t, back.Elem().IsZero(), "UnmarshalText must not modify the value if it fails")
			}
		})
	}
}
