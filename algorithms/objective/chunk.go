package objective

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// These are sizes of chunks in bytes. cacheBytes is roughly the size for dense features: half
// of a first-level cache. readBytes is the size for passes over dense rows with one margin: a
// part of the second-level cache. Such rows are processed from the second-level cache as fast
// as from the first-level cache, and long chunks are read faster from memory. sparseBytes is
// the size for sparse rows, which share the first-level cache with the coefficients that are
// looked up. (Of 16, 24, 36 and 48 KB, 36 was fastest, by 2 to 5 per cent.)
const (
	cacheBytes  = 24 << 10
	sparseBytes = 36 << 10
	readBytes   = 128 << 10
)

// chunkRows returns the number of rows in a chunk of the block b. read is the number for passes
// that read all rows in sequence; chunk is the number for all other passes.
func (e *evaluator) chunkRows(b *rows.Block) (chunk, read int) {
	row, bytes := 8*b.D, cacheBytes
	if b.Dense == nil && b.N > 0 {
		row, bytes = 12*(int(b.Sparse.RowPtr[b.N]-b.Sparse.RowPtr[0])/b.N+1), sparseBytes
	}
	chunk = min(max(bytes/max(row, 1)&^3, 4), 256)
	switch {
	case b.Dense == nil:
		return chunk, withLongLastChunk(b.N, chunk)
	case e.k > 1:
		return chunk, chunk
	}
	return chunk, min(max(readBytes/max(row, 1)&^3, 4), 512)
}

// withLongLastChunk returns the number of rows in a chunk if n rows are divided into chunks. It
// is between chunk−12 and chunk, and is chosen so that the last chunk is long. While the last
// chunk is summed, the first rows of the next shard are fetched into the cache.
func withLongLastChunk(n, chunk int) int {
	best := chunk
	for rows := chunk - 4; rows >= max(4, chunk-12); rows -= 4 {
		if (n-1)%rows > (n-1)%best {
			best = rows
		}
	}
	return best
}
