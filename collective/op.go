package collective

import "math"

// Number is an element type that collectives reduce.
type Number interface {
	float64 | float32 | int64 | int32 | uint8
}

// opKind identifies the operator of an Op. The zero value is not an operator, so that a missing
// Op is an error and not a sum.
type opKind uint8

const (
	opNone opKind = iota
	opSum
	opProd
	opMax
	opMin
	opUser
)

// Op is the elementwise operator of a reduction. The caller must accept any grouping of
// operands, as if it were associative. The operator need not be commutative: every executor of
// this package keeps the order of operands, and the left operand always comes from the lower
// shard or rank. Every NaN in the result of a reduction has the bits of math.NaN, for all
// inputs and operators. Ops are values and may be copied.
type Op[T Number] struct {
	kind        opKind
	name        string
	commutative bool
	identity    T
	fold        func(dst, src []T)
}

// Sum returns the operator that adds. Integers wrap around. An empty sum is 0.
func Sum[T Number]() Op[T] { return Op[T]{kind: opSum, name: "sum", commutative: true} }

// Prod returns the operator that multiplies. Integers wrap around. An empty product is 1.
func Prod[T Number]() Op[T] {
	return Op[T]{kind: opProd, name: "prod", commutative: true, identity: 1}
}

// Max returns the operator that takes the larger operand. A NaN in either operand gives NaN,
// and +0 is larger than −0. An empty maximum is the least value of the type (−Inf for floats).
func Max[T Number]() Op[T] {
	return Op[T]{kind: opMax, name: "max", commutative: true, identity: leastOf[T]()}
}

// Min returns the operator that takes the smaller operand. A NaN in either operand gives NaN,
// and −0 is smaller than +0. An empty minimum is the greatest value of the type (+Inf for
// floats).
func Min[T Number]() Op[T] {
	return Op[T]{kind: opMin, name: "min", commutative: true, identity: greatestOf[T]()}
}

// UserOp returns an operator that the caller defines. fold computes dst[i] = dst[i] ∘ src[i]
// for all i of two slices of equal length; dst holds the left operand. fold is called with
// arbitrary pieces of the buffers, so it must treat each element by itself. It writes only dst
// and keeps neither slice. Several goroutines may call fold at the same time. The name is used
// in errors and run records, and ranks compare it to check that they use the same operator. The
// result of a reduction without contributions is 0 everywhere; see WithIdentity.
func UserOp[T Number](name string, commutative bool, fold func(dst, src []T)) Op[T] {
	return Op[T]{kind: opUser, name: name, commutative: commutative, fold: fold}
}

// WithIdentity returns the operator with v as the result of a reduction without contributions.
// v is not used in any other case: absent contributions are left out and not replaced by v.
func (o Op[T]) WithIdentity(v T) Op[T] {
	o.identity = v
	return o
}

// Name returns "sum", "prod", "max", "min", or the name given to UserOp.
func (o Op[T]) Name() string { return o.name }

// Commutative reports whether the two operands may be swapped without changing the value. An
// algorithm that does not keep the order of ranks refuses operators that do not commute.
func (o Op[T]) Commutative() bool { return o.commutative }

// Identity returns the result of a reduction without contributions.
func (o Op[T]) Identity() T { return o.identity }

// leastOf returns the identity of the maximum: the least value of the type.
func leastOf[T Number]() T {
	var v T
	switch p := any(&v).(type) {
	case *float64:
		*p = math.Inf(-1)
	case *float32:
		*p = float32(math.Inf(-1))
	case *int64:
		*p = math.MinInt64
	case *int32:
		*p = math.MinInt32
	case *uint8:
		*p = 0
	}
	return v
}

// greatestOf returns the identity of the minimum: the greatest value of the type.
func greatestOf[T Number]() T {
	var v T
	switch p := any(&v).(type) {
	case *float64:
		*p = math.Inf(1)
	case *float32:
		*p = float32(math.Inf(1))
	case *int64:
		*p = math.MaxInt64
	case *int32:
		*p = math.MaxInt32
	case *uint8:
		*p = math.MaxUint8
	}
	return v
}

// dataType identifies an element type in headers, errors and records.
type dataType uint8

const (
	noType dataType = iota
	typeFloat64
	typeFloat32
	typeInt64
	typeInt32
	typeUint8
	numTypes
)

var typeNames = [numTypes]string{"", "float64", "float32", "int64", "int32", "uint8"}

func (d dataType) String() string { return typeNames[d] }

// typeOf returns the data type of T and the size of an element in bytes.
func typeOf[T Number]() (dataType, int) {
	var v *T
	switch any(v).(type) {
	case *float64:
		return typeFloat64, 8
	case *float32:
		return typeFloat32, 4
	case *int64:
		return typeInt64, 8
	case *int32:
		return typeInt32, 4
	default:
		return typeUint8, 1
	}
}
