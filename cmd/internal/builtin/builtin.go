package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/superstep-ml/superstep/engine"
)

// A program is a built-in job with what the command needs to run it.
type program struct {
	name  string
	about string
	job   engine.Runnable
	args  func() any // returns a pointer to new arguments, whose fields are the flags
	main  func(name string, words []string)
}

// define returns the program that runs job. The parameter of lists the flags of job for which
// the path - is allowed. After a run, report writes the results to w, and returns notes that
// users must not overlook. The report is printed on standard output, and the notes on standard
// error. If the job writes a file to standard output, the report is printed on standard error
// too.
func define[A any](name, about string, job *engine.Job[A], of streams, report func(w io.Writer, a A, r *engine.Result) (notes []string, err error)) program {
	args := func() any {
		a := job.Arguments()
		return &a
	}
	return program{name, about, job, args, func(name string, words []string) {
		files, words, err := of.replaced(words, os.Stdin, clusterOf(words))
		if err != nil {
			files.remove()
			fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
			os.Exit(2)
		}
		engine.Main(job, engine.CommandLine(name, words...), engine.Finally(files.remove),
			engine.InWords(func(message string) string { return files.named(wordsFor(args()).translate(message)) }),
			engine.AfterRun(func(a A, r *engine.Result) error {
				var text bytes.Buffer
				notes, err := report(&text, a, r)
				out := os.Stdout
				if files.output != "" {
					out = os.Stderr
				}
				if _, wrong := io.WriteString(out, files.named(text.String())); wrong != nil {
					err = errors.Join(err, fmt.Errorf("cannot write the report: %w", wrong))
				}
				for _, note := range notes {
					fmt.Fprintf(os.Stderr, "%s: warning: %s\n", name, files.named(note))
				}
				if err != nil {
					return err
				}
				return files.finish(os.Stdout)
			}))
	}}
}

// The programs of the commands superstep run, predict and evaluate. The variable algorithms has
// the programs of superstep train.
var (
	programs  = []program{define("kmeans", "cluster the rows of files around k centres", KMeans, streams{}, report)}
	predict   = define("predict", "", Predict, streams{in: []string{"--input", "--model"}, out: []string{"--output"}}, predictedReport)
	evaluator = define("evaluate", "", Evaluate, streams{in: []string{"--input", "--model"}}, evaluatedReport)
)

// Jobs returns all built-in jobs, for engine.WorkerMain.
func Jobs() []engine.Runnable {
	var jobs []engine.Runnable
	for _, p := range slices.Concat(programs, algorithms, []program{predict, evaluator}) {
		jobs = append(jobs, p.job)
	}
	return jobs
}

// Names returns the names of the built-in jobs.
func Names() []string { return namesOf(programs) }

// Algorithms returns the names of the algorithms that Train can train.
func Algorithms() []string { return namesOf(algorithms) }

func namesOf(list []program) []string {
	var names []string
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

// About returns a description of each built-in job, one line per job.
func About() []string { return aboutOf(programs) }

// AboutAlgorithms returns a description of each algorithm, one line per algorithm.
func AboutAlgorithms() []string { return aboutOf(algorithms) }

func aboutOf(list []program) []string {
	var lines []string
	for _, p := range list {
		lines = append(lines, p.name+": "+p.about)
	}
	return lines
}

// Main runs a built-in job with words as its command line, and then ends the process. It
// returns false if there is no job of that name.
func Main(command, name string, words []string) bool { return mainOf(programs, command, name, words) }

// Train trains an algorithm with words as the command line, and then ends the process. It returns
// false if there is no such algorithm.
func Train(command, algorithm string, words []string) bool {
	return mainOf(algorithms, command, algorithm, words)
}

func mainOf(list []program, command, name string, words []string) bool {
	i := slices.IndexFunc(list, func(p program) bool { return p.name == name })
	if i < 0 {
		return false
	}
	list[i].main(command+" "+name, words)
	return true
}

// PredictMain runs superstep predict with words as its flags, and then ends the process.
func PredictMain(command string, words []string) { predict.main(command, words) }

// EvaluateMain runs superstep evaluate with words as its flags, and then ends the process.
func EvaluateMain(command string, words []string) { evaluator.main(command, words) }
