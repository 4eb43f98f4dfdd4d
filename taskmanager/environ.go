package taskmanager

import (
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// inherited has the names of the variables that a worker inherits from its task manager. Other
// variables may hold secrets that jobs must not see.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE",
	"NO_COLOR",
}

// inheritedPrefix is the prefix of the names of locale variables, which a worker also inherits.
const inheritedPrefix = "LC_"

// ownPrefix is the prefix of the names of Superstep's own variables. Some of these variables
// hold tokens.
const ownPrefix = "SUPERSTEP_"

// heapMargin is the memory in bytes that a process needs in addition to its memory budget, for
// its own objects, rows in flight and stacks. A local run adds the same amount to its budget.
const heapMargin = 64 << 20

// workerEnviron returns the environment of a worker with the given slots and memory budget. The
// variables come from environ. pass has the names of variables that are inherited in addition
// to the default variables.
func workerEnviron(environ, pass []string, slots int, memory int64) []string {
	env := []string{
		wire.WorkerEnv + "=" + strconv.Itoa(wire.Version),
		"GOMAXPROCS=" + strconv.Itoa(slots),
		"GOMEMLIMIT=" + strconv.FormatInt(memory+heapMargin, 10),
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, ownPrefix), name == "GOMAXPROCS", name == "GOMEMLIMIT":
		case slices.Contains(inherited, name), strings.HasPrefix(name, inheritedPrefix), slices.Contains(pass, name):
			env = append(env, variable)
		}
	}
	return env
}
