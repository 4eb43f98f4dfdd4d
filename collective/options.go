package collective

import "context"

// Option adjusts one call of a collective.
type Option struct {
	ctx       context.Context
	algorithm string
	name      string
}

// WithContext returns an option that ends the operation and the group when ctx is cancelled.
func WithContext(ctx context.Context) Option { return Option{ctx: ctx} }

// WithAlgorithm returns an option that names the algorithm of package algorithm that carries
// out the call, with its dimensions if it takes any: "ring", "torus:4x8", "hierarchical:8". All
// ranks must give the same name. Without this option, the group chooses among the algorithms
// that all give the same bits. A named algorithm may give different bits, and its bits may
// depend on the number of ranks.
func WithAlgorithm(name string) Option { return Option{algorithm: name} }

// WithName returns an option that names the call in errors. All ranks must give the same name.
func WithName(name string) Option { return Option{name: name} }

// merge returns one option that combines opts. A setting in a later option overrides the same
// setting in an earlier one.
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
