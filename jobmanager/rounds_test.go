package jobmanager

import "github.com/superstep-ml/superstep/internal/testsize"

// damageRounds is the number of random damages of each kind that TestDamagedHistory tries.
var damageRounds = testsize.Of(12, 400)
