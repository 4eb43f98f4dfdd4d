package kernel

import "unsafe"

// Leaves are rows of different shards, one per shard, which a step of stochastic gradient
// descent uses. Sums over shards are formed along a binary tree; the eight leaves that are
// processed together belong to the shards below one node of the tree. The functions of this
// file read the rows without copying them.

// LeafCount is the number of leaves that are processed at a time.
const LeafCount = 8

// DotLeaves sets out[i] = [Dot](rows[i], w), with the bits of Dot. Each row has the length of
// w.
func DotLeaves(rows *[LeafCount][]float64, w []float64, out *[LeafCount]float64) {
	dotLeaves(active, rows, w, out)
	OneNaN(out[:])
}

func dotLeaves(k dispatch, rows *[LeafCount][]float64, w []float64, out *[LeafCount]float64) {
	d := len(w)
	for i := range rows {
		_ = rows[i][:d]
	}
	if k.avx2 && d > 0 && d <= mostLeafFeatures {
		dotLeaves64(&rows[0], d, unsafe.SliceData(w), out)
		return
	}
	for i := 0; i < LeafCount; i += 4 {
		r0, r1, r2, r3 := rows[i][:d], rows[i+1][:d], rows[i+2][:d], rows[i+3][:d]
		var a0, a1, a2, a3 float64
		for j, c := range w {
			a0 += float64(r0[j] * c)
			a1 += float64(r1[j] * c)
			a2 += float64(r2[j] * c)
			a3 += float64(r3[j] * c)
		}
		out[i], out[i+1], out[i+2], out[i+3] = a0, a1, a2, a3
	}
}

// mostLeafFeatures bounds the features that one call of assembly reads.
const mostLeafFeatures = callSize / LeafCount

// FoldLeaves sets out[j] to the sum of the parts p(0,j) … p(7,j) of leaves, added pairwise:
//
//	((p0+p1) + (p2+p3)) + ((p4+p5) + (p6+p7))
//	p(i,j) = (coef[i]*rows[i][j] - coef[i]*mean[j]) * scale[j]
//
// If mean is nil, p(i,j) = coef[i]*rows[i][j] * scale[j]. The result is the gradient of a
// linear model with scaled features, for one row of each shard. mean and scale have the length
// of out; each row has at least that length.
func FoldLeaves(rows *[LeafCount][]float64, coef *[LeafCount]float64, mean, scale, out []float64) {
	foldLeaves(active, rows, coef, mean, scale, out)
}

func foldLeaves(k dispatch, rows *[LeafCount][]float64, coef *[LeafCount]float64, mean, scale, out []float64) {
	d := len(out)
	scale = scale[:d]
	for i := range rows {
		_ = rows[i][:d]
	}
	if mean != nil {
		mean = mean[:d]
	}
	for lo := 0; k.avx2 && lo < d; {
		n := min(d-lo, mostLeafFeatures)
		if mean == nil {
			foldLeaves64(&rows[0], 8*lo, n, coef, &scale[lo], &out[lo])
		} else {
			foldCentredLeaves64(&rows[0], 8*lo, n, coef, &mean[lo], &scale[lo], &out[lo])
		}
		if lo += n; lo == d {
			return
		}
	}
	r0, r1, r2, r3 := rows[0][:d], rows[1][:d], rows[2][:d], rows[3][:d]
	r4, r5, r6, r7 := rows[4][:d], rows[5][:d], rows[6][:d], rows[7][:d]
	c := *coef
	if mean == nil {
		for j, by := range scale {
			out[j] = ((float64(float64(c[0]*r0[j])*by) + float64(float64(c[1]*r1[j])*by)) +
				(float64(float64(c[2]*r2[j])*by) + float64(float64(c[3]*r3[j])*by))) +
				((float64(float64(c[4]*r4[j])*by) + float64(float64(c[5]*r5[j])*by)) +
					(float64(float64(c[6]*r6[j])*by) + float64(float64(c[7]*r7[j])*by)))
		}
		return
	}
	for j, by := range scale {
		m := mean[j]
		out[j] = ((offCentre(c[0], r0[j], m, by) + offCentre(c[1], r1[j], m, by)) +
			(offCentre(c[2], r2[j], m, by) + offCentre(c[3], r3[j], m, by))) +
			((offCentre(c[4], r4[j], m, by) + offCentre(c[5], r5[j], m, by)) +
				(offCentre(c[6], r6[j], m, by) + offCentre(c[7], r7[j], m, by)))
	}
}

// offCentre returns p(i,j) of FoldLeaves with a mean.
func offCentre(c, x, mean, by float64) float64 {
	return float64((float64(c*x) - float64(c*mean)) * by)
}

// FoldEight returns the sum of eight numbers, added pairwise as in FoldLeaves.
func FoldEight(p *[LeafCount]float64) float64 {
	return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
}
