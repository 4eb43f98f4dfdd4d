// Package clusters runs jobs on clusters of real processes, kills and stops these,
// and feeds them garbage.
package clusters

import (
	"os"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(programs.Main(m)) }

// patience bounds every wait for something that comes in a moment on a quiet
// machine: whoever waits that long waits for what hangs.
const patience = 4 * time.Minute
