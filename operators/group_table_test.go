package operators

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
)

// TestKeysOfOneHash requires that different keys with the same hash are different groups. It
// constructs such keys: xxh3 multiplies two factors, each of which is eight bytes of the key
// xored with bytes of a secret. If the first eight bytes equal the bytes of the secret, their
// factor is 0, so the next eight bytes do not affect the hash.
func TestKeysOfOneHash(t *testing.T) {
	type row struct{ Name []byte } // bytes, as these keys are not valid text
	type count struct {
		Name  []byte
		Count int64
	}
	const alike = "0123456\xde\xd4\x6d\xe9\x83\x90\x97\xdb" // in the encoded key, 9 bytes precede this text: the tag and the length
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
