package evaluate

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// devianceState has two sums of deviances: one for the predictions, and one for the mean label
// as a constant prediction.
type devianceState struct {
	Own, Null     sum
	BadLabel      bool
	BadPrediction bool
	BadMean       bool

	mean float64
}

func (s *devianceState) merge(o *devianceState) {
	s.Own.merge(&o.Own)
	s.Null.merge(&o.Null)
	s.BadLabel = s.BadLabel || o.BadLabel
	s.BadPrediction = s.BadPrediction || o.BadPrediction
	s.BadMean = s.BadMean || o.BadMean
}

// add adds a row. A row of weight 0 changes nothing, even if its deviance is undefined.
func (s *devianceState) add(o RegressionOptions, label, prediction, w float64) {
	if w == 0 {
		return
	}
	power := o.Power
	switch o.Deviance {
	case PoissonDeviance:
		power = 1
	case GammaDeviance:
		power = 2
	}
	if power >= 1 && power < 2 && label < 0 || power >= 2 && label <= 0 {
		s.BadLabel = true
		return
	}
	if power != 0 && prediction <= 0 {
		s.BadPrediction = true
		return
	}
	s.Own.add(float64(w * unitDeviance(power, label, prediction)))
	switch {
	case s.mean > 0 || power == 0:
		s.Null.add(float64(w * unitDeviance(power, label, s.mean)))
	case s.mean < 0: // a mean of 0 is valid: all labels are then 0, and so is the deviance
		s.BadMean = true
	}
}

// unitDeviance returns the deviance of one label y from the mean m if the variance is m^power
// (Jørgensen, Exponential Dispersion Models, 1987).
func unitDeviance(power, y, m float64) float64 {
	if power == 0 {
		return float64((y - m) * (y - m))
	}
	if l := kernel.Log1p((y - m) / m); math.Abs(y-m) <= 0.25*m && math.Abs(l)*max(1, math.Abs(2-power)) <= 0.5 {
		return nearDeviance(power, l, m)
	}
	switch power {
	case 1:
		d := m - y
		if y > 0 {
			d += float64(y * kernel.Log(y/m))
		}
		return 2 * d
	case 2:
		return 2 * (kernel.Log(m/y) + y/m - 1)
	}
	d := kernel.Pow(m, 2-power)/(2-power) - float64(y*kernel.Pow(m, 1-power))/(1-power)
	if y > 0 {
		d += kernel.Pow(y, 2-power) / float64((1-power)*(2-power))
	}
	return 2 * d
}

// nearDeviance returns the unit deviance for l = log(y/m) near 0, where unitDeviance would
// subtract large numbers from each other and lose precision. With a = 2−power, the deviance is
// 2·m^a·Σ s[k]·l^(k+1)/(k+1)! over k ≥ 1, where s[k] is 1 + a + … + a^(k−1). (Its derivative by
// l is 2·m^a·(exp(a·l)−exp(l))/(a−1).) With 16 terms, the truncation error is below the
// rounding error for |l| and |a·l| up to ½.
func nearDeviance(power, l, m float64) float64 {
	a := 2 - power
	sum, s, term := 0.0, 1.0, float64(l*l)/2
	for k := 1; k <= 16; k++ {
		sum += float64(s * term)
		s = float64(a*s) + 1
		term *= l / float64(k+2)
	}
	switch power {
	case 1:
		sum *= m
	case 2:
	default:
		sum *= kernel.Pow(m, a)
	}
	return 2 * sum
}

// report sets the report's deviances.
func (s *devianceState) report(r *RegressionReport, u *undefined, w float64) {
	why := ""
	switch {
	case s.BadLabel:
		why = "a label is negative, or 0 where that has no deviance"
	case s.BadPrediction:
		why = "a prediction is 0 or less"
	default:
		r.Deviance = s.Own.value() / w
		if s.BadMean {
			r.D2Deviance = u.none("d2_deviance", "the mean label is negative")
			return
		}
		r.D2Deviance = 1 - u.ratio("d2_deviance", s.Own.value(), s.Null.value(), "the labels of all rows are equal")
		return
	}
	r.Deviance, r.D2Deviance = u.none("deviance", why), u.none("d2_deviance", why)
}
