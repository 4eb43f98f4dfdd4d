package jobmanager

import "github.com/superstep-ml/superstep/internal/testsize"

// damageRounds is how many random damages of each kind TestDamagedHistory tries.
var damageRounds = testsize.Of(12, 400)
