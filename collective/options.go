package collective

import "context"

// Option adjusts one call of a collective.
type Option struct {
	ctx       context.Context
	algorithm string
	name      string
}

// WithContext ends the wait, and the group, when ctx is cancelled.
func WithContext(ctx context.Context) Option { return Option{ctx: ctx} }

// WithAlgorithm has the call carried out by an algorithm of package algorithm, by
// name, with its dimensions if it takes any: "ring", "torus:4x8",
// "hierarchical:8". All ranks must give the same. Without it the group chooses
// among the algorithms that give the same bits; one that is named may give others,
// and bits that depend on the number of ranks.
func WithAlgorithm(name string) Option { return Option{algorithm: name} }

// WithName says what the call is about, for errors. All ranks must give the same.
func WithName(name string) Option { return Option{name: name} }

// merge puts options together, later ones first.
func merge(opts []Option) Option {
	var o Option
	for i := range opts {
		if opts[i].ctx != nil {
			o.ctx = opts[i].ctx
		}
		if opts[i].algorithm != "" {
			o.algorithm = opts[i].algorithm
		}
		if opts[i].name != "" {
			o.name = opts[i].name
		}
	}
	return o
}
