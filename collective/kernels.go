package collective

// kernels holds one function per built-in operator for one element type, each
// doing dst[i] = a[i] ∘ b[i] over slices of equal length, where dst may be a or
// b itself. It is resolved once per AllReducer, because taking the value of a
// generic function inside generic code allocates.
type kernels[T Number] [opUser]func(dst, a, b []T)

// kernelsOf gives the table of an element type.
func kernelsOf[T Number]() kernels[T] {
	return kernels[T]{
		opSum:  addTo[T],
		opProd: mulTo[T],
		opMax:  maxTo[T],
		opMin:  minTo[T],
	}
}

func addTo[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func mulTo[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func maxTo[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func minTo[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}
