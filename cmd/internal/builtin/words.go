package builtin

import (
	"slices"

	"github.com/alecthomas/kong"
)

// engineFlags are the flags that engine.Main adds to the flags of every job.
var engineFlags = []string{
	"--batch-rows", "--check", "--checkpoint", "--checkpoint-dir", "--checkpoint-every", "--checkpoint-fail-after", "--cluster", "--copies", "--detach", "--explain", "--from",
	"--help", "--if-exists", "--insecure", "--log-json", "--log-level", "--memory", "--mtbf", "--parallelism", "--priority", "--progress",
	"--restart", "--restart-attempts", "--restart-delay", "--restart-window", "--resume", "--seed", "--shards", "--spill-dir",
	"--tls-ca", "--tls-cert", "--tls-key", "--token-file", "--version", "--wait-timeout", "--worker-binary",
}

// Words returns the words that may follow a command, for completion in shells. The key of the
// map is the text that follows the command so far, or "" if there is none.
func Words(command string) map[string][]string {
	words := map[string][]string{}
	switch command {
	case "train":
		words[""] = Algorithms()
		for _, p := range algorithms {
			words[p.name] = p.flags()
		}
	case "predict":
		words[""] = predict.flags()
	case "evaluate":
		words[""] = evaluator.flags()
	}
	return words
}

// flags returns all flags of a program.
func (p program) flags() []string {
	all := slices.Clone(engineFlags)
	if parser, err := kong.New(p.args()); err == nil {
		for _, f := range parser.Model.Flags {
			all = append(all, "--"+f.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
