package kernel

// Thresholds computes the scores of the thresholds of a feature one after the other and keeps
// the best. The sums of gradients and hessians left of the current threshold are G and H; the
// sums right of it are the totals minus G and H. The score of a threshold is the value of
//
//	(G·UnitG)² / (H·UnitH + Lambda)
//
// for the left side plus its value for the right side. A threshold is eligible only if, on each
// side, G and H are not both 0, H·UnitH is at least Least and the divisor is positive. Among
// equal scores the first is kept.
type Thresholds struct { // the assembly uses the offsets of the fields
	G, H          int64 // sums of the bins so far
	AllG, AllH    int64
	UnitG, UnitH  float64
	Lambda, Least float64
	Score         float64 // best score so far; initially the score to exceed
	Place         int     // number of the threshold with that score; unchanged if no threshold exceeds the initial Score
}

// Add adds a bin with sums g and h, and scores the threshold after the bin, which has number
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

// Scan calls Add for each consecutive pair of sums. The threshold after pair i has the number
// first+i.
func (t *Thresholds) Scan(sums []int64, first int) { t.scan(active, sums, first) }

func (t *Thresholds) scan(k dispatch, sums []int64, first int) {
	if n := len(sums) / 16 * 8; k.avx512 && n > 0 {
		t.scanWide(sums, n, first)
		sums, first = sums[2*n:], first+n
	}
	for i := 0; i+1 < len(sums); i += 2 {
		if i == 0 || sums[i]|sums[i+1] != 0 { // a bin of zeros gives the same score as the bin before
			t.Add(sums[i], sums[i+1], first+i/2)
		}
	}
}

// scanWide scans n bins in assembly; n is a multiple of eight.
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

// SumPairs returns the sum g of the first elements of all consecutive pairs, the sum h of the
// second elements, and whether any element is not 0.
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
