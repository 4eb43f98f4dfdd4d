package overdue

import (
	"time"

	"github.com/superstep-ml/superstep/internal/testsize"
)

var limit = testsize.Of(3*time.Minute, time.Hour)
