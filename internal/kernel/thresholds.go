package kernel

// Thresholds scores the thresholds of a feature one behind the other and keeps the best.
// Left of a threshold are the sums of gradients and hessians G and H, right of it what they
// leave of all rows. A threshold is worth
//
//	(G·UnitG)² / (H·UnitH + Lambda)
//
// left of it plus the same right of it, if on both sides the sums are not both 0, the hessian
// is not below Least and the divisor is positive; else it does not count. Of equal ones the
// first is kept.
type Thresholds struct { // the assembly knows its fields
	G, H          int64 // of the bins so far
	AllG, AllH    int64
	UnitG, UnitH  float64
	Lambda, Least float64
	Score         float64 // of the best so far, or what it must exceed
	Place         int     // of the best, in the numbering of the caller; as it was where there is none
}

// Add goes on behind a bin with sums g and h and tries the threshold there, which is number
// place.
func (t *Thresholds) Add(g, h int64, place int) {
	t.G, t.H = t.G+g, t.H+h
	g, h = t.G, t.H
	rg, rh := t.AllG-g, t.AllH-h
	hl, hr := float64(float64(h)*t.UnitH), float64(float64(rh)*t.UnitH)
	if hl < t.Least || hr < t.Least || !(hl+t.Lambda > 0) || !(hr+t.Lambda > 0) || g|h == 0 || rg|rh == 0 {
		return
	}
	gl, gr := float64(float64(g)*t.UnitG), float64(float64(rg)*t.UnitG)
	if score := float64(gl*gl)/(hl+t.Lambda) + float64(gr*gr)/(hr+t.Lambda); score > t.Score {
		t.Score, t.Place = score, place
	}
}

// Scan is Add for bins whose pairs of sums stand one behind the other, of which first is the
// number of the first one's threshold.
func (t *Thresholds) Scan(sums []int64, first int) { t.scan(active, sums, first) }

func (t *Thresholds) scan(k dispatch, sums []int64, first int) {
	if n := len(sums) / 16 * 8; k.avx512 && n > 0 {
		t.scanWide(sums, n, first)
		sums, first = sums[2*n:], first+n
	}
	for i := 0; i+1 < len(sums); i += 2 {
		if i == 0 || sums[i]|sums[i+1] != 0 { // else it is worth what the one before is
			t.Add(sums[i], sums[i+1], first+i/2)
		}
	}
}

// scanWide scans n bins, a multiple of eight.
func (t *Thresholds) scanWide(sums []int64, n, first int) {
	var scores [8]float64
	var places [8]int64
	for ; n > 0; first += callSize {
		step := min(n, callSize)
		if scanThresholds(&t.G, &sums[0], step, &scores[0], &places[0]) {
			at := -1
			for i, v := range scores {
				if places[i] >= 0 && (v > t.Score || v == t.Score && at >= 0 && int(places[i]) < at) {
					t.Score, at = v, int(places[i])
				}
			}
			t.Place = first + at
		}
		sums, n = sums[2*step:], n-step
	}
}

// SumPairs returns the sums of pairs that stand one behind the other, and whether any of them
// is not 0.
func SumPairs(pairs []int64) (g, h int64, some bool) { return sumPairs(active, pairs) }

func sumPairs(k dispatch, pairs []int64) (g, h int64, some bool) {
	any := int64(0)
	for k.avx2 && len(pairs) >= 8 {
		var sums [3]int64
		n := min(len(pairs)&^7, callSize)
		sumOfPairs(&pairs[0], n, &sums[0])
		g, h, any, pairs = g+sums[0], h+sums[1], any|sums[2], pairs[n:]
	}
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		g, h, any = g+pairs[0], h+pairs[1], any|pairs[0]|pairs[1]
	}
	return g, h, any != 0
}
