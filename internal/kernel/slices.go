package kernel

// The slice forms write to dst[i] the function of src[i], with the bits of the
// scalar form. dst and src have the same length and may be the same slice.

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

// function names an elementary function that has a form in assembly.
type function int

const (
	expOf function = iota
	logOf
	sigmoidOf
	softplusOf
	tanhOf
	functionCount
)

// apply runs a function over slices. Assembly takes groups up to the first that holds a special
// argument; that group goes through the scalar form, and so does the rest at the end.
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

// inGroups applies a function to groups of the given size and returns the rest.
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
			dst, src = dst[done:], src[done:] // all groups are done
			continue
		}
		next := done + size
		f.scalars(dst[done:next], src[done:next])
		dst, src = dst[next:], src[next:]
	}
	return dst, src
}

// groups calls the assembly for n arguments and returns how many it left over.
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

// wideGroups is groups for AVX-512.
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

// scalars runs the scalar form over slices of one length.
func (f function) scalars(dst, src []float64) {
	scalar := f.scalar()
	for i, v := range src {
		dst[i] = scalar(v)
	}
}

// scalar returns the scalar form.
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
