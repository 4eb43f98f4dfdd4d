// These tests run on one goroutine, so the race detector has nothing to find.

//go:build !race

package builtin

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// parsers has the parser of each program, because making one takes longer than parsing.
var parsers = map[string]*kong.Kong{}

// usageError returns the error of a command line that has words and the flags that p requires,
// or "" if the command line is valid.
func usageError(t *testing.T, p program, words ...string) string {
	t.Helper()
	parser := parsers[p.name]
	if parser == nil {
		var err error
		parser, err = kong.New(p.args())
		require.NoError(t, err)
		parsers[p.name] = parser
	}
	if p.name != "predict" && p.name != "evaluate" {
		given := map[string]string{"--input": "x.csv", "--model": "m.json", "--k": "3", "--objective": "squared", "--task": "regression", "--label": "l"}
		for _, f := range parser.Model.Flags {
			if value, ok := given["--"+f.Name]; ok && !slices.Contains(words, "--"+f.Name) && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--"+f.Name+"=") }) {
				words = append(words, "--"+f.Name+"="+value)
			}
		}
	}
	_, err := parser.Parse(words)
	if err == nil {
		return ""
	}
	return err.Error()
}

// conditions returns the other flags, with values, that a command line must have so that f has
// an effect.
func conditions(flags []ownFlag, f ownFlag) (words []string) {
	for condition := range strings.SplitSeq(f.field.Tag.Get("of"), ",") {
		name, value, compared := strings.Cut(condition, "=")
		switch {
		case condition == "" || strings.HasPrefix(name, "!") || strings.HasSuffix(name, "!"):
			continue
		case !compared:
			value = map[string]string{"momentum": "0.5", "early-stopping": "3", "plot": "p.png"}[name]
		}
		first, _, _ := strings.Cut(value, "/")
		i := slices.IndexFunc(flags, func(o ownFlag) bool { return o.Name == name })
		if words = append(words, "--"+name); flags[i].Target.Kind() != reflect.Bool {
			words[len(words)-1] += "=" + first
		}
		words = append(words, conditions(flags, flags[i])...)
		if name == "early-stopping" {
			words = append(words, "--validation=0.5")
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// TestNumbersOutOfBounds requires that every numeric flag has bounds, that the error about a
// value that is out of bounds or not finite names the flag, and that a value within the bounds
// is accepted, also by the parameters of the algorithm.
func TestNumbersOutOfBounds(t *testing.T) {
	for _, p := range append(slices.Clone(algorithms), predict, evaluator) {
		args := p.args()
		parser, err := kong.New(args)
		require.NoError(t, err)
		flags := flagsIn(reflect.ValueOf(args).Elem(), parser.Model.Flags)
		for _, f := range flags {
			kind, wrap := f.Target.Type(), "%"
			if kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			} else if kind.Kind() == reflect.Map {
				kind, wrap = kind.Elem(), "key=%"
			}
			whole := kind.Kind() == reflect.Int && f.field.Type.PkgPath() == "" || kind.Kind() == reflect.Int && f.field.Type.Kind() == reflect.Map
			if kind.Kind() != reflect.Float64 && !whole {
				continue
			}
			tag := f.field.Tag.Get("want")
			require.NotEmpty(t, tag, "%s %s must have bounds", p.name, f.dashed())
			limits := parseBounds(tag)
			others := conditions(flags, f)
			told := func(value string) string {
				return usageError(t, p, append(slices.Clone(others), f.dashed()+"="+strings.ReplaceAll(wrap, "%", value))...)
			}
			for _, value := range []string{"NaN", "Inf", "-Inf", "1e999"} {
				require.Contains(t, told(value), f.dashed(), "%s %s=%s", p.name, f.dashed(), value)
			}
			for _, v := range []float64{-1, 0, -1e300, 1e300, -2147483648, 4294967296, 1.5, 1 + 1e-9, 256} {
				text := decimal(v)
				if whole && (v != math.Trunc(v) || math.Abs(v) > 1e18) {
					require.Contains(t, told(text), f.dashed(), "%s %s=%s", p.name, f.dashed(), text)
					continue
				}
				if whole {
					text = strconv.FormatInt(int64(v), 10)
				}
				if got := told(text); limits.have(v) {
					require.NotRegexp(t, "(?m)^"+f.dashed()+" is "+regexp.QuoteMeta(text)+": want", got, "%s %s=%s", p.name, f.dashed(), text)
				} else {
					require.Contains(t, got, f.dashed(), "%s %s=%s", p.name, f.dashed(), text)
				}
			}
			for _, i := range limits { // the parameters must accept the bounds themselves if they are valid values
				for end, open := range map[float64]bool{i.low: i.openLow, i.high: i.openHigh} {
					if !open && !math.IsInf(end, 0) && wrap == "%" {
						require.Empty(t, within(told(decimal(end)), f.dashed()), "%s %s=%v", p.name, f.dashed(), end)
					}
				}
			}
		}
	}
}

// within returns the first line of message that begins with "<flag> is ", or an empty string.
func within(message, flag string) string {
	for line := range strings.Lines(message) {
		if strings.HasPrefix(line, flag+" is ") {
			return line
		}
	}
	return ""
}

// TestIdleFlags requires that a flag that has no effect is an error and is not ignored.
func TestIdleFlags(t *testing.T) {
	values := map[reflect.Kind]string{reflect.Int: "3", reflect.Float64: "0.5", reflect.String: "x"}
	for _, p := range append(slices.Clone(algorithms), predict, evaluator) {
		args := p.args()
		parser, err := kong.New(args)
		require.NoError(t, err)
		for _, f := range flagsIn(reflect.ValueOf(args).Elem(), parser.Model.Flags) {
			of := f.field.Tag.Get("of")
			if of == "" || strings.HasPrefix(of, "!") || strings.Contains(of, "!=") {
				continue
			}
			word := f.dashed()
			if kind := f.Target.Kind(); f.Enum != "" {
				word += "=" + strings.Split(f.Enum, ",")[1]
			} else if f.Name == "time" {
				word += "=logistic"
			} else if kind == reflect.Map {
				word += "=a=1"
			} else if kind != reflect.Bool {
				word += "=" + values[kind]
			}
			if f.Name == "var-smoothing" {
				word = "--family=bernoulli\x00" + word
			} else if p.name == "kmeans" {
				word = "--init=random\x00" + word
			}
			require.Contains(t, usageError(t, p, strings.Split(word, "\x00")...), f.dashed()+" applies only with --", "%s %s", p.name, word)
		}
	}
}

// TestRefusals requires that all errors of a command line are reported together, each once and
// with the name of the flag.
func TestRefusals(t *testing.T) {
	by := func(name string, words string, want ...string) {
		t.Helper()
		i := slices.IndexFunc(algorithms, func(p program) bool { return p.name == name })
		require.Equal(t, strings.Join(want, "\n"), usageError(t, algorithms[i], strings.Fields(words)...), words)
	}
	by("gbdt", "--rounds 0 --max-bins 1 --subsample 7 --lambda=-3 --objective poisson --balanced",
		"--max-bins is 1: want 2 to 255", "--rounds is 0: want 1 to 1048576", "--lambda is -3: want a number of 0 or more",
		"--subsample is 7: want a number above 0 and up to 1", "class weights are for logistic and softmax, and --objective is poisson")
	by("mlp", "--hidden 5,0 --l2 NaN --method newton", "--hidden, number 2, is 0: want 1 to 1048576", "--l2 is NaN: want a number of 0 or more",
		"--method is newton: want lbfgs, gd or sgd")
	by("linear", "--method sgd --nesterov --schedule optimal", "--nesterov applies only with --momentum",
		"--schedule is optimal, which is made from --l2, which is 0: use another schedule")
	for name, whose := range map[string]string{"fm": "a factorisation machine's", "mlp": "a network's"} {
		by(name, "--method sgd --schedule optimal --l2 0.1",
			"--schedule is optimal, which is for convex losses, and "+whose+" is not convex: want inverse-scaling, constant or exponential")
	}
	by("linear", "--method gd --l1 1", "--method is gd, which cannot minimise an --l1 penalty, as that has no gradient at 0: use owlqn or sgd")
	by("forest", "--criterion gini --max-features 0", "--criterion is gini, which is for classes, and --task is regression",
		`--max-features is "0": want sqrt, log2, third, all, a number of 1 or more such as 7, or a share up to 1 such as 0.4`)
	by("glm", "--power 2 --family tweedie", "--power is 2: want a number above 1 and below 2, or a number above 2")
	by("naivebayes", "--priors a=2 --uniform-priors", `--priors of "a" is 2: want a number above 0 and up to 1`,
		"--priors are given and --uniform-priors is set: choose one")
	by("kmeans", "--k 0 --precision single --distance cosine", "--k is 0: want 1 or more",
		"--precision is single and --distance is cosine: single precision needs Euclidean distance")
	by("svr", "--tol 0 --max-iter 3", "") // with --tol 0, training does not end because of a small gradient
}

// TestWordings requires that the names of Go parameters in error messages are replaced with the
// names of flags. Quoted text, names of operators and paths must not change.
func TestWordings(t *testing.T) {
	w := wordsFor(algorithms[slices.IndexFunc(algorithms, func(p program) bool { return p.name == "forest" })].args())
	for message, want := range map[string]string{
		"train.go:12: forest.Train: NumTrees is -1: want 1 to 9, or 0 for 100":                                            "--trees is -1: want 1 to 9",
		"4 of 9 trees take 1 MB: want smaller trees, by MaxDepth, MaxLeaves or MinSamplesLeaf, or fewer, by NumTrees":     "4 of 9 trees take 1 MB: want smaller trees, by --max-depth, --max-leaves or --min-child-rows, or fewer, by --trees",
		`column "MaxBins" of /tmp/MaxBins/x.csv is no Trees`:                                                              `column "MaxBins" of /tmp/MaxBins/x.csv is no Trees`,
		"operator Test, subtask 0 of 2: MaxFeatures is 9":                                                                 "operator Test, subtask 0 of 2: --max-features is 9",
		"output o.csv exists: replace it with --if-exists replace (engine.IfExists(engine.Replace))":                      "output o.csv exists: replace it with --if-exists replace",
		"job \"x\": 2 errors:\n  ClassWeights of \"K\" is 0\n  the parameter MaxDepth is 3: want 4, or 0 for the default": "job \"x\": 2 errors:\n  --class-weights of \"K\" is 0\n  --max-depth is 3: want 4",
		"a file of K rows, 0 or more": "a file of K rows, 0 or more",
	} {
		require.Equal(t, want, w.translate(message))
	}
}
