package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// Tag is the struct tag that makes a flag a setting.
const Tag = "setting"

// Settings has the values of settings from the environment, from a file and from one command
// line.
type Settings struct {
	path   string
	lookup func(string) (string, bool)
	file   map[string]entry
	given  map[string]string // key -> value on the command line; set by Given
}

// EnvName returns the name of the environment variable for the setting with the given key.
func EnvName(key string) string {
	return "SUPERSTEP_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// Option returns the option that makes a kong parser call s.Resolve for flags that are not
// given.
func (s *Settings) Option() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		return kong.Resolvers(s).Apply(k)
	})
}

// Validate returns an error if the file has a key that is not a setting of any command.
func (s *Settings) Validate(app *kong.Application) error {
	var keys []string
	each(app.Node, func(f *kong.Flag) { keys = append(keys, f.Tag.Get(Tag)) })
	var wrong []error
	for key, e := range s.file {
		if slices.Contains(keys, key) {
			continue
		}
		wrong = append(wrong, fmt.Errorf("%s:%d: there is no setting %q%s", s.path, e.line, key, spelling.DidYouMean("; ", key, keys)))
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return wrong[0]
}

// Resolve returns the value of flag f from the environment or the file, or nil if neither has a
// value. f is not on the command line. If the value is invalid for f, the error names the
// origin of the value, because the parser would name only the flag, which the user did not
// give.
func (s *Settings) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	key := f.Tag.Get(Tag)
	if key == "" {
		return nil, nil
	}
	value, origin, ok := s.find(key)
	if !ok {
		return nil, nil
	}
	if err := fits(f, value); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", origin, key, err)
	}
	return value, nil
}

// fits returns an error if the parser would refuse value for flag f.
func fits(f *kong.Flag, value string) error {
	if f.Enum != "" && !slices.Contains(strings.Split(f.Enum, ","), value) {
		return fmt.Errorf("%q is not one of %s", value, strings.Join(strings.Split(f.Enum, ","), ", "))
	}
	target := reflect.New(f.Target.Type()).Elem()
	return f.Mapper.Decode(&kong.DecodeContext{Value: f.Value, Scan: kong.Scan().PushTyped(value, kong.FlagValueToken)}, target)
}

// find returns the value of a setting from the environment or, if the environment has no value,
// from the file. origin names the variable, or the file and the line. ok is false if neither
// has a value.
func (s *Settings) find(key string) (value, origin string, ok bool) {
	if value, ok = s.lookup(EnvName(key)); ok && value != "" {
		return value, "environment " + EnvName(key), true
	}
	if e, ok := s.file[key]; ok {
		return e.value, fmt.Sprintf("%s:%d", s.path, e.line), true
	}
	return "", "", false
}

// Given records the values of the settings whose flags are on the command line.
func (s *Settings) Given(parsed *kong.Context) {
	s.given = map[string]string{}
	for _, p := range parsed.Path {
		if p.Flag == nil || p.Resolved || p.Flag.Tag.Get(Tag) == "" {
			continue
		}
		text := fmt.Sprint(p.Flag.Target.Interface())
		if list, ok := p.Flag.Target.Interface().([]string); ok {
			text = strings.Join(list, ",")
		}
		s.given[p.Flag.Tag.Get(Tag)] = text
	}
}

// Shown is one setting with its value and origin.
type Shown struct {
	Key, Value, Origin, Help string
}

// Show returns the settings of all commands of k, sorted by key, and not only the settings of
// the command that runs. Given must be called before Show; otherwise the result does not
// contain values from the command line.
func (s *Settings) Show(k *kong.Kong) []Shown {
	var all []Shown
	seen := map[string]bool{}
	each(k.Model.Node, func(f *kong.Flag) {
		key := f.Tag.Get(Tag)
		if seen[key] {
			return
		}
		seen[key] = true
		shown := Shown{Key: key, Value: f.Default, Origin: "default", Help: f.Help}
		if value, origin, ok := s.find(key); ok {
			shown.Value, shown.Origin = value, origin
		}
		if value, ok := s.given[key]; ok {
			shown.Value, shown.Origin = value, "command line"
		}
		if f.Tag.Has("secret") && shown.Value != "" {
			shown.Value = "(not shown)"
		}
		all = append(all, shown)
	})
	slices.SortFunc(all, func(a, b Shown) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// each calls f for every flag that is a setting, of n and of the commands below n.
func each(n *kong.Node, f func(*kong.Flag)) {
	for _, flag := range n.Flags {
		if flag.Tag.Get(Tag) != "" {
			f(flag)
		}
	}
	for _, child := range n.Children {
		each(child, f)
	}
}
