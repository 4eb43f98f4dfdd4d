package task

// DefaultBudget returns the number of bytes that is the budget if Env.MemoryBudget is 0.
func DefaultBudget() int64 { return defaultBudget() }
