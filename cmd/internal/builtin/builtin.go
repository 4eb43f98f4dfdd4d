package builtin

import (
	"os"
	"slices"

	"github.com/superstep-ml/superstep/engine"
)

// A program is a built-in job with what follows it.
type program struct {
	name  string
	about string
	main  func(name string, words []string)
}

var programs = []program{
	{"kmeans", "cluster the rows of files around k centres", func(name string, words []string) {
		engine.Main(KMeans, engine.CommandLine[KMeansArgs](name, words...), engine.RunWith[KMeansArgs](engine.BuiltIn()),
			engine.AfterRun(func(a KMeansArgs, r *engine.Result) error { return report(os.Stdout, a, r) }))
	}},
}

// Jobs are all built-in jobs, for engine.WorkerMain.
func Jobs() []engine.Runnable { return []engine.Runnable{KMeans} }

// Names returns the names of the built-in jobs.
func Names() []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// About says what the built-in jobs do, a line each.
func About() []string {
	var lines []string
	for _, p := range programs {
		lines = append(lines, p.name+": "+p.about)
	}
	return lines
}

// Main runs a built-in job as the whole of the process, which it ends, with words as
// its command line. It returns false if there is no job of that name.
func Main(command, name string, words []string) bool {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return false
	}
	programs[i].main(command+" "+name, words)
	return true
}
