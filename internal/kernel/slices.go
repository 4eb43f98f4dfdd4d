package kernel

// The functions of this file set dst[i] to an elementary function of src[i], with the same bits
// as the function of one number. dst and src have the same length and may be the same slice.

// ExpTo sets dst[i] = [Exp](src[i]).
func ExpTo(dst, src []float64) { apply(active, expOf, dst, src) }

// LogTo sets dst[i] = [Log](src[i]).
func LogTo(dst, src []float64) { apply(active, logOf, dst, src) }

// SigmoidTo sets dst[i] = [Sigmoid](src[i]).
func SigmoidTo(dst, src []float64) { apply(active, sigmoidOf, dst, src) }

// SoftplusTo sets dst[i] = [Softplus](src[i]).
func SoftplusTo(dst, src []float64) { apply(active, softplusOf, dst, src) }

// TanhTo sets dst[i] = [Tanh](src[i]).
func TanhTo(dst, src []float64) { apply(active, tanhOf, dst, src) }

// function identifies an elementary function that has a form in assembly.
type function int

const (
	expOf function = iota
	logOf
	sigmoidOf
	softplusOf
	tanhOf
	functionCount
)

// apply sets each dst[i] to f of src[i]. The assembly processes groups of arguments up to the
// first group that holds a special argument. That group is left to the scalar form, and so are
// the arguments after the last full group.
func apply(k dispatch, f function, dst, src []float64) {
	src = src[:len(dst)]
	if k.avx512 {
		dst, src = f.inGroups(wide, dst, src)
	}
	if k.avx2 {
		dst, src = f.inGroups(quad, dst, src)
	}
	f.scalars(dst, src)
}

// inGroups applies f to all full groups of the given size, and returns the remaining elements.
func (f function) inGroups(size int, dst, src []float64) (dstLeft, srcLeft []float64) {
	for len(dst) >= size {
		n := min(len(dst), callSize)
		var done int
		if size == wide {
			done = n - f.wideGroups(&dst[0], &src[0], n)
		} else {
			done = n - f.groups(&dst[0], &src[0], n)
		}
		if n-done < size {
			dst, src = dst[done:], src[done:] // all full groups are done
			continue
		}
		next := done + size
		f.scalars(dst[done:next], src[done:next])
		dst, src = dst[next:], src[next:]
	}
	return dst, src
}

// groups calls the assembly of f for n arguments, and returns the number of arguments that it
// did not process.
func (f function) groups(dst, src *float64, n int) int {
	switch f {
	case expOf:
		return expGroups(dst, src, n, &expTable, &logTable)
	case logOf:
		return logGroups(dst, src, n, &expTable, &logTable)
	case sigmoidOf:
		return sigmoidGroups(dst, src, n, &expTable, &logTable)
	case softplusOf:
		return softplusGroups(dst, src, n, &expTable, &logTable)
	default:
		return tanhGroups(dst, src, n, &expTable, &logTable)
	}
}

// wideGroups is the AVX-512 form of groups.
func (f function) wideGroups(dst, src *float64, n int) int {
	switch f {
	case expOf:
		return wideExpGroups(dst, src, n, &expTable, &logTable)
	case logOf:
		return wideLogGroups(dst, src, n, &expTable, &logTable)
	case sigmoidOf:
		return wideSigmoidGroups(dst, src, n, &expTable, &logTable)
	case softplusOf:
		return wideSoftplusGroups(dst, src, n, &expTable, &logTable)
	default:
		return wideTanhGroups(dst, src, n, &expTable, &logTable)
	}
}

// scalars applies the scalar form of f to every element. dst and src have the same length.
func (f function) scalars(dst, src []float64) {
	scalar := f.scalar()
	for i, v := range src {
		dst[i] = scalar(v)
	}
}

// scalar returns the scalar form of f.
func (f function) scalar() func(float64) float64 {
	switch f {
	case expOf:
		return Exp
	case logOf:
		return Log
	case sigmoidOf:
		return Sigmoid
	case softplusOf:
		return Softplus
	default:
		return Tanh
	}
}
