package checkpoint

import (
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
)

// TestLoadHoldsNoPieces requires that a Journal does not keep the pieces of the checkpoint that it has
// loaded, which may be large.
func TestLoadHoldsNoPieces(t *testing.T) {
	store, err := OpenDir(disk.OS(), t.TempDir())
	require.NoError(t, err)
	data := make([]byte, 16<<20)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(data)
	var pieces iter.Seq2[[]byte, error] = func(yield func([]byte, error) bool) { _ = yield([]byte("head"), nil) && yield(data, nil) }
	j, err := Open(t.Context(), store, Run{Job: "j"})
	require.NoError(t, err)
	_, _, err = j.Write(t.Context(), []State{{Queue: "q", Superstep: 1, Pieces: pieces}})
	require.NoError(t, err)
	data = nil
	j, err = Open(t.Context(), store, Run{Job: "j"})
	require.NoError(t, err)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc >> 20
	}
	before := heap()
	_, _, err = j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Less(t, heap(), before+8, "MiB; the checkpoint is not referred to any more")
	runtime.KeepAlive(j)
	require.NoError(t, store.Close())
}
