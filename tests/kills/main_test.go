package kills

import (
	"os"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(programs.Main(m)) }

// waitLimit bounds every wait for an event that happens within seconds on an idle machine. If a
// wait takes as long as waitLimit, a process hangs.
const waitLimit = 4 * time.Minute
