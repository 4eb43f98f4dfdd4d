package kernel

// The slice forms write to dst[i] the function of src[i], with the bits of the
// scalar form. dst and src have the same length and may be the same slice.

// ExpTo sets dst[i] = [Exp](src[i]).
func ExpTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Exp(v)
	}
}

// LogTo sets dst[i] = [Log](src[i]).
func LogTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Log(v)
	}
}

// TanhTo sets dst[i] = [Tanh](src[i]).
func TanhTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Tanh(v)
	}
}

// SigmoidTo sets dst[i] = [Sigmoid](src[i]).
func SigmoidTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Sigmoid(v)
	}
}

// SoftplusTo sets dst[i] = [Softplus](src[i]).
func SoftplusTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Softplus(v)
	}
}

// Log1pTo sets dst[i] = [Log1p](src[i]).
func Log1pTo(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Log1p(v)
	}
}

// Expm1To sets dst[i] = [Expm1](src[i]).
func Expm1To(dst, src []float64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = Expm1(v)
	}
}
