package builtin

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
)

// refuse returns an error that lists every problem of a command line once, or nil: flags out of
// bounds, empty flags, flags without an effect, missing flags, and the problems in err. err is
// the error of validating the parameters; in its messages, refuse replaces names of parameters
// by names of flags. refuse also replaces the value 0 of a flag by the value in the flag's tag
// zero.
func refuse(k *kong.Context, err error) error {
	l := lineOf(k)
	told, problems := l.outOfBounds()
	empty, nothing := l.empty()
	problems = append(problems, nothing...)
	l.store()
	idle, without := l.withoutEffect()
	problems = append(problems, without...)
	missing := l.missing()
	words := wordsOf(l.flags)
	for _, line := range linesOf(err) {
		line = words.translate(line)
		about, what, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		about, number := strings.CutSuffix(about, ",")
		value := number || strings.HasPrefix(what, "is ") || strings.HasPrefix(what, "of ")
		if value && slices.Contains(told, about) || slices.Contains(idle, about) || slices.Contains(empty, about) || slices.Contains(missing, about) {
			continue
		}
		problems = append(problems, line)
	}
	if len(problems) == 0 {
		return nil // if flags are missing, the parser reports them
	}
	for _, name := range missing {
		problems = append(problems, "--"+name+" is missing")
	}
	var seen []string
	var errs []error
	for _, p := range problems {
		if !slices.Contains(seen, p) {
			seen = append(seen, p)
			errs = append(errs, errors.New(p))
		}
	}
	return errors.Join(errs...)
}

// linesOf returns the lines of an error. An error made by errors.Join has a line for each
// joined error.
func linesOf(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// flagNames maps the names of parameters in messages of packages to the names of flags.
type flagNames map[string]string

// wordsOf returns a map from the names of parameters to the names of the flags that set them. A
// flag sets the parameter with the name of its field, or the parameters that its tag param
// names.
func wordsOf(flags []ownFlag) flagNames {
	w := flagNames{}
	for _, f := range flags {
		params := f.field.Tag.Get("param")
		if params == "" {
			params = f.field.Name
		}
		for name := range strings.FieldsSeq(params) {
			w[name] = f.dashed()
		}
	}
	maps.Copy(w, constants)
	return w
}

// wordsFor returns the flag names for the arguments of a program.
func wordsFor(args any) flagNames {
	parser, err := kong.New(args)
	if err != nil {
		return nil
	}
	return wordsOf(flagsIn(reflect.ValueOf(args).Elem(), parser.Model.Flags))
}

// constants maps the names of Go constants in messages of packages to the corresponding values
// of flags.
var constants = constantsOf(catalog.Estimators())

func constantsOf(all []model.Estimator) map[string]string {
	words := map[string]string{}
	for _, e := range all {
		for _, f := range e.Command().Flags {
			maps.Copy(words, f.Words)
		}
	}
	return words
}

var (
	// named matches quoted text, and text that may be the name of a parameter, of an element of
	// a list (Name[i]) or of a field of a struct (Name.Field).
	named = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[A-Z]\w*(?:\.[A-Z]\w*)?(?:\[\d+\])?`)
	// calls matches parts of messages that refer to Go code: a line, a function, an option, or
	// the words "the parameter".
	calls = regexp.MustCompile(` \(engine\.IfExists\(engine\.Replace\)\)|\b[a-z]\w*\.go:\d+: |\b[a-z]+\.[A-Z]\w*: |\bthe parameter `)
	// ofFlag matches the prefix of the message of an operator whose name is a flag.
	ofFlag = regexp.MustCompile(`operator \w+ "(--[a-z-]+)", subtask \d+ of \d+: `)
	// lacking matches advice that users of the command line cannot follow, as there is no flag.
	lacking = regexp.MustCompile(`; or set ReplaceInvalidUTF8 to read U\+FFFD in place of such bytes`)
	// assembled matches references to the column of features, which a command makes and which
	// no file has. The references are in messages about all rows of that column.
	assembled = regexp.MustCompile(`sums over column "features_*"|column "features_*": component \d+: the values`)
	// zeroes matches text about the meaning of 0 as the value of a parameter. As the value of a
	// flag, 0 does not have that meaning.
	zeroes = regexp.MustCompile(`(?m),? or 0 for [^;:\n]*`)
)

// translate replaces names of parameters in a message by names of flags, and removes references to
// Go code. It does not change quoted text.
func (w flagNames) translate(message string) string {
	message = lacking.ReplaceAllString(calls.ReplaceAllString(message, ""), "")
	message = assembled.ReplaceAllStringFunc(message, func(text string) string {
		if _, number, ok := strings.Cut(text, ": component "); ok {
			return "component " + strings.TrimSuffix(number, ": the values") + " of the features, counted from 0: the values"
		}
		return "sums over the features"
	})
	message = ofFlag.ReplaceAllString(message, "$1: ")
	told := false
	var b strings.Builder
	from := 0
	for _, at := range named.FindAllStringIndex(message, -1) {
		word := message[at[0]:at[1]]
		b.WriteString(message[from:at[0]])
		from = at[1]
		plain, index, _ := strings.Cut(word, "[")
		to, ok := w[plain]
		if !ok || !alone(message, at[0], at[1]) {
			b.WriteString(word)
			continue
		}
		told = told || strings.HasPrefix(to, "--")
		if b.WriteString(to); index != "" {
			b.WriteString(", number " + following(strings.TrimSuffix(index, "]")) + ",")
		}
	}
	b.WriteString(message[from:])
	if !told {
		return b.String()
	}
	return zeroes.ReplaceAllString(b.String(), "")
}

// alone reports whether blanks or punctuation surround the word text[from:to]. It returns false
// for parts of file paths and for names of operators.
func alone(text string, from, to int) bool {
	if strings.HasSuffix(text[:from], "operator ") {
		return false // the name of an operator
	}
	before := from == 0 || text[from-1] == ' ' || text[from-1] == '(' || text[from-1] == '\n'
	after := to == len(text) || unicode.IsSpace(rune(text[to])) || strings.ContainsRune(":,;)", rune(text[to]))
	return before && after
}

// following returns the number in index plus 1, because messages count elements from 1.
func following(index string) string {
	n, err := strconv.Atoi(index)
	if err != nil {
		return index
	}
	return strconv.Itoa(n + 1)
}
