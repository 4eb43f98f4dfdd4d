package builtin

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// Tags of flags state which values are valid:
//
//	want:"1..255"    the valid numbers. Other forms are "1..", "0..<1", ">0..1", and "-1|1.." for
//	                 alternatives. The tag applies to every number in a list or a map. NaN and
//	                 infinities are never valid.
//	zero:"-1"        the value to store in the parameter if the user gives 0. If the parameter
//	                 were 0, the flag would count as not given.
//	of:"method=sgd"  the flag has an effect only if the flag method has the value sgd. / separates
//	                 alternative values, and != means any other value. "flag" without = means that
//	                 flag must be set, and "!flag" that it must not be set. Commas join conditions.
//	param:"NumTrees" the parameter that the flag sets, if its name differs from the field's.
//	reads:""         the flag names columns of numbers that are read in addition to features, label
//	                 and weight.
//
// A flag that is not given is never refused.

// ownFlag is a flag of a command, with the field of the arguments that it sets.
type ownFlag struct {
	*kong.Flag
	field reflect.StructField
}

func (f ownFlag) dashed() string { return "--" + f.Name }

// flagsIn returns the flags that the fields of the struct target define, in the order of the
// fields. all has all flags of the parser.
func flagsIn(target reflect.Value, all []*kong.Flag) []ownFlag {
	at := map[any]*kong.Flag{}
	for _, f := range all {
		if f.Target.CanAddr() {
			at[f.Target.Addr().Interface()] = f
		}
	}
	var own []ownFlag
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || !v.Field(i).CanAddr() {
				continue
			}
			if field.Anonymous {
				walk(v.Field(i))
			} else if v.Field(i).Kind() == reflect.Interface { // a pointer to a struct of flags
				walk(v.Field(i).Elem().Elem())
			} else if f := at[v.Field(i).Addr().Interface()]; f != nil {
				own = append(own, ownFlag{f, field})
			}
		}
	}
	walk(target)
	return own
}

// commandLine is a parsed command line.
type commandLine struct {
	flags []ownFlag
	given map[string]bool // flag name -> whether the flag is given
}

// lineOf returns the command line that a parser has read.
func lineOf(k *kong.Context) commandLine {
	l := commandLine{flags: flagsIn(k.Model.Target, k.Model.Flags), given: map[string]bool{}}
	for _, p := range k.Path {
		if p.Flag != nil {
			l.given[p.Flag.Name] = true
		}
	}
	return l
}

// outOfBounds returns the names of the flags with values out of range, and a message for each.
func (l commandLine) outOfBounds() (names, problems []string) {
	for _, f := range l.flags {
		want := f.field.Tag.Get("want")
		if !l.given[f.Name] || want == "" {
			continue
		}
		bounds := parseBounds(want)
		for _, v := range numbersOf(f.Target) {
			if !bounds.have(v.number) {
				names = append(names, f.Name)
				problems = append(problems, fmt.Sprintf("%s%s is %s: want %s", f.dashed(), v.of, decimal(v.number), bounds.words(v.whole)))
			}
		}
	}
	return names, problems
}

// withoutEffect returns the names of the flags that have no effect because their conditions do
// not hold, and a message for each.
func (l commandLine) withoutEffect() (names, problems []string) {
	for _, f := range l.flags {
		if !l.given[f.Name] {
			continue
		}
		for condition := range strings.SplitSeq(f.field.Tag.Get("of"), ",") {
			if problem := l.conditionProblem(f, condition); problem != "" {
				names, problems = append(names, f.Name), append(problems, problem)
				break
			}
		}
	}
	return names, problems
}

// conditionProblem returns the message about a flag whose condition does not hold.
func (l commandLine) conditionProblem(f ownFlag, condition string) string {
	if condition == "" {
		return ""
	}
	negated, other := strings.HasPrefix(condition, "!"), strings.TrimPrefix(condition, "!")
	name, values, compared := strings.Cut(other, "=")
	but := strings.HasSuffix(name, "!")
	name = strings.TrimSuffix(name, "!")
	i := slices.IndexFunc(l.flags, func(o ownFlag) bool { return o.Name == name })
	if i < 0 {
		return ""
	}
	has := l.flags[i].Target
	switch {
	case compared && but && textIn(has) == values:
		return fmt.Sprintf("%s does not go with --%s %s", f.dashed(), name, values)
	case compared && !but && !slices.Contains(strings.Split(values, "/"), textIn(has)):
		return fmt.Sprintf("%s applies only with --%s %s", f.dashed(), name, strings.ReplaceAll(values, "/", " or "))
	case compared:
	case negated && !has.IsZero():
		return fmt.Sprintf("%s does not go with --%s", f.dashed(), name)
	case !negated && has.IsZero():
		return fmt.Sprintf("%s applies only with --%s", f.dashed(), name)
	}
	return ""
}

// empty returns the names of the flags whose value is empty, or is a list with an empty or repeated
// element, and a message for each.
func (l commandLine) empty() (names, problems []string) {
	for _, f := range l.flags {
		what := ""
		switch v := f.Target.Interface().(type) {
		case string:
			if v == "" {
				what = " is empty: give it a value, or leave it out"
			}
		case []string:
			what = emptyIn(v)
		case list:
			what = emptyIn(v)
		}
		if l.given[f.Name] && what != "" {
			names, problems = append(names, f.Name), append(problems, f.dashed()+what)
		}
	}
	return names, problems
}

