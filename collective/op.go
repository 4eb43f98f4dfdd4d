package collective

import "math"

// Number is an element type that collectives reduce.
type Number interface {
	float64 | float32 | int64 | int32 | uint8
}

// opKind says which reduction an Op is. The zero value is no operator, so that
// a forgotten one is an error and not silently a sum.
type opKind uint8

const (
	opNone opKind = iota
	opSum
	opProd
	opMax
	opMin
	opUser
)

// Op is the elementwise operator of a reduction. It must be associative in the
// caller's eyes; it need not be commutative, for every executor of this
// package keeps the order of operands: the left operand always comes from the
// lower shard, or the lower rank. Where the result of a reduction of floats is not a
// number, it is one and the same NaN, that of math.NaN, whatever was brought and
// whichever operator was applied. Ops are values: copy them freely.
type Op[T Number] struct {
	kind        opKind
	name        string
	commutative bool
	identity    T
	fold        func(dst, src []T)
}

// Sum adds. Integers wrap around. An empty sum is 0.
func Sum[T Number]() Op[T] { return Op[T]{kind: opSum, name: "sum", commutative: true} }

// Prod multiplies. Integers wrap around. An empty product is 1.
func Prod[T Number]() Op[T] {
	return Op[T]{kind: opProd, name: "prod", commutative: true, identity: 1}
}

// Max takes the larger; a NaN on either side gives NaN, and +0 is above −0. An
// empty maximum is the least value of the type (−Inf for floats).
func Max[T Number]() Op[T] {
	return Op[T]{kind: opMax, name: "max", commutative: true, identity: leastOf[T]()}
}

// Min takes the smaller; a NaN on either side gives NaN, and −0 is below +0. An
// empty minimum is the greatest value of the type (+Inf for floats).
func Min[T Number]() Op[T] {
	return Op[T]{kind: opMin, name: "min", commutative: true, identity: greatestOf[T]()}
}

// UserOp is an operator of the caller's: fold does dst[i] = dst[i] ∘ src[i] for
// all i of two slices of equal length, where dst holds the left operand. It must
// treat each element by itself, for it is given arbitrary pieces of the buffers;
// it keeps neither slice, writes only dst, and may be called by several
// goroutines at once. The name stands in errors and records, and ranks compare
// it to find out whether they mean the same operator. The result of a reduction
// to which nobody contributed is 0 everywhere; see WithIdentity.
func UserOp[T Number](name string, commutative bool, fold func(dst, src []T)) Op[T] {
	return Op[T]{kind: opUser, name: name, commutative: commutative, fold: fold}
}

// WithIdentity returns the operator with v as the value of a reduction to which
// nobody contributed. It takes part in nothing else: absent contributions are
// left out, never replaced by v.
func (o Op[T]) WithIdentity(v T) Op[T] {
	o.identity = v
	return o
}

// Name is "sum", "prod", "max", "min", or what the user called it.
func (o Op[T]) Name() string { return o.name }

// Commutative says whether operands may change places without changing the
// value. Nothing here makes use of it; generators that cannot keep rank order
// refuse operators for which it is false.
func (o Op[T]) Commutative() bool { return o.commutative }

// Identity is the result of a reduction to which nobody contributed.
func (o Op[T]) Identity() T { return o.identity }

// leastOf is the identity of the maximum.
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

// greatestOf is the identity of the minimum.
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

// dataType names an element type in headers, errors and records.
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

// typeOf gives the data type and its size in bytes.
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
