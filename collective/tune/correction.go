package tune

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Correction is what the model gets wrong about one algorithm at one size, as
// measured: the time it took over the price it has.
type Correction struct {
	Collective program.Collective
	Algorithm  string
	Ranks      int
	Bytes      int
	Factor     float64
}

// correction is the factor for a candidate: between sizes that were measured by their
// distance in octaves, beyond them that of the nearest, 1 where nothing was.
func (t *Tuner) correction(q Query, algorithm string) float64 {
	at := octaves(q.Bytes)
	below, above := Correction{Bytes: -1}, Correction{Bytes: -1}
	for _, c := range t.Corrections {
		if c.Collective != q.Collective || c.Algorithm != algorithm || c.Ranks != q.Params.P {
			continue
		}
		if c.Bytes <= q.Bytes && c.Bytes > below.Bytes {
			below = c
		}
		if c.Bytes >= q.Bytes && (above.Bytes < 0 || c.Bytes < above.Bytes) {
			above = c
		}
	}
	switch {
	case below.Bytes < 0 && above.Bytes < 0:
		return 1
	case below.Bytes < 0:
		return above.Factor
	case above.Bytes < 0 || above.Bytes == below.Bytes:
		return below.Factor
	}
	lo, hi := octaves(below.Bytes), octaves(above.Bytes)
	share := (at - lo) / (hi - lo)
	return below.Factor + float64(share*(above.Factor-below.Factor))
}

// octaves counts the octaves up to a size, with its place within the last: close to
// the binary logarithm, and the same on every processor.
func octaves(bytes int) float64 {
	n := bits.Len(uint(max(bytes, 1))) - 1
	return float64(n) + float64(max(bytes, 1)-1<<n)/float64(uint64(1)<<n)
}
