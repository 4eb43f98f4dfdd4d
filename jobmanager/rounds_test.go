package jobmanager

import "github.com/superstep-ml/superstep/internal/testsize"

// damageRounds is the number of attempts for each kind of damage.
var damageRounds = testsize.Of(12, 400)
