package collective

import (
	"time"

	"github.com/superstep-ml/superstep/internal/testsize"
)

var (
	loadProcesses = testsize.Of(5, 20)
	loadHogs      = testsize.Of(1, 4)
	loadTime      = testsize.Of(2*time.Second, 10*time.Minute)
)
