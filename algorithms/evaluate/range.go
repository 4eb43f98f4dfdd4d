package evaluate

import (
	"math"
	"reflect"
	"slices"
	"strings"
)

// A measure that exceeds the range of float64 is undefined in a report, because an infinity, or
// a ratio of infinities, would look like a result.

const (
	beyondRange   = "an intermediate sum exceeds the range of float64: scale weights and values down"
	beyondWeights = "the weights of all rows add up to more than a float64 can hold: scale them down"
)

// apply replaces infinities, and values computed from infinities, by NaN in a report, and
// records the reason. report is a pointer to a struct. asked names the measures that must be
// defined: if one of them is NaN without a recorded reason, the NaN was computed from
// infinities.
func (u *undefined) apply(report any, weight float64, asked ...string) {
	if weight == 0 {
		return // the caller has already recorded the reason
	}
	v := reflect.ValueOf(report).Elem()
	all := math.IsInf(weight, 0)
	if all {
		*u = nil // the reasons recorded before are consequences of the infinite weight
		u.none("all", beyondWeights)
	}
	for _, m := range metrics(v.Type()) {
		f := v.Field(m.index)
		if f.Kind() != reflect.Float64 || m.name == "threshold" || m.name == "quantile" {
			continue // threshold and quantile are options, not measures
		}
		switch x := f.Float(); {
		case all:
			f.SetFloat(math.NaN())
		case math.IsInf(x, 0), x != x && slices.Contains(asked, m.name) && !u.explains(m.name):
			f.SetFloat(u.none(m.name, beyondRange))
		}
	}
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Slice && clearInfinities(v.Field(i)) && !all {
			u.none(jsonName(v.Type().Field(i)), beyondRange)
		}
	}
}

// explains reports whether a reason is recorded for the measure name.
func (u *undefined) explains(name string) bool {
	return slices.ContainsFunc(*u, func(why string) bool { return strings.HasPrefix(why, name+":") })
}

// clearInfinities replaces the infinities in a part of a report by NaN, and reports whether it
// found any. It does not change the score of a curve's first point, which is infinite by
// definition.
func clearInfinities(v reflect.Value) (found bool) {
	switch v.Kind() {
	case reflect.Float64:
		if found = math.IsInf(v.Float(), 0); found {
			v.SetFloat(math.NaN())
		}
	case reflect.Slice:
		for i := range v.Len() {
			found = clearInfinities(v.Index(i)) || found
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[CurvePoint]() || v.Type().Field(i).Name != "Score" {
				found = clearInfinities(v.Field(i)) || found
			}
		}
	}
	return found
}

// inUnits returns the exponent of the power of two by which weights are to be scaled before
// they are multiplied. It is 0 if products of the largest weight are far within the range of
// float64. Scaling is exact except for weights that underflow, and these are negligible
// compared with the largest.
func inUnits(largest float64) int {
	const far = 400 // in bits; with weights up to 2^200, even the square of a square is in the range of float64
	_, exponent := math.Frexp(largest)
	if largest == 0 || math.IsInf(largest, 0) || exponent >= -far/2 && exponent <= far/2 {
		return 0
	}
	return -exponent
}

// scaled returns x·2^power.
func scaled(x float64, power int) float64 {
	if power == 0 {
		return x
	}
	return math.Ldexp(x, power)
}

// f1 returns the harmonic mean of right/given and right/truth. At least one of given and truth
// is positive.
func f1(right, given, truth float64) float64 {
	if both := given + truth; !math.IsInf(both, 0) {
		return right / both * 2
	}
	return right / (float64(given/2) + float64(truth/2))
}
