package commands

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCommand prints a script that completes commands and flags in a shell.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *CompletionCommand) Run(s *Streams, k *kong.Kong) error {
	words := map[string][]string{} // path of commands typed so far -> words that may follow it
	gather(k.Model.Node, "", words)
	paths := make([]string, 0, len(words))
	for path := range words {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	name := k.Model.Name
	var err error
	switch c.Shell {
	case "fish":
		_, err = fmt.Fprint(s.Out, fish(name, paths, words))
	case "zsh":
		_, err = fmt.Fprintf(s.Out, "autoload -U +X bashcompinit && bashcompinit\n%s", bash(name, paths, words))
	default:
		_, err = fmt.Fprint(s.Out, bash(name, paths, words))
	}
	return err
}

// gather adds entries for command n and for each command below n to the map named into. The key
// of an entry is the path of the command, and the value has the words that may follow the path.
// The path of a command consists of the names of the commands from the top down to this
// command, separated by spaces; the path of the top is "". The parameter path is the path of n.
func gather(n *kong.Node, path string, into map[string][]string) {
	into[path] = wordsOf(n)
	if n.Target.CanAddr() {
		if c, ok := n.Target.Addr().Interface().(interface{ completions() map[string][]string }); ok {
			for below, words := range c.completions() {
				below = strings.TrimSpace(path + " " + below)
				words = append(words, into[below]...)
				slices.Sort(words)
				into[below] = slices.Compact(words)
			}
		}
	}
	for _, child := range n.Children {
		if !child.Hidden {
			gather(child, strings.TrimSpace(path+" "+child.Name), into)
		}
	}
}

// bash returns a script with a completion function for the binary name. The function determines
// which element of paths was typed so far, and offers the words that may follow it.
func bash(name string, paths []string, words map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s completion for bash: source <(%s completion bash)\n_%s() {\n", name, name, name)
	b.WriteString("  local word path=\"\" i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    word=${COMP_WORDS[i]}\n    case \"${path:+$path }$word\" in\n")
	for _, path := range paths {
		if path != "" {
			fmt.Fprintf(&b, "      %q) path=%q ;;\n", path, path)
		}
	}
	b.WriteString("    esac\n  done\n  case \"$path\" in\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "    %q) COMPREPLY=($(compgen -W %q -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n", path, strings.Join(words[path], " "))
	}
	fmt.Fprintf(&b, "  esac\n}\ncomplete -o default -F _%s %s\n", name, name)
	return b.String()
}

// fish returns a script for the binary name. The script has a function that tests whether a
// given element of paths was typed so far, and one line for each word that may follow a path.
func fish(name string, paths []string, words map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s completion for fish: %s completion fish | source\n", name, name)
	// As in bash, the function goes through the typed words from left to right: the same word
	// can be a command after one path and an argument after another.
	fmt.Fprintf(&b, "function __%s_at\n  set -l at ''\n  for word in (commandline -opc)[2..-1]\n    switch (string trim \"$at $word\")\n", name)
	for _, path := range paths {
		if path != "" {
			fmt.Fprintf(&b, "      case '%s'\n        set at '%s'\n", path, path)
		}
	}
	b.WriteString("    end\n  end\n  test \"$at\" = \"$argv[1]\"\nend\n")
	// No file names may follow a command with subcommands. The option -f disables the
	// completion of file names.
	for _, path := range paths {
		if below := slices.ContainsFunc(paths, func(p string) bool { return p != path && strings.HasPrefix(p, strings.TrimSpace(path+" ")) }); below {
			fmt.Fprintf(&b, "complete -c %s -n \"__%s_at '%s'\" -f\n", name, name, path)
		}
	}
	for _, path := range paths {
		condition := fmt.Sprintf("__%s_at '%s'", name, path)
		for _, w := range words[path] {
			if flag, ok := strings.CutPrefix(w, "--"); ok {
				fmt.Fprintf(&b, "complete -c %s -n %q -l %s\n", name, condition, flag)
			} else {
				fmt.Fprintf(&b, "complete -c %s -n %q -a %s\n", name, condition, w)
			}
		}
	}
	return b.String()
}
