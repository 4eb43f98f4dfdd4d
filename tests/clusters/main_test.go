// Package clusters runs jobs on clusters of real processes, kills and stops these,
// and feeds them garbage.
package clusters

import (
	"os"
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/programs"
)

func TestMain(m *testing.M) { os.Exit(programs.Main(m)) }
