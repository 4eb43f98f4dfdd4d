package kernel

import "math"

// SoftmaxTo writes the probabilities of classes to dst, whose margins are src: e^x divided by
// the sum of all, each less the largest margin, so that nothing overflows. It returns that margin
// and the sum. dst may be src.
func SoftmaxTo(dst, src []float64) (top, sum float64) {
	top = math.Inf(-1)
	for _, x := range src {
		top = max(top, x)
	}
	for c, x := range src {
		dst[c] = Exp(x - top)
		sum += dst[c]
	}
	for c := range dst {
		dst[c] /= sum
	}
	return top, sum
}
