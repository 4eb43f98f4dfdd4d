package collective_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// value returns element i of a rank's input for sums. It lies between 1 and 101, so that sums
// over 100 ranks are exact in float32, in any order.
func value[T collective.Number](rank, i int) T { return T((rank*37+i*7)%101 + 1) }

// values returns elements lo to lo+n-1 of a rank's input.
func values[T collective.Number](rank, lo, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = value[T](rank, lo+i)
	}
	return x
}

// power returns element i of a rank's input for products. It is 1 or 2, so that products over
// 100 ranks are exact.
func power[T collective.Number](rank, i int) T { return T(1 + (rank*5+i*3)%7/4) }

// operator is an operator, together with inputs for which the result is exact in any order.
type operator[T collective.Number] struct {
	op     collective.Op[T]
	brings func(rank, i int) T
	join   func(a, b T) T
}

func operators[T collective.Number]() []operator[T] {
	return []operator[T]{
		{collective.Sum[T](), value[T], func(a, b T) T { return a + b }},
		{collective.Max[T](), value[T], func(a, b T) T { return max(a, b) }},
		{collective.Prod[T](), power[T], func(a, b T) T { return a * b }},
		{collective.Min[T](), value[T], func(a, b T) T { return min(a, b) }},
	}
}

// input returns the n elements of a rank's input.
func (o *operator[T]) input(rank, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = o.brings(rank, i)
	}
	return x
}

// expect compares elements [lo, lo+len(got)) of the fold over ranks [0, p) with the result of a
// loop over the ranks.
func (o *operator[T]) expect(p, lo int, got []T) error {
	for i, v := range got {
		want := o.brings(0, lo+i)
		for r := 1; r < p; r++ {
			want = o.join(want, o.brings(r, lo+i))
		}
		if v != want {
			return fmt.Errorf("element %d is %v, not %v", lo+i, v, want)
		}
	}
	return nil
}

// same returns nil if want and got are equal, and otherwise an error whose text begins with
// what.
func same[T collective.Number](what string, want, got []T) error {
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d elements, not %d", what, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("%s: element %d of %d is %v, not %v", what, i, len(want), got[i], want[i])
		}
	}
	return nil
}

// bitsOf returns the bits of x as text.
func bitsOf[T collective.Number](x []T) string {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return b.String()
}

// magnitudes has the powers of ten from 1e-8 to 1e16.
var magnitudes = func() (m [25]float64) {
	for i := range m {
		m[i] = math.Pow(10, float64(i-8))
	}
	return m
}()

// hostile returns random numbers whose sum has other bits in almost every other order of
// additions. Their magnitudes are from 1e-8 to 1e16, with both signs. For an integer type, each
// element consists of the low bits of the representation of such a number.
func hostile[T collective.Number](seed uint64, n int) []T {
	r := rand.New(rand.NewPCG(seed, 41))
	x := make([]T, n)
	for i := range x {
		v := (r.Float64() + 0.5) * magnitudes[r.IntN(len(magnitudes))]
		if r.IntN(2) == 0 {
			v = -v
		}
		switch any(x[i]).(type) {
		case float64, float32:
			x[i] = T(v)
		default:
			x[i] = T(int64(math.Float64bits(v)))
		}
	}
	return x
}

// named returns the names of the algorithms for a collective that support the parameters pr.
// The first name is "", with which the group chooses the algorithm.
func named(c program.Collective, pr algorithm.Params) []string {
	names := []string{""}
	for _, a := range algorithm.For(c) {
		if a.Supports(pr) == nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// arranged returns names, and additional variants of those algorithms that arrange p ranks in
// rows and columns or in groups.
func arranged(names []string, p int) []string {
	for d := 2; d <= p; d++ {
		if d <= 3 || d == p {
			names = append(names, fmt.Sprintf("hierarchical:%d", d))
		}
		if p%d != 0 || d == p {
			continue
		}
		names = append(names, fmt.Sprintf("torus:%dx%d", d, p/d), fmt.Sprintf("blueconnect:%dx%d", d, p/d))
		if q := p / d; q%2 == 0 && q > 2 {
			names = append(names, fmt.Sprintf("blueconnect:%dx%dx2", d, q/2))
		}
	}
	return names
}

// sample reports whether case k of a table is tested. With the build tag soak every case is
// tested, otherwise every n-th case.
func sample(k, n int) bool { return testsize.Soak || k%n == 0 }

// asked returns the options that request the named algorithm.
func asked(name string) []collective.Option {
	if name == "" {
		return nil
	}
	return []collective.Option{collective.WithAlgorithm(name)}
}