// emptyIn returns a description of the problem if a list is empty or has an empty or a repeated
// element. It returns "" if there is no such problem.
func emptyIn(names []string) (what string) {
	if len(names) == 0 {
		return " is empty: give it a value, or leave it out"
	}
	for i, s := range names {
		if s == "" {
			what = " has an empty element beside a comma"
		} else if slices.Contains(names[:i], s) {
			what = fmt.Sprintf(" has %q twice", s)
		}
	}
	return what
}

// missing returns the names of required flags that are not given.
func (l commandLine) missing() (names []string) {
	for _, f := range l.flags {
		if f.Required && !l.given[f.Name] {
			names = append(names, f.Name)
		}
	}
	return names
}

// store replaces the value of every flag that is given as 0 by the value of its tag zero.
func (l commandLine) store() {
	for _, f := range l.flags {
		as := f.field.Tag.Get("zero")
		if as == "" || !l.given[f.Name] || !f.Target.IsZero() {
			continue
		}
		if v, err := strconv.Atoi(as); err == nil && f.Target.CanInt() {
			f.Target.SetInt(int64(v))
		} else if err == nil {
			f.Target.SetFloat(float64(v))
		}
	}
}

// number is a number in the value of a flag. If the value is a list or a map, the field of is
// text that identifies the element with the number.
type number struct {
	of     string
	number float64
	whole  bool
}

// numbersOf returns the numbers in the value of a flag.
func numbersOf(v reflect.Value) (all []number) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			for _, n := range numbersOf(v.Index(i)) {
				if n.of = ""; v.Len() > 1 {
					n.of = fmt.Sprintf(", number %d,", i+1)
				}
				all = append(all, n)
			}
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			for _, n := range numbersOf(v.MapIndex(key)) {
				n.of = fmt.Sprintf(" of %q", key.String())
				all = append(all, n)
			}
		}
	case reflect.Int:
		all = append(all, number{"", float64(v.Int()), true})
	case reflect.Float64:
		all = append(all, number{"", v.Float(), false})
	}
	return all
}

// textIn returns the value of a flag as text.
func textIn(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v.Interface())
}

// decimal formats a number, without an exponent unless it is very large or small.
func decimal(v float64) string {
	if size := math.Abs(v); size < 1e15 && (size >= 1e-6 || v == 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// bounds are intervals of numbers.
type bounds []interval

// interval is the interval from low to high. It contains low unless openLow is set, and high unless
// openHigh is set.
type interval struct {
	low, high         float64
	openLow, openHigh bool
}

// parseBounds parses a tag want.
func parseBounds(tag string) (all bounds) {
	for part := range strings.SplitSeq(tag, "|") {
		low, high, is := strings.Cut(part, "..")
		if !is {
			high = low
		}
		at := interval{low: math.Inf(-1), high: math.Inf(1)}
		at.openLow, at.openHigh = strings.HasPrefix(low, ">"), strings.HasPrefix(high, "<")
		if v, err := strconv.ParseFloat(strings.TrimPrefix(low, ">"), 64); err == nil {
			at.low = v
		}
		if v, err := strconv.ParseFloat(strings.TrimPrefix(high, "<"), 64); err == nil {
			at.high = v
		}
		all = append(all, at)
	}
	return all
}

// have reports whether a number is within the bounds. It returns false for NaN and infinities.
func (b bounds) have(v float64) bool {
	return v-v == 0 && slices.ContainsFunc(b, func(i interval) bool {
		return (v > i.low || v == i.low && !i.openLow) && (v < i.high || v == i.high && !i.openHigh)
	})
}

// words returns a description of the bounds for a message. If whole is set, the flag takes only
// whole numbers.
func (b bounds) words(whole bool) string {
	parts := make([]string, len(b))
	for i, of := range b {
		parts[i] = of.words(whole)
	}
	return strings.Join(parts, ", or ")
}

func (i interval) words(whole bool) string {
	kind := "a number "
	if whole {
		kind = ""
	}
	low, high := math.IsInf(i.low, 0), i.high >= 1<<30 // a maximum of 2^30 or more is not mentioned
	switch {
	case low && high:
		return "a number"
	case i.low == i.high:
		return decimal(i.low)
	case high && i.openLow:
		return "a number above " + decimal(i.low)
	case high && whole:
		return decimal(i.low) + " or more"
	case high:
		return "a number of " + decimal(i.low) + " or more"
	case !i.openLow && !i.openHigh && whole:
		return decimal(i.low) + " to " + decimal(i.high)
	case !i.openLow && !i.openHigh:
		return kind + "from " + decimal(i.low) + " to " + decimal(i.high)
	}
	from, to := "of "+decimal(i.low)+" or more", " and up to "+decimal(i.high)
	if i.openLow {
		from = "above " + decimal(i.low)
	}
	if i.openHigh {
		to = " and below " + decimal(i.high)
	}
	return "a number " + from + to
}
