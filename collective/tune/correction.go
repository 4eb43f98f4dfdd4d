package tune

import (
	"math/bits"

	"github.com/superstep-ml/superstep/collective/program"
)

// Correction is a measured error of the model for one algorithm, number of ranks and size.
// Factor is the ratio of the measured time to the predicted time.
type Correction struct {
	Collective program.Collective
	Algorithm  string
	Ranks      int
	Bytes      int
	Factor     float64
}

// correction returns the factor for the predicted time of an algorithm. Between two measured
// sizes, the factor is interpolated linearly in the octaves of the size. Outside of the
// measured sizes, it is the factor of the nearest measured size. It is 1 if no size was
// measured.
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

// octaves returns the number of octaves from 1 to a size, with linear interpolation within the
// last octave. The result is close to the binary logarithm, and has the same bits on every
// processor.
func octaves(bytes int) float64 {
	n := bits.Len(uint(max(bytes, 1))) - 1
	return float64(n) + float64(max(bytes, 1)-1<<n)/float64(uint64(1)<<n)
}
