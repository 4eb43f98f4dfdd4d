package task

// DefaultBudget is the number of bytes that Env.MemoryBudget stands for where it is 0.
func DefaultBudget() int64 { return defaultBudget() }
