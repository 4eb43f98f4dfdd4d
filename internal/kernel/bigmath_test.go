package kernel

import "math/big"

// The functions of this file compute reference values: e^x and log x to about 200 bits, by
// power series. They share no method with the functions under test.

const bigPrec = 260

func bf(x float64) *big.Float { return new(big.Float).SetPrec(bigPrec).SetFloat64(x) }

func bigNew() *big.Float { return new(big.Float).SetPrec(bigPrec) }

// bigExp returns e^x. It halves x until it is below 2^-20, sums the Taylor series, and squares
// the sum as often as it halved x.
func bigExp(x *big.Float) *big.Float {
	if x.Sign() == 0 {
		return bf(1)
	}
	shift := max(0, x.MantExp(nil)+20)
	prec := uint(bigPrec + shift)
	r := new(big.Float).SetPrec(prec).SetMantExp(x, -shift)
	sum := new(big.Float).SetPrec(prec).SetInt64(1)
	term := new(big.Float).SetPrec(prec).SetInt64(1)
	for i := int64(1); i < 20; i++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
	}
	for range shift {
		sum.Mul(sum, sum)
	}
	return bigNew().Set(sum)
}

// bigExpm1 returns e^x - 1. For small x it sums the Taylor series without the term 1.
func bigExpm1(x *big.Float) *big.Float {
	if x.Sign() == 0 || x.MantExp(nil) > -20 {
		return bigNew().Sub(bigExp(x), bf(1))
	}
	sum, term := bigNew(), bf(1)
	for i := int64(1); i < 20; i++ {
		term.Mul(term, x)
		term.Quo(term, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
	}
	return sum
}

// bigAtanh2 returns 2·atanh(z) for |z| ≤ 1/3 by its series.
func bigAtanh2(z *big.Float) *big.Float {
	w := bigNew().Mul(z, z)
	sum, power := bigNew(), bigNew().Set(z)
	for i := int64(1); i < 400; i += 2 {
		term := bigNew().Quo(power, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
		if power.Sign() == 0 || term.MantExp(nil) < sum.MantExp(nil)-bigPrec {
			break
		}
		power.Mul(power, w)
	}
	return sum.Mul(sum, bf(2))
}

var bigLn2 = bigAtanh2(bigNew().Quo(bf(1), bf(3)))

// bigLog returns log x as k·ln2 + 2·atanh((m-1)/(m+1)), where x = m·2^k and 2/3 ≤ m < 4/3.
func bigLog(x *big.Float) *big.Float {
	m := bigNew()
	k := x.MantExp(m)
	if f, _ := m.Float64(); f < 2.0/3 {
		m.SetMantExp(m, 1)
		k--
	}
	z := bigNew().Quo(bigNew().Sub(m, bf(1)), bigNew().Add(m, bf(1)))
	return bigNew().Add(bigAtanh2(z), bigNew().Mul(bf(float64(k)), bigLn2))
}

// bigLog1p returns log(1+x). For small x it computes 2·atanh(x/(2+x)).
func bigLog1p(x *big.Float) *big.Float {
	if x.Sign() == 0 || x.MantExp(nil) > -20 {
		return bigLog(new(big.Float).SetPrec(2*bigPrec).Add(x, bf(1)))
	}
	return bigAtanh2(bigNew().Quo(x, bigNew().Add(x, bf(2))))
}
