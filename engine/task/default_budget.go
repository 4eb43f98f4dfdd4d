package task

// DefaultBudget returns the budget in bytes of a run whose Env.MemoryBudget is 0.
func DefaultBudget() int64 { return defaultBudget() }
