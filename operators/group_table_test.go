package operators

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
)

// TestKeysOfOneHash: different keys with one hash are different groups. Such keys are easy to
// make: if eight bytes of a key equal the bytes of xxh3's secret that they are xored with, a
// factor is 0, and the next eight bytes have no effect.
func TestKeysOfOneHash(t *testing.T) {
	type row struct{ Name []byte } // text is UTF-8, which these keys are not
	type count struct {
		Name  []byte
		Count int64
	}
	const alike = "0123456\xde\xd4\x6d\xe9\x83\x90\x97\xdb" // and 9 bytes before: tag and length
	a, b, c := alike+"aaaaaaaa", alike+"bbbbbbbb", alike+"cccccccc"
	hash := func(text string) uint64 {
		key := append([]byte{4, byte(len(text)), 0, 0, 0, 0, 0, 0, 0}, text...)
		return xxh3.Hash(key)
	}
	require.Equal(t, hash(a), hash(b))
	require.Equal(t, hash(a), hash(c))

	var rows []row
	for _, name := range []string{a, b, a, c, b, a} {
		rows = append(rows, row{[]byte(name)})
	}
	got := groupOutcome[count](t, func(b *engine.Builder) *engine.Dataset {
		return FoldGroups(GroupBy(FromSlice(b, rows), "name"), func() int64 { return 0 },
			func(n int64, _ row) int64 { return n + 1 }, func(r row, n int64) count { return count{r.Name, n} })
	})
	require.Equal(t, []count{{[]byte(a), 3}, {[]byte(b), 2}, {[]byte(c), 1}}, got)
}
